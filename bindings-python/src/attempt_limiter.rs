//! The strike counter with a lockout, one key a call.
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
use crate::convert::{Given, optional_timedelta, read, read_duration, text};
use crate::decision::Decision;
use crate::error::Result;
use crate::options::{Place, read_name};
use crate::outcome;
use crate::reservation::Reservation;
use crate::stats;

/// Admits a number of attempts per key, then locks the key out.
///
/// Checking and counting are one atomic step, so however many callers race for a key, exactly `threshold` of them pass.
/// A key idle for a whole window starts again from zero; denied attempts change nothing. In memory, state
/// lives for at most `max_tracked_keys` keys, and a lockout is never evicted. Every call is amortised O(1) and safe from any
/// thread.
///
/// Parameters
/// ----------
/// threshold
///     The attempt that engages the lockout, 1 to 1024: with 5, five attempts pass and the sixth is denied.
/// lockout_window
///     How long a lockout lasts and how long attempts are remembered: a `timedelta`, a number of seconds, or text such
///     as `"15m"`.
/// max_tracked_keys
///     1 to 2**30, default 50,000. When every one of them is locked, new keys are denied.
/// name
///     Stands for the rule in decisions and counters. Matches `[a-z0-9-]{1,32}`.
/// store
///     A `RedisStore` to share one budget with other processes; then `name` is required. Defaults to this process's
///     memory.
/// on_error
///     `"local"`, `"open"` or `"closed"`: what answers when the store does not. Defaults to the store's.
/// clock
///     A callable giving seconds since the Unix epoch, read once a call. Defaults to a monotonic clock, over a store to
///     the store's.
///
/// Raises
/// ------
/// ConfigError
///     An argument is out of its bounds.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct AttemptLimiter {
    inner: either::AttemptLimiter,
    place: Place,
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
        threshold: Given<'_, '_>,
        lockout_window: Given<'_, '_>,
        max_tracked_keys: Given<'_, '_>,
        name: Given<'_, '_>,
        store: Given<'_, '_>,
        on_error: Given<'_, '_>,
        clock: Given<'_, '_>,
    ) -> Result<Self> {
        let strikes = doorkeep::Strikes {
            threshold: read(threshold, input::threshold)?,
            lockout_window: read_duration(lockout_window, input::lockout_window)?,
            max_tracked_keys: read(max_tracked_keys, input::max_tracked_keys)?,
        };
        let (place, name) = (Place::read(store, on_error)?, read_name(name)?);
        let inner = either::AttemptLimiter::new(place.store(), name.as_deref(), strikes, place.on_error)?;
        Ok(Self { inner, place, clock: Clock::new(clock)? })
    }

    /// Count one attempt for `key`, or deny it, in one atomic step.
    ///
    /// Parameters
    /// ----------
    /// key
    ///     Any non-empty text. Hashed at once; never stored or logged.
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
    ///     `key` is empty or not a text: that is an error, not a shared bucket.
    /// ConfigError
    ///     `now` is out of its bounds.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn attempt(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Result<Py<PyAny>> {
        self.ask_attempt(py, key, now)?.wait(py)
    }

    /// Count one attempt for `key`, or deny it, and give the whole answer.
    ///
    /// As `attempt`, with the wait, what remains and the reason.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn decide(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Result<Decision> {
        self.ask_decide(py, key, now)?.wait(py)
    }

    /// Count one attempt for `key`, or deny it, so that it can be cancelled.
    ///
    /// Returns
    /// -------
    /// Outcome, Reservation
    ///     A denied reservation cancels nothing. The pair is false when the attempt is denied.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn reserve(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Result<Reserved> {
        self.ask_reserve(py, key, now)?.wait(py)
    }

    /// Take back a reserved attempt that should never have counted.
    ///
    /// It takes back exactly that attempt: a lockout is lifted only by the attempt that engaged it, and a reservation
    /// that outlived its entry (reset, expired, evicted, cancelled before) cancels nothing.
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
        now: Given<'_, '_>,
    ) -> Result<&'static str> {
        self.ask_cancel(py, reservation, now)?.wait(py)
    }

    /// Say whether an attempt for `key` would be denied now. Counts nothing.
    ///
    /// A cheap look beforehand; `attempt` is what decides.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn locked(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Result<bool> {
        self.ask_locked(py, key, now)?.wait(py)
    }

    /// Say how long an attempt for `key` would be told to wait; None when it would be admitted. Counts nothing.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn retry_after(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> Result<Option<Py<PyDelta>>> {
        self.ask_retry_after(py, key, now)?.wait(py)
    }

    /// Forget `key` altogether, its lockout included, such as after a correct password.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it is forgotten: always true in memory, false when the store was not reached.
    pub(crate) fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<bool> {
        self.ask_reset(key)?.wait(py)
    }

    /// Give back one attempt without saying which.
    ///
    /// .. deprecated:: 0.1
    ///     It cannot tell whether the attempt engaged a lockout, so a locked key is left alone. Use `reserve` and
    ///     `cancel`.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn refund(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Result<Py<PyAny>> {
        self.ask_refund(py, key, now)?.wait(py)
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

type Reserved = Py<PyAny>;

// The calls: the blocking methods wait for them, those of `doorkeep.aio` wrap them in an awaitable.
impl AttemptLimiter {
    pub(crate) fn ask_attempt(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> CallResult<'_, Outcome, Py<PyAny>> {
        let answer = self.inner.attempt(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |py, outcome, ()| Ok(outcome::member(py, outcome?)?)))
    }

    pub(crate) fn ask_decide(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> CallResult<'_, Decided, Decision> {
        let answer = self.inner.decide(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |_, decision, ()| Ok(decision?.into())))
    }

    pub(crate) fn ask_reserve(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
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

    pub(crate) fn ask_cancel(
        &self,
        py: Python<'_>,
        reservation: &Bound<'_, Reservation>,
        now: Given<'_, '_>,
    ) -> Result<Call<'_, Cancelled, &'static str>> {
        let answer = self.inner.cancel(reservation.get().inner.clone(), self.clock.now(py, now)?);
        Ok(self.call(answer, |_, cancelled, ()| Ok(cancelled.as_str())))
    }

    pub(crate) fn ask_locked(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> CallResult<'_, bool, bool> {
        let answer = self.inner.locked(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |_, locked, ()| Ok(locked?)))
    }

    pub(crate) fn ask_retry_after(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> CallResult<'_, Option<Duration>, Option<Py<PyDelta>>> {
        let answer = self.inner.retry_after(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |py, wait, ()| Ok(optional_timedelta(py, wait?)?)))
    }

    pub(crate) fn ask_reset(&self, key: &Bound<'_, PyAny>) -> CallResult<'_, bool, bool> {
        let answer = self.inner.reset(&read_key(key)?);
        Ok(self.call(answer, |_, reset, ()| Ok(reset?)))
    }

    pub(crate) fn ask_refund(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> CallResult<'_, (), Py<PyAny>> {
        let answer = self.inner.refund(&read_key(key)?, self.clock.now(py, now)?);
        Ok(self.call(answer, |py, refunded, ()| Ok(refunded.map(|()| py.None())?)))
    }

    fn call<T, R>(&self, answer: either::Answer<T>, convert: fn(Python<'_>, T, ()) -> Result<R>) -> Call<'_, T, R> {
        Call::new(self.place.store(), answer, convert)
    }
}

/// The bytes of a single-key limiter's key.
pub(crate) fn read_key<'a>(key: &'a Bound<'_, PyAny>) -> Result<Cow<'a, [u8]>> {
    Ok(text(key)?.ok_or_else(input::not_text)?)
}

static RESERVED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
