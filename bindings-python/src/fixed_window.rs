//! The fixed window, one key per call.
//!
//! Conversions only. Specified by `tests/vectors/fixed-window.json`.

use doorkeep::Decision as Decided;
use doorkeep::host::{either, input};
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use crate::attempt_limiter::read_key;
use crate::call::{Call, CallResult};
use crate::clock::Clock;
use crate::convert::{Arg, read, read_duration, timedelta};
use crate::decision::Decision;
use crate::error::Result;
use crate::options::{Backend, read_name};
use crate::stats;

/// Admits a number of attempts per key and window; a key's window opens at its first attempt.
///
/// Around the boundary of two windows up to `2 * limit - 1` attempts can pass within the length of one window. Safe
/// from any thread; no call scans the table.
///
/// Parameters
/// ----------
/// limit
///     Attempts per window, 1 to 2**26.
/// window
///     A `timedelta`, a number of seconds, or a string such as `"1m"`.
/// max_keys
///     How many keys are kept: 1 to 2**30, default 100,000.
/// name
///     The name of the rule in decisions and counters. Matches `[a-z0-9-]{1,32}`.
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
pub(crate) struct FixedWindow {
    inner: either::FixedWindow,
    backend: Backend,
    clock: Clock,
}

#[pymethods]
impl FixedWindow {
    #[new]
    #[pyo3(
        signature = (limit=None, window=None, max_keys=None, *, name=None, store=None, on_error=None, clock=None),
        text_signature = "(limit, window, max_keys=100_000, *, name=None, store=None, on_error=None, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub(crate) fn new(
        limit: Arg<'_, '_>,
        window: Arg<'_, '_>,
        max_keys: Arg<'_, '_>,
        name: Arg<'_, '_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        let limit = read(limit, input::limit)?;
        let window = read_duration(window, input::window)?;
        let max_keys = read(max_keys, input::max_keys)?;
        let (backend, name) = (Backend::read(store, on_error)?, read_name(name)?);
        let sizes = (limit, window, max_keys);
        let inner = either::FixedWindow::new(backend.store(), name.as_deref(), sizes, backend.on_error)?;
        Ok(Self { inner, backend, clock: Clock::new(clock)? })
    }

    /// Count one attempt for `key`, or deny it with the wait until its window ends.
    ///
    /// Parameters
    /// ----------
    /// key
    ///     Any non-empty string. Hashed immediately; never stored or logged.
    /// now
    ///     Seconds since the Unix epoch. Defaults to the limiter's clock.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is empty or not a string: an empty key is an error, not a shared bucket.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn consume(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<Decision> {
        self.start_consume(py, key, now)?.wait(py)
    }

    /// Return the decision that `consume` would return for `key`; what remains is as it is now. Counts nothing.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is empty or not a string.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn peek(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<Decision> {
        self.start_peek(py, key, now)?.wait(py)
    }

    /// Forget `key`. Calling it again does nothing.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether the key was forgotten: always true in memory, false if the store was not reached.
    pub(crate) fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<bool> {
        self.start_reset(key)?.wait(py)
    }

    /// Attempts per window.
    #[getter]
    pub(crate) fn limit(&self) -> u32 {
        self.inner.limit()
    }

    /// The length of a window.
    #[getter]
    pub(crate) fn window<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDelta>> {
        timedelta(py, self.inner.window())
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
impl FixedWindow {
    pub(crate) fn start_consume(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Decided, Decision> {
        let answer = self.inner.consume(&read_key(key)?, self.clock.now(py, now)?);
        Ok(Call::new(self.backend.store(), answer, |_, decision, ()| Ok(decision?.into())))
    }

    pub(crate) fn start_peek(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Decided, Decision> {
        let answer = self.inner.peek(&read_key(key)?, self.clock.now(py, now)?);
        Ok(Call::new(self.backend.store(), answer, |_, decision, ()| Ok(decision?.into())))
    }

    pub(crate) fn start_reset(&self, key: &Bound<'_, PyAny>) -> CallResult<'_, bool, bool> {
        let answer = self.inner.reset(&read_key(key)?);
        Ok(Call::new(self.backend.store(), answer, |_, reset, ()| Ok(reset?)))
    }
}
