//! The token bucket, one key per call.
//!
//! Conversions only. Specified by `tests/vectors/token-bucket.json`.

use std::time::Duration;

use doorkeep::host::{either, input};
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use crate::attempt_limiter::read_key;
use crate::call::{Call, CallResult};
use crate::clock::Clock;
use crate::convert::{Arg, optional_timedelta, read, read_duration};
use crate::error::Result;
use crate::options::{Backend, read_name};
use crate::stats;

/// Limits each key by a bucket of tokens that refills continuously.
///
/// At the cap, buckets that are full again are evicted first, then the fullest. Safe from any thread; no call scans the
/// table.
///
/// Parameters
/// ----------
/// rate
///     Tokens of a full bucket, 1 to 2**26, default 100.
/// window
///     How long an empty bucket takes to fill: a `timedelta`, a number of seconds, or a string. Defaults to one minute.
/// capacity
///     How many buckets are kept: 1 to 2**30, default 10,000.
/// name
///     The name of the rule in counters. Matches `[a-z0-9-]{1,32}`.
/// store
///     A `RedisStore`, to share one budget with other processes; `name` is then required. Defaults to the memory of
///     this process.
/// on_error
///     What decides when the store does not answer: `"local"`, `"open"` or `"closed"`. Defaults to the store's setting.
/// clock
///     A callable that returns seconds since the Unix epoch, called once per call. Defaults to a monotonic clock, or
///     with a store to the store's clock.
///
/// Raises
/// ------
/// ConfigError
///     An argument is out of its bounds.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct TokenBucket {
    inner: either::TokenBucket,
    backend: Backend,
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
        rate: Arg<'_, '_>,
        window: Arg<'_, '_>,
        capacity: Arg<'_, '_>,
        name: Arg<'_, '_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        let rate = read(rate, input::bucket_rate)?;
        let window = read_duration(window, input::bucket_window)?;
        let capacity = read(capacity, input::bucket_capacity)?;
        let (backend, name) = (Backend::read(store, on_error)?, read_name(name)?);
        let sizes = (rate, window, capacity);
        let inner = either::TokenBucket::new(backend.store(), name.as_deref(), sizes, backend.on_error)?;
        Ok(Self { inner, backend, clock: Clock::new(clock)? })
    }

    /// Take one token for `key` if there is one.
    ///
    /// Parameters
    /// ----------
    /// key
    ///     Any string. An empty one returns false and never shares a bucket.
    /// now
    ///     Seconds since the Unix epoch. Defaults to the bucket's clock.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is not a string.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn allow(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<bool> {
        self.start_allow(py, key, now)?.wait(py)
    }

    /// Take `n` tokens for `key` if there are as many, else none.
    ///
    /// A negative `n` returns false, 0 returns true, more than `rate` returns false.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is not a string.
    /// ConfigError
    ///     `n` is not a whole number.
    #[pyo3(signature = (key, n, now=None))]
    pub(crate) fn allow_n(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        n: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> Result<bool> {
        self.start_allow_n(py, key, n, now)?.wait(py)
    }

    /// Return the wait until one token for `key` is available, or None if one is available now. Takes nothing.
    ///
    /// A closed bucket returns the same as an open one. Also None if the store does not answer and `on_error` is not
    /// `"local"`.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is empty or not a string.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn retry_after(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> Result<Option<Py<PyDelta>>> {
        self.start_retry_after(py, key, now)?.wait(py)
    }

    /// Fill the bucket of `key`, even on a closed limiter. An empty key does nothing.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether the key was forgotten: always true in memory, false if the store was not reached.
    pub(crate) fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<bool> {
        self.start_reset(key)?.wait(py)
    }

    /// Deny every later call that takes tokens. Calling it again does nothing.
    pub(crate) fn close(&self) {
        self.inner.close();
    }

    /// Return the counters: `allowed`, `denied`, `store_failed`, `evicted` and `tracked_keys`.
    pub(crate) fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats::to_dict(py, &self.inner.stats())
    }

    pub(crate) fn __len__(&self) -> usize {
        self.inner.len()
    }

    // Without this an empty limiter would be false, like an empty list.
    fn __bool__(&self) -> bool {
        true
    }

    pub(crate) fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)
    }
}

// The calls: the blocking methods wait for them, those of `doorkeep.aio` wrap them in an awaitable.
impl TokenBucket {
    pub(crate) fn start_allow(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> Result<Call<'_, bool, bool>> {
        Ok(self.call(self.inner.allow_n(&read_key(key)?, 1, self.clock.now(py, now)?)))
    }

    pub(crate) fn start_allow_n(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        n: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> Result<Call<'_, bool, bool>> {
        let key = read_key(key)?;
        let n = read(Some(n), input::tokens)?;
        Ok(self.call(self.inner.allow_n(&key, n, self.clock.now(py, now)?)))
    }

    pub(crate) fn start_retry_after(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Option<Duration>, Option<Py<PyDelta>>> {
        let answer = self.inner.retry_after(&read_key(key)?, self.clock.now(py, now)?);
        Ok(Call::new(self.backend.store(), answer, |py, wait, ()| Ok(optional_timedelta(py, wait?)?)))
    }

    pub(crate) fn start_reset(&self, key: &Bound<'_, PyAny>) -> Result<Call<'_, bool, bool>> {
        Ok(self.call(self.inner.reset(&read_key(key)?)))
    }

    fn call(&self, answer: either::Answer<bool>) -> Call<'_, bool, bool> {
        Call::new(self.backend.store(), answer, |_, answer, ()| Ok(answer))
    }
}
