//! A limiter of several keys, in memory or over a store.

use crate::decision::{Decision, OnError};
use crate::error::Error;
use crate::host::either::{Answer, Attempt, or_now};
use crate::key::Key;
use crate::redis::{self, RedisStore};
use crate::stats::Stats;
use crate::time::Timestamp;

/// A [`crate::Limiter`] or a [`redis::Limiter`]. Cheap to clone.
#[derive(Clone)]
pub enum Limiter {
    /// In this process.
    Memory(crate::Limiter),
    /// In a store.
    Store(redis::Limiter),
}

impl Limiter {
    /// Creates it in the store, if there is one; `on_error` defaults to the store's.
    ///
    /// # Errors
    /// The capacity is out of bounds.
    pub fn new(store: Option<&RedisStore>, on_error: Option<OnError>, capacity: usize) -> Result<Self, Error> {
        match store {
            None => crate::Limiter::new(capacity).map(Self::Memory),
            Some(store) => redis::Limiter::new(store, on_error, capacity).map(Self::Store),
        }
    }

    /// Like [`crate::Limiter::decide`]. Without `now`, the clock of the memory or of the store decides.
    pub fn decide(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Answer<Result<Decision, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.decide(keys, cost, or_now(now))),
            Self::Store(limiter) => {
                let (limiter, keys) = (limiter.clone(), keys.to_vec());
                Answer::later(async move { limiter.decide(&keys, cost, now).await })
            }
        }
    }

    /// Like [`crate::Limiter::peek`].
    pub fn peek(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Answer<Result<Decision, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.peek(keys, cost, or_now(now))),
            Self::Store(limiter) => {
                let (limiter, keys) = (limiter.clone(), keys.to_vec());
                Answer::later(async move { limiter.peek(&keys, cost, now).await })
            }
        }
    }

    /// Like [`crate::Limiter::attempt`].
    pub fn attempt(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Answer<Result<Attempt, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.attempt(keys, cost, or_now(now)).map(Attempt::memory)),
            Self::Store(limiter) => {
                let (limiter, keys) = (limiter.clone(), keys.to_vec());
                Answer::later(async move { limiter.attempt(&keys, cost, now).await.map(Attempt::store) })
            }
        }
    }

    /// Like [`crate::Limiter::reset`]; false if the store was not reached.
    pub fn reset(&self, keys: &[Key]) -> Answer<Result<bool, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.reset(keys)),
            Self::Store(limiter) => {
                let (limiter, keys) = (limiter.clone(), keys.to_vec());
                Answer::later(async move { limiter.reset(&keys).await })
            }
        }
    }

    /// The number of entries in the tables of this process.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "hosts ask for the number")]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(limiter) => limiter.len(),
            Self::Store(limiter) => limiter.len(),
        }
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        match self {
            Self::Memory(limiter) => limiter.stats(),
            Self::Store(limiter) => limiter.stats(),
        }
    }
}
