//! The three limiters of one key under test.

use std::collections::VecDeque;
use std::time::Duration;

use doorkeep::{AttemptLimiter, Decision, FixedWindow, Reason, Reservation, Rule, TokenBucket};

use crate::policy::By;
use crate::subject::{Answer, Request, Subject};
use crate::subjects::{at, key_parts};

/// An [`AttemptLimiter`].
pub(crate) struct StrikeKeys {
    limiter: AttemptLimiter,
    by: By,
    forgive: bool,
    give_back: bool,
    /// Admitted attempts with the right credential, whose check is under way.
    pending: VecDeque<Reservation>,
}

impl StrikeKeys {
    pub(crate) fn new(limiter: AttemptLimiter, by: By, forgive: bool, give_back: bool) -> Self {
        Self { limiter, by, forgive, give_back, pending: VecDeque::new() }
    }
}

impl Subject for StrikeKeys {
    fn arrive(&mut self, request: &Request, now: u64) -> Answer {
        let key = key_of(self.by, request);
        let (decision, reservation) = self.limiter.try_reserve(key, at(now)).expect(NOT_EMPTY);
        if request.correct && decision.allowed() {
            self.pending.push_back(reservation);
        }
        read(&decision, self.by)
    }

    fn verified(&mut self, request: &Request, now: u64) {
        let reservation = if request.correct { self.pending.pop_front() } else { None };
        let Some(reservation) = reservation else { return };
        if self.give_back {
            self.limiter.cancel(reservation, at(now));
        }
        if self.forgive {
            self.limiter.reset(key_of(self.by, request)).expect(NOT_EMPTY);
        }
    }

    fn peek(&mut self, request: &Request, now: u64) -> Answer {
        let wait = self.limiter.retry_after(key_of(self.by, request), at(now)).expect(NOT_EMPTY);
        waiting(wait.map(micros), Reason::Locked, self.by)
    }

    fn table(&self) -> (u64, u64) {
        let stats = self.limiter.stats();
        (stats.tracked_keys, stats.evicted)
    }
}

/// A [`TokenBucket`]. A denial by it has no wait, so the wait is asked for.
pub(crate) struct Bucket {
    bucket: TokenBucket,
    by: By,
    forgive: bool,
}

impl Bucket {
    pub(crate) fn new(bucket: TokenBucket, by: By, forgive: bool) -> Self {
        Self { bucket, by, forgive }
    }
}

impl Subject for Bucket {
    fn arrive(&mut self, request: &Request, now: u64) -> Answer {
        if self.bucket.allow(key_of(self.by, request), at(now)) { Answer::ALLOWED } else { self.peek(request, now) }
    }

    fn verified(&mut self, request: &Request, _now: u64) {
        if self.forgive && request.correct {
            self.bucket.reset(key_of(self.by, request));
        }
    }

    fn peek(&mut self, request: &Request, now: u64) -> Answer {
        let wait = self.bucket.retry_after(key_of(self.by, request), at(now)).expect(NOT_EMPTY);
        waiting(wait.map(micros), Reason::Limited, self.by)
    }

    fn table(&self) -> (u64, u64) {
        let stats = self.bucket.stats();
        (stats.tracked_keys, stats.evicted)
    }
}

/// A [`FixedWindow`].
pub(crate) struct FirstComes {
    window: FixedWindow,
    by: By,
    forgive: bool,
}

impl FirstComes {
    pub(crate) fn new(window: FixedWindow, by: By, forgive: bool) -> Self {
        Self { window, by, forgive }
    }
}

impl Subject for FirstComes {
    fn arrive(&mut self, request: &Request, now: u64) -> Answer {
        read(&self.window.consume(key_of(self.by, request), at(now)), self.by)
    }

    fn verified(&mut self, request: &Request, _now: u64) {
        if self.forgive && request.correct {
            self.window.reset(key_of(self.by, request)).expect(NOT_EMPTY);
        }
    }

    fn peek(&mut self, request: &Request, now: u64) -> Answer {
        let decision = self.window.peek(key_of(self.by, request), at(now)).expect(NOT_EMPTY);
        let wait = decision.retry_after.filter(|_| !decision.allowed());
        waiting(wait.map(micros), Reason::Limited, self.by)
    }

    fn table(&self) -> (u64, u64) {
        let stats = self.window.stats();
        (stats.tracked_keys, stats.evicted)
    }
}

const NOT_EMPTY: &str = "a key of numbers is not empty";

fn key_of(by: By, request: &Request) -> [u8; 24] {
    let (account, address) = key_parts(by, request, Rule::DEFAULT_IPV6_PREFIX);
    let mut key = [0; 24];
    key[..8].copy_from_slice(&account.to_be_bytes());
    key[8..].copy_from_slice(&address.to_be_bytes());
    key
}

fn read(decision: &Decision, by: By) -> Answer {
    Answer {
        denied: decision.reason,
        wait: decision.retry_after.map(micros),
        by_address: by.address,
        by_account: by.account,
        engaged: !decision.engaged.is_empty(),
        degraded: false,
    }
}

fn waiting(wait: Option<u64>, reason: Reason, by: By) -> Answer {
    match wait {
        None => Answer::ALLOWED,
        Some(_) => {
            let (by_address, by_account) = (by.address, by.account);
            Answer { denied: Some(reason), wait, by_address, by_account, ..Answer::ALLOWED }
        }
    }
}

fn micros(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)
}
