//! A token bucket per key, over a store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::decision::{OnError, Reason};
use crate::error::Error;
use crate::rate::{Rate, Rates};
use crate::redis::single::{Reply, Single, digest};
use crate::redis::store::Wire;
use crate::redis::{RedisStore, or_now};
use crate::rule::Rule;
use crate::stats::Stats;
use crate::time::Timestamp;

/// A [`crate::TokenBucket`] whose buckets many processes share.
///
/// A bucket and a [`Rule`] of one name and policy share a budget.
pub struct TokenBucket {
    single: Single<crate::TokenBucket>,
    rate: u32,
    is_closed: AtomicBool,
}

impl TokenBucket {
    /// A bucket called `name` over `store`; see [`crate::TokenBucket::new`]. `capacity` bounds the local table.
    ///
    /// # Errors
    /// The name does not match `[a-z0-9-]{1,32}`, or a bound is passed.
    pub fn new(
        store: &RedisStore,
        name: &str,
        (rate, window, capacity): (u32, Duration, usize),
        on_error: Option<OnError>,
    ) -> Result<Self, Error> {
        let wire = |prefix: &str| {
            let rates = Rates::new([Rate::new(rate, window)?])?;
            Ok(Wire::of_rule(prefix, &Rule::new(name, rates)?))
        };
        let name = name.to_owned();
        let make = move || crate::TokenBucket::new(rate, window, capacity)?.named(&name);
        let single = Single::new(store, on_error, wire, make)?;
        Ok(Self { single, rate, is_closed: AtomicBool::new(false) })
    }

    /// Takes one token.
    #[must_use = "an answer that is not looked at admits everybody"]
    pub async fn allow(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> bool {
        self.allow_n(key, 1, now).await
    }

    /// Takes `n` tokens at once or none, in the order of [`crate::TokenBucket::allow_n`].
    #[must_use = "an answer that is not looked at admits everybody"]
    pub async fn allow_n(&self, key: impl AsRef<[u8]>, n: i64, now: Option<Timestamp>) -> bool {
        if n <= 0 {
            return n == 0;
        }
        let key = key.as_ref();
        let Ok(digest) = digest(key) else { return false };
        let counters = &self.single.counters;
        let Some(n) = u32::try_from(n).ok().filter(|n| *n <= self.rate) else {
            counters.denied(Reason::Limited);
            return false;
        };
        if self.is_closed.load(Ordering::Acquire) {
            return false;
        }
        match self.single.ask(digest, self.single.remote.counting(n, now)).await {
            Reply::Decision(decision) => {
                counters.count(&decision);
                decision.allowed()
            }
            Reply::Local(local) => {
                let admitted = local.allow_n(key, n.into(), or_now(now));
                if admitted {
                    counters.allowed()
                } else {
                    counters.denied(Reason::Limited)
                }
                admitted
            }
        }
    }

    /// The wait until one token is there; none if there is one now, or nobody can tell. Takes nothing.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn retry_after(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<Option<Duration>, Error> {
        let key = key.as_ref();
        match self.single.ask(digest(key)?, self.single.remote.peeking(1, now)).await {
            Reply::Decision(decision) => Ok(decision.retry_after.filter(|_| !decision.allowed())),
            Reply::Local(local) => local.retry_after(key, or_now(now)),
        }
    }

    /// Fills the bucket of a key, here and in the store. False if the store was not reached. An empty key has no bucket.
    pub async fn reset(&self, key: impl AsRef<[u8]>) -> bool {
        let Ok(digest) = digest(key.as_ref()) else { return true };
        if let Some(local) = self.single.local() {
            local.reset(&key);
        }
        self.single.forget(digest).await
    }

    /// Admits nothing from now on. The store stays open. Closing twice is closing once.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// How many buckets this process's own table holds; the store is never scanned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.single.local().map_or(0, |local| local.len())
    }

    /// Whether this process's own table holds no bucket.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which counters speak of this bucket.
    #[must_use]
    pub fn name(&self) -> &str {
        self.single.name()
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.single.stats(crate::TokenBucket::stats)
    }
}
