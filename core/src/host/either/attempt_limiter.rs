//! Strikes and lockout on one string as the key, in memory or over a store.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::{Decision, OnError, Outcome};
use crate::error::Error;
use crate::host::either::{Answer, or_now};
use crate::host::input;
use crate::memory::{self, Strikes};
use crate::policy::strikes::Cancelled;
use crate::redis::{self, RedisStore};
use crate::stats::Stats;
use crate::time::Timestamp;

/// A [`crate::AttemptLimiter`] or a [`redis::AttemptLimiter`]. Cheap to clone.
#[derive(Clone)]
pub enum AttemptLimiter {
    /// In this process.
    Memory(Arc<memory::AttemptLimiter>),
    /// In a store.
    Store(Arc<redis::AttemptLimiter>),
}

/// An admitted attempt, in memory or in a store. The default one cancels nothing.
#[derive(Clone, Default)]
pub enum Reservation {
    /// Of a denied attempt.
    #[default]
    Nothing,
    /// Counted in this process.
    Memory(memory::Reservation),
    /// Counted by a limiter over a store.
    Store(redis::Reservation),
}

impl AttemptLimiter {
    /// Creates it in the store, if there is one; a name is required then.
    ///
    /// # Errors
    /// A value is out of its bounds, or the name is missing.
    pub fn new(
        store: Option<&RedisStore>,
        name: Option<&str>,
        strikes: Strikes,
        on_error: Option<OnError>,
    ) -> Result<Self, Error> {
        match (store, name) {
            (None, None) => Ok(Self::Memory(Arc::new(memory::AttemptLimiter::new(strikes)?))),
            (None, Some(name)) => Ok(Self::Memory(Arc::new(memory::AttemptLimiter::new(strikes)?.named(name)?))),
            (Some(_), None) => Err(input::name_required()),
            (Some(store), Some(name)) => {
                Ok(Self::Store(Arc::new(redis::AttemptLimiter::new(store, name, strikes, on_error)?)))
            }
        }
    }

    /// Like [`crate::AttemptLimiter::try_attempt`].
    pub fn attempt(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<Outcome, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.try_attempt(key, or_now(now))),
            Self::Store(limiter) => {
                let (limiter, key) = (Arc::clone(limiter), key.to_vec());
                Answer::later(async move { Ok(limiter.decide(key, now).await?.outcome) })
            }
        }
    }

    /// Like [`crate::AttemptLimiter::decide`].
    pub fn decide(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<Decision, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.decide(key, or_now(now))),
            Self::Store(limiter) => {
                let (limiter, key) = (Arc::clone(limiter), key.to_vec());
                Answer::later(async move { limiter.decide(key, now).await })
            }
        }
    }

    /// Like [`crate::AttemptLimiter::try_reserve`].
    pub fn reserve(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<(Decision, Reservation), Error>> {
        match self {
            Self::Memory(limiter) => {
                let reserved = limiter.try_reserve(key, or_now(now));
                Answer::Now(reserved.map(|(decision, made)| (decision, Reservation::Memory(made))))
            }
            Self::Store(limiter) => {
                let (limiter, key) = (Arc::clone(limiter), key.to_vec());
                Answer::later(async move {
                    let (decision, made) = limiter.reserve(key, now).await?;
                    Ok((decision, Reservation::Store(made)))
                })
            }
        }
    }

    /// Like [`crate::AttemptLimiter::cancel`]. A reservation from the other kind of limiter cancels nothing.
    pub fn cancel(&self, reservation: Reservation, now: Option<Timestamp>) -> Answer<Cancelled> {
        match (self, reservation) {
            (Self::Memory(limiter), Reservation::Memory(made)) => Answer::Now(limiter.cancel(made, or_now(now))),
            (Self::Store(limiter), Reservation::Store(made)) => {
                let limiter = Arc::clone(limiter);
                Answer::later(async move { limiter.cancel(made, now).await })
            }
            _ => Answer::Now(Cancelled::Nothing),
        }
    }

    /// Like [`crate::AttemptLimiter::locked`].
    pub fn locked(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<bool, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.locked(key, or_now(now))),
            Self::Store(limiter) => {
                let (limiter, key) = (Arc::clone(limiter), key.to_vec());
                Answer::later(async move { limiter.locked(key, now).await })
            }
        }
    }

    /// Like [`crate::AttemptLimiter::retry_after`].
    pub fn retry_after(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<Option<Duration>, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.retry_after(key, or_now(now))),
            Self::Store(limiter) => {
                let (limiter, key) = (Arc::clone(limiter), key.to_vec());
                Answer::later(async move { limiter.retry_after(key, now).await })
            }
        }
    }

    /// Like [`crate::AttemptLimiter::reset`]; false if the store was not reached.
    pub fn reset(&self, key: &[u8]) -> Answer<Result<bool, Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.reset(key)),
            Self::Store(limiter) => {
                let (limiter, key) = (Arc::clone(limiter), key.to_vec());
                Answer::later(async move { limiter.reset(key).await })
            }
        }
    }

    /// Like [`crate::AttemptLimiter::refund`].
    pub fn refund(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<(), Error>> {
        match self {
            Self::Memory(limiter) => Answer::Now(limiter.refund(key, or_now(now))),
            Self::Store(limiter) => {
                let (limiter, key) = (Arc::clone(limiter), key.to_vec());
                Answer::later(async move { limiter.refund(key, now).await })
            }
        }
    }

    /// The number of keys in the table of this process.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "hosts ask for the number")]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(limiter) => limiter.len(),
            Self::Store(limiter) => limiter.len(),
        }
    }

    /// The name of the limiter in decisions and counters.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Memory(limiter) => limiter.name(),
            Self::Store(limiter) => limiter.name(),
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
