//! The token bucket, one key a call.
//!
//! Conversions only. Specified by `tests/vectors/bucket*.json`.

use doorkeep::input;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::attempt_limiter::read_key;
use crate::clock::Clock;
use crate::convert::{Given, read, read_duration};
use crate::options::{check_store, with_name};
use crate::refused::Answer;
use crate::stats;

/// Gives each key a bucket of tokens that refills all the time.
///
/// At the cap, buckets that are full again go first, then the ones nearest to full. Safe from any thread; no call scans.
///
/// Parameters
/// ----------
/// rate
///     Tokens of a full bucket, 1 to 2**26, default 100.
/// window
///     How long an empty bucket takes to fill: a `timedelta`, a number of seconds, or text. Defaults to one minute.
/// capacity
///     How many buckets are held: 1 to 2**30, default 10,000.
/// name
///     Stands for the rule in counters. Matches `[a-z0-9-]{1,32}`.
/// store, on_error
///     Only memory exists so far: a store is refused.
/// clock
///     A callable giving seconds since the Unix epoch, read once a call. Defaults to a monotonic clock.
///
/// Raises
/// ------
/// ConfigError
///     An argument is out of its bounds.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct TokenBucket {
    inner: doorkeep::TokenBucket,
    clock: Clock,
}

#[pymethods]
impl TokenBucket {
    #[new]
    #[pyo3(
        signature = (rate=None, window=None, capacity=None, *, name=None, store=None, on_error=None, clock=None),
        text_signature = "(rate=100, window='1m', capacity=10_000, *, name=None, store=None, on_error=None, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub(crate) fn new(
        rate: Given<'_, '_>,
        window: Given<'_, '_>,
        capacity: Given<'_, '_>,
        name: Given<'_, '_>,
        store: Given<'_, '_>,
        on_error: Given<'_, '_>,
        clock: Given<'_, '_>,
    ) -> Answer<Self> {
        let rate = read(rate, input::bucket_rate)?;
        let window = read_duration(window, input::bucket_window)?;
        let capacity = read(capacity, input::bucket_capacity)?;
        check_store(store, on_error)?;
        let bucket = doorkeep::TokenBucket::new(rate, window, capacity)?;
        let inner = with_name(bucket, name, doorkeep::TokenBucket::named)?;
        Ok(Self { inner, clock: Clock::new(clock)? })
    }

    /// Take one token for `key` if there is one.
    ///
    /// Parameters
    /// ----------
    /// key
    ///     Any text. An empty one is false, never a shared bucket.
    /// now
    ///     Seconds since the Unix epoch. Defaults to the bucket's clock.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is not a text.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn allow(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Answer<bool> {
        let key = read_key(key)?;
        Ok(self.inner.allow(key, self.clock.now(py, now)?))
    }

    /// Take `n` tokens for `key` if there are as many, else none.
    ///
    /// A negative `n` is false; 0 is true; more than `rate` is false.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is not a text.
    /// ConfigError
    ///     `n` is not a whole number.
    #[pyo3(signature = (key, n, now=None))]
    pub(crate) fn allow_n(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        n: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> Answer<bool> {
        let key = read_key(key)?;
        let n = read(Some(n), input::tokens)?;
        Ok(self.inner.allow_n(key, n, self.clock.now(py, now)?))
    }

    /// Fill the bucket of `key`, also on a closed limiter. An empty key does nothing.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it is forgotten: always true in memory.
    pub(crate) fn reset(&self, key: &Bound<'_, PyAny>) -> Answer<bool> {
        Ok(self.inner.reset(read_key(key)?))
    }

    /// Deny every later call that takes tokens. May be called again.
    pub(crate) fn close(&self) {
        self.inner.close();
    }

    /// Give the counters: `allowed`, `denied`, `store_failed`, `evicted` and `tracked_keys`.
    pub(crate) fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats::to_dict(py, &self.inner.stats())
    }

    pub(crate) fn __len__(&self) -> usize {
        self.inner.len()
    }

    // Without this an empty limiter would be false, as an empty list is.
    fn __bool__(&self) -> bool {
        true
    }

    pub(crate) fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)
    }
}
