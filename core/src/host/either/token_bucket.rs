//! A token bucket in memory or over a store.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::OnError;
use crate::error::Error;
use crate::host::either::{Answer, or_now};
use crate::host::input;
use crate::memory;
use crate::redis::{self, RedisStore};
use crate::stats::Stats;
use crate::time::Timestamp;

/// A [`crate::TokenBucket`] or a [`redis::TokenBucket`]. Cheap to clone.
#[derive(Clone)]
pub enum TokenBucket {
    /// In this process.
    Memory(Arc<memory::TokenBucket>),
    /// In a store.
    Store(Arc<redis::TokenBucket>),
}

impl TokenBucket {
    /// Creates it in the store, if there is one; a name is required then.
    ///
    /// # Errors
    /// A value is out of its bounds, or the name is missing.
    pub fn new(
        store: Option<&RedisStore>,
        name: Option<&str>,
        (rate, window, capacity): (u32, Duration, usize),
        on_error: Option<OnError>,
    ) -> Result<Self, Error> {
        match (store, name) {
            (None, name) => {
                let bucket = memory::TokenBucket::new(rate, window, capacity)?;
                Ok(Self::Memory(Arc::new(match name {
                    Some(name) => bucket.named(name)?,
                    None => bucket,
                })))
            }
            (Some(_), None) => Err(input::name_required()),
            (Some(store), Some(name)) => {
                let bucket = redis::TokenBucket::new(store, name, (rate, window, capacity), on_error)?;
                Ok(Self::Store(Arc::new(bucket)))
            }
        }
    }

    /// Like [`crate::TokenBucket::allow_n`].
    pub fn allow_n(&self, key: &[u8], n: i64, now: Option<Timestamp>) -> Answer<bool> {
        match self {
            Self::Memory(bucket) => Answer::Now(bucket.allow_n(key, n, or_now(now))),
            Self::Store(bucket) => {
                let (bucket, key) = (Arc::clone(bucket), key.to_vec());
                Answer::later(async move { bucket.allow_n(key, n, now).await })
            }
        }
    }

    /// Like [`crate::TokenBucket::retry_after`].
    pub fn retry_after(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<Option<Duration>, Error>> {
        match self {
            Self::Memory(bucket) => Answer::Now(bucket.retry_after(key, or_now(now))),
            Self::Store(bucket) => {
                let (bucket, key) = (Arc::clone(bucket), key.to_vec());
                Answer::later(async move { bucket.retry_after(key, now).await })
            }
        }
    }

    /// Like [`crate::TokenBucket::reset`]; false if the store was not reached.
    pub fn reset(&self, key: &[u8]) -> Answer<bool> {
        match self {
            Self::Memory(bucket) => Answer::Now(bucket.reset(key)),
            Self::Store(bucket) => {
                let (bucket, key) = (Arc::clone(bucket), key.to_vec());
                Answer::later(async move { bucket.reset(key).await })
            }
        }
    }

    /// Like [`crate::TokenBucket::close`].
    pub fn close(&self) {
        match self {
            Self::Memory(bucket) => bucket.close(),
            Self::Store(bucket) => bucket.close(),
        }
    }

    /// The number of buckets in the table of this process.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "hosts ask for the number")]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bucket) => bucket.len(),
            Self::Store(bucket) => bucket.len(),
        }
    }

    /// Its name in counters.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Memory(bucket) => bucket.name(),
            Self::Store(bucket) => bucket.name(),
        }
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        match self {
            Self::Memory(bucket) => bucket.stats(),
            Self::Store(bucket) => bucket.stats(),
        }
    }
}
