//! A token bucket per key, over a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::decision::{Decision, Reason};
use crate::error::Error;
use crate::input::{self, OnError};
use crate::key::Digest;
use crate::rate::{Rate, Rates};
use crate::redis::RedisStore;
use crate::redis::fallback::Fallback;
use crate::redis::remote::{Call, Remote};
use crate::rule::Rule;
use crate::stats::{RuleCounters, Stats};
use crate::store::redis::{Act, Wire};
use crate::time::Timestamp;

/// A [`crate::TokenBucket`] whose buckets many processes share.
///
/// A bucket and a [`Rule`] of one name and policy share a budget.
pub struct TokenBucket {
    remote: Remote,
    wire: Arc<Wire>,
    rate: u32,
    local: Fallback<crate::TokenBucket>,
    is_closed: AtomicBool,
    counters: RuleCounters,
}

impl TokenBucket {
    /// A bucket called `name` over `store`; see [`crate::TokenBucket::new`]. `capacity` bounds the local table.
    ///
    /// # Errors
    /// The name or a bound is passed.
    pub fn new(
        store: &RedisStore,
        name: &str,
        (rate, window, capacity): (u32, Duration, usize),
        on_error: Option<OnError>,
    ) -> Result<Self, Error> {
        let make = {
            let name = name.to_owned();
            move || crate::TokenBucket::new(rate, window, capacity).and_then(|bucket| bucket.named(&name))
        };
        make()?;
        let remote = Remote::new(store, on_error);
        let rule = Rule::new(name, Rates::new([Rate::new(rate, window)?])?)?;
        let wire = Arc::new(Wire::of_rule(remote.prefix(), &rule));
        let local = Fallback::new(move || make().expect("the bucket was judged above"));
        let (is_closed, counters) = (AtomicBool::new(false), RuleCounters::default());
        Ok(Self { remote, wire, rate, local, is_closed, counters })
    }

    /// Takes one token.
    #[must_use = "an answer that is not looked at admits everybody"]
    pub async fn allow(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> bool {
        self.allow_n(key, 1, now).await
    }

    /// Takes `n` tokens at once or none, in the order of [`crate::TokenBucket::allow_n`].
    #[must_use = "an answer that is not looked at admits everybody"]
    pub async fn allow_n(&self, key: impl AsRef<[u8]>, n: i64, now: Option<Timestamp>) -> bool {
        let key = key.as_ref();
        if n <= 0 || key.is_empty() {
            return n == 0;
        }
        let fits = u32::try_from(n).ok().filter(|n| *n <= self.rate);
        let Some(n) = fits else {
            self.counters.denied(Reason::Limited);
            return false;
        };
        let Ok(digest) = Digest::of_parts(&[key], None) else { return false };
        if self.is_closed.load(Ordering::Acquire) {
            return false;
        }
        let call = Call::counting(n, now);
        match self.remote.decide(&[(&self.wire, digest)], call).await {
            Ok(reading) => self.counted(&reading.decision),
            Err(OnError::Local) => {
                let local = self.local.get(self.remote.returns());
                let admitted = local.allow_n(key, n.into(), now.unwrap_or_else(Timestamp::now));
                if admitted {
                    self.counters.allowed()
                } else {
                    self.counters.denied(Reason::Limited)
                }
                admitted
            }
            Err(OnError::Open | OnError::Closed) => self.counted(&self.remote.without_store(self.rate)),
        }
    }

    /// Fills the bucket of a key, here and in the store. False if the store was not reached.
    pub async fn reset(&self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        let Ok(digest) = input::key(key).and_then(|()| Digest::of_parts(&[key], None)) else { return true };
        if let Some(local) = self.existing_local() {
            local.reset(key);
        }
        self.remote.settle(&[(self.wire.key(&digest), Act::Forget)], None).await.is_some()
    }

    /// Admits nothing from now on. The store stays open. Closing twice is closing once.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// How many buckets this process's own table holds; the store is never scanned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.existing_local().map_or(0, |local| local.len())
    }

    /// Whether this process's own table holds no bucket.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which counters speak of this bucket.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.wire.rule
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let local = self.existing_local().map(|local| local.stats()).unwrap_or_default();
        let mut stats = Stats { evicted: local.evicted, tracked_keys: local.tracked_keys, ..Stats::default() };
        self.counters.add_to(&mut stats, self.name());
        self.remote.add_to(&mut stats);
        stats
    }

    fn counted(&self, decision: &Decision) -> bool {
        self.counters.count(decision);
        decision.allowed()
    }

    fn existing_local(&self) -> Option<Arc<crate::TokenBucket>> {
        self.local.existing(self.remote.returns())
    }
}
