//! A fixed window in memory or over a store.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::{Decision, OnError};
use crate::error::Error;
use crate::host::either::{Answer, or_now};
use crate::host::input;
use crate::memory;
use crate::redis::{self, RedisStore};
use crate::stats::Stats;
use crate::time::Timestamp;

/// A [`crate::FixedWindow`] or a [`redis::FixedWindow`]. Cheap to clone.
#[derive(Clone)]
pub enum FixedWindow {
    /// In this process.
    Memory(Arc<memory::FixedWindow>),
    /// In a store.
    Store(Arc<redis::FixedWindow>),
}

impl FixedWindow {
    /// Creates it in the store, if there is one; a name is required then.
    ///
    /// # Errors
    /// A value is out of its bounds, or the name is missing.
    pub fn new(
        store: Option<&RedisStore>,
        name: Option<&str>,
        (limit, window, max_keys): (u32, Duration, usize),
        on_error: Option<OnError>,
    ) -> Result<Self, Error> {
        match (store, name) {
            (None, name) => {
                let made = memory::FixedWindow::new(limit, window, max_keys)?;
                Ok(Self::Memory(Arc::new(match name {
                    Some(name) => made.named(name)?,
                    None => made,
                })))
            }
            (Some(_), None) => Err(input::name_required()),
            (Some(store), Some(name)) => {
                let made = redis::FixedWindow::new(store, name, (limit, window, max_keys), on_error)?;
                Ok(Self::Store(Arc::new(made)))
            }
        }
    }

    /// Like [`crate::FixedWindow::try_consume`].
    pub fn consume(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<Decision, Error>> {
        match self {
            Self::Memory(window) => Answer::Now(window.try_consume(key, or_now(now))),
            Self::Store(window) => {
                let (window, key) = (Arc::clone(window), key.to_vec());
                Answer::later(async move { window.consume(key, now).await })
            }
        }
    }

    /// Like [`crate::FixedWindow::peek`].
    pub fn peek(&self, key: &[u8], now: Option<Timestamp>) -> Answer<Result<Decision, Error>> {
        match self {
            Self::Memory(window) => Answer::Now(window.peek(key, or_now(now))),
            Self::Store(window) => {
                let (window, key) = (Arc::clone(window), key.to_vec());
                Answer::later(async move { window.peek(key, now).await })
            }
        }
    }

    /// Like [`crate::FixedWindow::reset`]; false if the store was not reached.
    pub fn reset(&self, key: &[u8]) -> Answer<Result<bool, Error>> {
        match self {
            Self::Memory(window) => Answer::Now(window.reset(key)),
            Self::Store(window) => {
                let (window, key) = (Arc::clone(window), key.to_vec());
                Answer::later(async move { window.reset(key).await })
            }
        }
    }

    /// How many attempts a window admits.
    #[must_use]
    pub fn limit(&self) -> u32 {
        match self {
            Self::Memory(window) => window.limit(),
            Self::Store(window) => window.limit(),
        }
    }

    /// The length of a window.
    #[must_use]
    pub fn window(&self) -> Duration {
        match self {
            Self::Memory(window) => window.window(),
            Self::Store(window) => window.window(),
        }
    }

    /// The number of keys in the table of this process.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "hosts ask for the number")]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(window) => window.len(),
            Self::Store(window) => window.len(),
        }
    }

    /// Its name in counters.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Memory(window) => window.name(),
            Self::Store(window) => window.name(),
        }
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        match self {
            Self::Memory(window) => window.stats(),
            Self::Store(window) => window.stats(),
        }
    }
}
