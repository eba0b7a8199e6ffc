//! The strike counter with a lockout, one key a call.
//!
//! Conversions only. Specified by `tests/vectors/strikes*.json`.

use std::borrow::Cow;

use doorkeep::input;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use crate::clock::Clock;
use crate::convert::{Given, read, read_duration, text, timedelta};
use crate::decision::Decision;
use crate::options::{check_store, with_name};
use crate::outcome;
use crate::refused::Answer;
use crate::reservation::Reservation;
use crate::stats;

/// Admits a number of attempts per key, then locks the key out.
///
/// Checking and counting are one atomic step, so however many callers race for a key, exactly `threshold` of them pass.
/// A key idle for a whole window starts again from zero; denied attempts change nothing. State lives in this process,
/// for at most `max_tracked_keys` keys, and a lockout is never evicted. Every call is amortised O(1) and safe from any
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
pub(crate) struct AttemptLimiter {
    inner: doorkeep::AttemptLimiter,
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
    ) -> Answer<Self> {
        let strikes = doorkeep::Strikes {
            threshold: read(threshold, input::threshold)?,
            lockout_window: read_duration(lockout_window, input::lockout_window)?,
            max_tracked_keys: read(max_tracked_keys, input::max_tracked_keys)?,
        };
        check_store(store, on_error)?;
        let limiter = doorkeep::AttemptLimiter::new(strikes)?;
        let inner = with_name(limiter, name, doorkeep::AttemptLimiter::named)?;
        Ok(Self { inner, clock: Clock::new(clock)? })
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
    pub(crate) fn attempt(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Answer<Py<PyAny>> {
        let key = read_key(key)?;
        let outcome = self.inner.try_attempt(key, self.clock.now(py, now)?)?;
        Ok(outcome::member(py, outcome)?)
    }

    /// Count one attempt for `key`, or deny it, and give the whole answer.
    ///
    /// As `attempt`, with the wait, what remains and the reason.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn decide(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Answer<Decision> {
        let key = read_key(key)?;
        Ok(self.inner.decide(key, self.clock.now(py, now)?)?.into())
    }

    /// Count one attempt for `key`, or deny it, so that it can be cancelled.
    ///
    /// Returns
    /// -------
    /// Outcome, Reservation
    ///     A denied reservation cancels nothing.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn reserve(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> Answer<(Py<PyAny>, Py<Reservation>)> {
        let key = read_key(key)?;
        let (decision, inner) = self.inner.try_reserve(key, self.clock.now(py, now)?)?;
        let outcome = outcome::member(py, decision.outcome)?;
        let decision = Py::new(py, Decision::from(decision))?;
        Ok((outcome, Py::new(py, Reservation { inner, decision })?))
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
    ) -> Answer<&'static str> {
        let now = self.clock.now(py, now)?;
        Ok(self.inner.cancel(reservation.get().inner.clone(), now).as_str())
    }

    /// Say whether an attempt for `key` would be denied now. Counts nothing.
    ///
    /// A cheap look beforehand; `attempt` is what decides.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn locked(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Answer<bool> {
        let key = read_key(key)?;
        Ok(self.inner.locked(key, self.clock.now(py, now)?)?)
    }

    /// Say how long an attempt for `key` would be told to wait; None when it would be admitted. Counts nothing.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn retry_after<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'_, PyAny>,
        now: Given<'_, '_>,
    ) -> Answer<Option<Bound<'py, PyDelta>>> {
        let key = read_key(key)?;
        let wait = self.inner.retry_after(key, self.clock.now(py, now)?)?;
        Ok(wait.map(|wait| timedelta(py, wait)).transpose()?)
    }

    /// Forget `key` altogether, its lockout included, such as after a correct password.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it is forgotten: always true in memory.
    pub(crate) fn reset(&self, key: &Bound<'_, PyAny>) -> Answer<bool> {
        Ok(self.inner.reset(read_key(key)?)?)
    }

    /// Give back one attempt without saying which.
    ///
    /// .. deprecated:: 0.1
    ///     It cannot tell whether the attempt engaged a lockout, so a locked key is left alone. Use `reserve` and
    ///     `cancel`.
    #[pyo3(signature = (key, now=None))]
    pub(crate) fn refund(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Given<'_, '_>) -> Answer<()> {
        let key = read_key(key)?;
        Ok(self.inner.refund(key, self.clock.now(py, now)?)?)
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

/// The bytes of a single-key limiter's key.
pub(crate) fn read_key<'a>(key: &'a Bound<'_, PyAny>) -> Answer<Cow<'a, [u8]>> {
    Ok(text(key)?.ok_or_else(input::not_text)?)
}
