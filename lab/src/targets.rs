//! The accounts that an attacker is after, in the order in which it takes them up.
//!
//! Accounts that were not tried yet are a number; those that were are kept with their guesses. Invariant: guesses on one
//! account rise by one with every admitted attempt.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::columns::count;
use crate::passwords::Passwords;
use crate::rng;

const DAY: u64 = 86_400_000_000;

/// One account, and how far the attacker is with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) account: u32,
    /// Guesses that were admitted.
    pub(crate) guesses: u32,
    /// The guess that opens it; 0 if none does.
    opens_at: u32,
    day: u32,
    today: u32,
}

impl Target {
    /// Whether the next guess is the right one.
    pub(crate) fn opens_next(&self) -> bool {
        self.opens_at == self.guesses + 1
    }
}

pub(crate) struct Targets {
    first: u32,
    untried: u32,
    end: u32,
    /// One that was taken and could not be tried: it is taken first.
    held: Option<Target>,
    touched: u64,
    /// Tried accounts by the moment from which they may pass, then by when they were tried last.
    tried: Waiting,
    turns: u64,
    /// After so many guesses an account is left alone.
    limit: u32,
    passwords: Passwords,
    seed: u64,
    pub(crate) score: Score,
    /// How many accounts were left alone after how many guesses.
    done: BTreeMap<u32, u64>,
}

/// A target, the moment from which it may pass, and its turn.
type Turn = (u64, u64, Target);

/// Targets by their moments, then by their turns.
///
/// Most are put back in this order already, and wait in a plain row; only the others need a heap.
#[derive(Default)]
struct Waiting {
    row: VecDeque<Turn>,
    others: BinaryHeap<Reverse<Turn>>,
}

impl Waiting {
    fn push(&mut self, turn: Turn) {
        if self.row.back().is_none_or(|(ready, ..)| *ready <= turn.0) {
            self.row.push_back(turn);
        } else {
            self.others.push(Reverse(turn));
        }
    }

    /// Takes the first one if it may pass now.
    fn take(&mut self, now: u64) -> Result<Target, u64> {
        let moment = |(ready, turn, _): &Turn| (*ready, *turn);
        let first = self.row.front().map_or((u64::MAX, u64::MAX), moment);
        let other = self.others.peek().map_or((u64::MAX, u64::MAX), |Reverse(turn)| moment(turn));
        if first.min(other).0 > now {
            return Err(first.min(other).0);
        }
        let taken = if first < other { self.row.pop_front() } else { self.others.pop().map(|Reverse(turn)| turn) };
        Ok(taken.expect("it was there").2)
    }

    /// Everything may pass again, in turn.
    fn wake(&mut self) {
        let mut all: Vec<Turn> = self.row.drain(..).chain(self.others.drain().map(|Reverse(turn)| turn)).collect();
        all.sort_unstable_by_key(|(_, turn, _)| *turn);
        self.row = all.into_iter().map(|(_, turn, target)| (0, turn, target)).collect();
    }

    fn iter(&self) -> impl Iterator<Item = &Target> {
        self.row.iter().chain(self.others.iter().map(|Reverse(turn)| turn)).map(|(.., target)| target)
    }
}

/// What came of the guesses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    /// The most guesses on one account in one day of the run.
    pub(crate) most_a_day: u32,
    pub(crate) opened: u64,
}

impl Targets {
    pub(crate) fn new(first: u32, accounts: u32, limit: Option<u32>, passwords: Passwords, seed: u64) -> Self {
        Self {
            first,
            untried: 0,
            end: accounts,
            held: None,
            touched: 0,
            tried: Waiting::default(),
            turns: 0,
            limit: limit.unwrap_or(u32::MAX),
            passwords,
            seed,
            score: Score::default(),
            done: BTreeMap::new(),
        }
    }

    /// Takes the account whose turn it is.
    ///
    /// # Errors
    /// There is none before this moment.
    pub(crate) fn take(&mut self, now: u64) -> Result<Target, u64> {
        if let Some(held) = self.held.take() {
            return Ok(held);
        }
        if self.untried < self.end {
            let account = self.first + self.untried;
            self.untried += 1;
            return Ok(self.fresh(account));
        }
        self.tried.take(now)
    }

    /// Puts an account back to the head of the row, since the denial did not speak of it.
    pub(crate) fn hold(&mut self, target: Target) {
        self.held = Some(target);
    }

    /// Puts an account back at the end of the row, to be tried from `ready` on; one that is done with goes.
    pub(crate) fn put_back(&mut self, target: Target, ready: u64) {
        if target.guesses >= self.limit {
            *self.done.entry(target.guesses).or_default() += 1;
            return;
        }
        self.turns += 1;
        self.tried.push((ready, self.turns, target));
    }

    /// Counts admitted guesses on an account.
    pub(crate) fn admit(&mut self, target: &mut Target, guesses: u32, now: u64) {
        let day = u32::try_from(now / DAY).expect("a run lasts less than 9 years");
        if target.day != day {
            (target.day, target.today) = (day, 0);
        }
        let opens = target.guesses < target.opens_at && target.opens_at <= target.guesses.saturating_add(guesses);
        self.touched += u64::from(target.guesses == 0);
        target.guesses = target.guesses.saturating_add(guesses);
        target.today = target.today.saturating_add(guesses);
        self.score.most_a_day = self.score.most_a_day.max(target.today);
        self.score.opened += u64::from(opens);
    }

    /// Everything may pass again.
    pub(crate) fn wake(&mut self) {
        self.tried.wake();
    }

    /// Accounts with a guess that was admitted.
    pub(crate) fn touched(&self) -> u64 {
        self.touched
    }

    /// How many accounts fall on average over all seeds.
    pub(crate) fn expected(&self) -> f64 {
        let mut accounts = self.done.clone();
        for target in self.tried.iter().chain(&self.held) {
            *accounts.entry(target.guesses).or_default() += 1;
        }
        accounts.iter().map(|(guesses, accounts)| count(*accounts) * self.passwords.opened((*guesses).into())).sum()
    }

    fn fresh(&self, account: u32) -> Target {
        let share = rng::unit_of(self.seed, account.into());
        let opens_at = self.passwords.rank(share).and_then(|rank| u32::try_from(rank).ok()).unwrap_or(0);
        Target { account, guesses: 0, opens_at, day: 0, today: 0 }
    }
}
