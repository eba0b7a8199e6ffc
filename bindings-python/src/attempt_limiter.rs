//! The strike counter with a lockout, one key per call.
//!
//! Conversions only. Specified by `tests/vectors/strikes*.json`.

use std::borrow::Cow;
use std::time::Duration;

use doorkeep::host::{either, input};
use doorkeep::{Cancelled, Decision as Decided, Outcome};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDelta, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use crate::call::{Call, CallResult};
use crate::clock::Clock;
use crate::convert::{Arg, optional_timedelta, read, read_duration, text};
use crate::decision::Decision;
use crate::error::Result;
use crate::options::{Backend, read_name};
use crate::outcome;
use crate::reservation::Reservation;
use crate::stats;

/// Admits a number of attempts per key, then locks the key out.
///
/// Checking and counting are one atomic step: however many callers race for a key, exactly `threshold` of them pass. A
/// key that is idle for a whole window starts again from zero; denied attempts change nothing. In memory at most
/// `max_tracked_keys` keys are tracked, and a lockout is never evicted. Every call is amortised O(1) and safe from any
/// thread.
///
/// Parameters
/// ----------
/// threshold
///     The attempt that engages the lockout, 1 to 1024: with 5, five attempts pass and the sixth is denied.
/// lockout_window
///     How long a lockout lasts and how long attempts are remembered: a `timedelta`, a number of seconds, or a string
///     such as `"15m"`.
/// max_tracked_keys
///     1 to 2**30, default 50,000. When all of them are locked, new keys are denied.
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
pub(crate) struct AttemptLimiter {
    inner: either::AttemptLimiter,
    backend: Backend,
    clock: Clock,
}

#[pymethods]
impl AttemptLimiter {
    #[new]
    #[pyo3(
        signature = (threshold=None, lockout_window=None, max_tracked_keys=None, *,
            name=None, store=None, on_error=None, clock=None),
        text_signature = "(threshold, lockout_window, max_tracked_keys=50_000, *, \
            name=None, store=None, on_error=None, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    pub(crate) fn new(
        threshold: Arg<'_, '_>,
        lockout_window: Arg<'_, '_>,
        max_tracked_keys: Arg<'_, '_>,
        name: Arg<'_, '_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        let strikes = doorkeep::Strikes {
            threshold: read(threshold, input::threshold)?,
            lockout_window: read_duration(lockout_window, input::lockout_window)?,
            max_tracked_keys: read(max_tracked_keys, input::max_tracked_keys)?,
        };
        let (backend, name) = (Backend::read(store, on_error)?, read_name(name)?);
        let inner = either::AttemptLimiter::new(backend.store(), name.as_deref(), strikes, backend.on_error)?;
        Ok(Self { inner, backend, clock: Clock::new(clock)? })
    }

    /// Count one attempt for `key`, or deny it, in one atomic step.
    ///
    /// Parameters
    /// ----------
    /// key
    ///     Any non-empty string. Hashed immediately; never stored or logged.
    /// now
    ///     Seconds since the Unix epoch. Defaults to the limiter's clock.
    ///
    /// Returns
    /// -------
    /// Outcome
    ///     `DENIED` is falsy. `ALLOWED_LAST_ATTEMPT` means that this attempt engaged the lockout.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `key` is empty or not a string: an empty key is an error, not a shared bucket.
    /// ConfigError
    ///     `now` is out of its bounds.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn attempt(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<Py<PyAny>> {
        self.start_attempt(py, key, now)?.wait(py)
    }

    /// Count one attempt for `key`, or deny it, and return the whole decision.
    ///
    /// Like `attempt`, with the wait, the remaining attempts and the reason.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn decide(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<Decision> {
        self.start_decide(py, key, now)?.wait(py)
    }

    /// Count one attempt for `key`, or deny it, with a reservation that can cancel it.
    ///
    /// Returns
    /// -------
    /// Outcome, Reservation
    ///     The reservation of a denied attempt cancels nothing. The pair is false if the attempt is denied.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn reserve(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<Reserved> {
        self.start_reserve(py, key, now)?.wait(py)
    }

    /// Take back a reserved attempt that should not have been counted.
    ///
    /// It takes back exactly that attempt. Only the attempt that engaged a lockout lifts it. A reservation whose entry
    /// is gone (reset, expired, evicted or cancelled before) cancels nothing.
    ///
    /// Returns
    /// -------
    /// str
    ///     `"nothing"`, `"given_back"` or `"lifted"`.
    #[pyo3(signature = (reservation, now=None))]
    pub(crate) fn cancel(
        &self,
        py: Python<'_>,
        reservation: &Bound<'_, Reservation>,
        now: Arg<'_, '_>,
    ) -> Result<&'static str> {
        self.start_cancel(py, reservation, now)?.wait(py)
    }

    /// Return whether an attempt for `key` would be denied now. Counts nothing.
    ///
    /// A cheap check in advance; `attempt` decides.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn locked(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<bool> {
        self.start_locked(py, key, now)?.wait(py)
    }

    /// Return how long an attempt for `key` would have to wait; None if it would be admitted. Counts nothing.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn retry_after(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> Result<Option<Py<PyDelta>>> {
        self.start_retry_after(py, key, now)?.wait(py)
    }

    /// Forget `key` completely, including its lockout, such as after a correct password.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether the key was forgotten: always true in memory, false if the store was not reached.
    pub(crate) fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<bool> {
        self.start_reset(key)?.wait(py)
    }

    /// Give back one attempt, without naming which.
    ///
    /// .. deprecated:: 0.1
    ///     It cannot know whether the attempt engaged a lockout, so a locked key is left as it is. Use `reserve` and
    ///     `cancel`.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn refund(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Result<Py<PyAny>> {
        self.start_refund(py, key, now)?.wait(py)
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

type Reserved = Py<PyAny>;

// The calls: the blocking methods wait for them, those of `doorkeep.aio` wrap them in an awaitable.
impl AttemptLimiter {
    pub(crate) fn start_attempt(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Outcome, Py<PyAny>> {
        let answer = self.inner.attempt(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |py, outcome, ()| Ok(outcome::member(py, outcome?)?)))
    }

    pub(crate) fn start_decide(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Decided, Decision> {
        let answer = self.inner.decide(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |_, decision, ()| Ok(decision?.into())))
    }

    pub(crate) fn start_reserve(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, (Decided, either::Reservation), Reserved> {
        let answer = self.inner.reserve(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |py, reserved, ()| {
            let (decision, inner) = reserved?;
            let outcome = outcome::member(py, decision.outcome)?;
            let decision = Py::new(py, Decision::from(decision))?;
            let pair = (outcome, Py::new(py, Reservation { inner, decision })?);
            Ok(RESERVED.import(py, "doorkeep._outcome", "Reserved")?.call1((pair,))?.unbind())
        }))
    }

    pub(crate) fn start_cancel(
        &self,
        py: Python<'_>,
        reservation: &Bound<'_, Reservation>,
        now: Arg<'_, '_>,
    ) -> Result<Call<'_, Cancelled, &'static str>> {
        let answer = self.inner.cancel(reservation.get().inner.clone(), self.clock.now(py, now)?);
        Ok(self.call(answer, |_, cancelled, ()| Ok(cancelled.as_str())))
    }

    pub(crate) fn start_locked(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, bool, bool> {
        let answer = self.inner.locked(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |_, locked, ()| Ok(locked?)))
    }

    pub(crate) fn start_retry_after(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Option<Duration>, Option<Py<PyDelta>>> {
        let answer = self.inner.retry_after(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |py, wait, ()| Ok(optional_timedelta(py, wait?)?)))
    }

    pub(crate) fn start_reset(&self, key: &Bound<'_, PyAny>) -> CallResult<'_, bool, bool> {
        let answer = self.inner.reset(&read_key(key)?);
        Ok(self.call(answer, |_, reset, ()| Ok(reset?)))
    }

    pub(crate) fn start_refund(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, (), Py<PyAny>> {
        let answer = self.inner.refund(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |py, refunded, ()| Ok(refunded.map(|()| py.None())?)))
    }

    fn call<T, R>(&self, answer: either::Answer<T>, convert: fn(Python<'_>, T, ()) -> Result<R>) -> Call<'_, T, R> {
        Call::new(self.backend.store(), answer, convert)
    }
}

/// The bytes of a key of a limiter that takes strings.
pub(crate) fn read_key<'a>(key: &'a Bound<'_, PyAny>) -> Result<Cow<'a, [u8]>> {
    Ok(text(key)?.ok_or_else(input::not_text)?)
}

static RESERVED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
