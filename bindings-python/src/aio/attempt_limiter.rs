//! The awaitable twin of `AttemptLimiter`.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::answer::Answer;
use crate::attempt_limiter::AttemptLimiter;
use crate::convert::Arg;
use crate::error::Result;
use crate::reservation::Reservation;

/// Admits a number of attempts per key, then locks the key out.
///
/// Like `doorkeep.AttemptLimiter`, with the same arguments, and every answer awaitable. At the call, a limiter in
/// memory decides, and a limiter over a store sends its request.
#[pyclass(module = "doorkeep.aio", name = "AttemptLimiter", frozen)]
pub(crate) struct AioAttemptLimiter {
    inner: AttemptLimiter,
}

#[pymethods]
impl AioAttemptLimiter {
    #[new]
    #[pyo3(
        signature = (threshold=None, lockout_window=None, max_tracked_keys=None, *,
            name=None, store=None, on_error=None, clock=None),
        text_signature = "(threshold, lockout_window, max_tracked_keys=50_000, *, \
            name=None, store=None, on_error=None, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        threshold: Arg<'_, '_>,
        lockout_window: Arg<'_, '_>,
        max_tracked_keys: Arg<'_, '_>,
        name: Arg<'_, '_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        let inner = AttemptLimiter::new(threshold, lockout_window, max_tracked_keys, name, store, on_error, clock)?;
        Ok(Self { inner })
    }

    /// Count one attempt for `key`, or deny it, in one atomic step. Like `doorkeep.AttemptLimiter.attempt`, awaitable.
    #[pyo3(signature = (key, now=None))]
    fn attempt(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.attempt", self.inner.start_attempt(py, key, now))
    }

    /// Count one attempt for `key`, or deny it, and return the whole decision. Like `doorkeep.AttemptLimiter.decide`,
    /// awaitable.
    #[pyo3(signature = (key, now=None))]
    fn decide(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.decide", self.inner.start_decide(py, key, now))
    }

    /// Count one attempt for `key`, or deny it, with a reservation that can cancel it. Like
    /// `doorkeep.AttemptLimiter.reserve`, awaitable.
    #[pyo3(signature = (key, now=None))]
    fn reserve(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.reserve", self.inner.start_reserve(py, key, now))
    }

    /// Take back a reserved attempt that should not have been counted. Like `doorkeep.AttemptLimiter.cancel`,
    /// awaitable.
    #[pyo3(signature = (reservation, now=None))]
    fn cancel(&self, py: Python<'_>, reservation: &Bound<'_, Reservation>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.cancel", self.inner.start_cancel(py, reservation, now))
    }

    /// Return whether an attempt for `key` would be denied now. Counts nothing.
    #[pyo3(signature = (key, now=None))]
    fn locked(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.locked", self.inner.start_locked(py, key, now))
    }

    /// Return how long an attempt for `key` would have to wait; None if it would be admitted. Counts nothing.
    #[pyo3(signature = (key, now=None))]
    fn retry_after(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.retry_after", self.inner.start_retry_after(py, key, now))
    }

    /// Forget `key` completely, including its lockout. Like `doorkeep.AttemptLimiter.reset`, awaitable.
    fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.reset", self.inner.start_reset(key))
    }

    /// Give back one attempt, without naming which. Deprecated: use `reserve` and `cancel`.
    #[pyo3(signature = (key, now=None))]
    fn refund(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.AttemptLimiter.refund", self.inner.start_refund(py, key, now))
    }

    /// Return the counters: `allowed`, `denied`, `store_failed`, `evicted` and `tracked_keys`.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.inner.stats(py)
    }

    fn __len__(&self) -> usize {
        self.inner.__len__()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.inner.__traverse__(visit)
    }
}
