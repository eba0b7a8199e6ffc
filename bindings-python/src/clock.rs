//! The clock of a limiter, for calls without `now`, and the clock of tests.
//!
//! Knows no limiter. Invariant: a clock is read at most once per call, and not at all when `now` is given.

use std::sync::atomic::{AtomicU64, Ordering};

use doorkeep::Timestamp;
use doorkeep::host::input::{self, Unit};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::convert::{Arg, read, read_duration};
use crate::error::Result;

/// The clock of a limiter.
pub(crate) enum Clock {
    System,
    Manual(Py<ManualClock>),
    Callable(Py<PyAny>),
}

impl Clock {
    pub(crate) fn new(given: Arg<'_, '_>) -> Result<Self> {
        let Some(object) = given.filter(|object| !object.is_none()) else {
            return Ok(Self::System);
        };
        if let Ok(manual) = object.cast::<ManualClock>() {
            return Ok(Self::Manual(manual.clone().unbind()));
        }
        if !object.is_callable() {
            return Err(PyTypeError::new_err("clock must be a callable giving seconds").into());
        }
        Ok(Self::Callable(object.clone().unbind()))
    }

    /// The time of a call; none leaves it to the default clock, which over a store is the server's.
    pub(crate) fn now(&self, py: Python<'_>, given: Arg<'_, '_>) -> Result<Option<Timestamp>> {
        if let Some(now) = given.filter(|now| !now.is_none()) {
            return read_now(Some(now)).map(Some);
        }
        match self {
            Self::System => Ok(None),
            Self::Manual(clock) => clock.get().timestamp().map(Some),
            Self::Callable(clock) => {
                let returned = clock.bind(py).call0()?;
                if returned.is_none() {
                    return Err(PyTypeError::new_err("clock must give seconds, it gave None").into());
                }
                read_now(Some(&returned)).map(Some)
            }
        }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::System => Self::System,
            Self::Manual(clock) => Self::Manual(clock.clone_ref(py)),
            Self::Callable(clock) => Self::Callable(clock.clone_ref(py)),
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Callable(clock) => visit.call(clock),
            Self::System | Self::Manual(_) => Ok(()),
        }
    }
}

/// A clock that a test moves by hand.
///
/// Pass it as `clock=` to any limiter. Calling it returns the time in seconds, so it also works wherever such a
/// callable is expected. Several threads may move it.
///
/// Parameters
/// ----------
/// start
///     Its first time, in seconds since the Unix epoch. Defaults to 0.
///
/// Raises
/// ------
/// ConfigError
///     `start` is not a number from 0 to 2**52 microseconds.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct ManualClock {
    micros: AtomicU64,
}

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (start=None), text_signature = "(start=0)")]
    fn new(start: Arg<'_, '_>) -> Result<Self> {
        let micros = match start.filter(|start| !start.is_none()) {
            Some(start) => read_now(Some(start))?.as_micros(),
            None => 0,
        };
        Ok(Self { micros: AtomicU64::new(micros) })
    }

    /// Move the clock forward.
    ///
    /// Parameters
    /// ----------
    /// duration
    ///     A `timedelta`, a number of seconds, or a string such as `"15m"`; at least one microsecond.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     `duration` is not a duration, or would move the clock past 2**52 microseconds. The clock has not moved.
    fn advance(&self, duration: &Bound<'_, PyAny>) -> Result<()> {
        let step = read_duration(Some(duration), input::span)?;
        let step = u64::try_from(step.as_micros()).unwrap_or(u64::MAX);
        let mut current = self.micros.load(Ordering::Relaxed);
        loop {
            let next = Timestamp::from_micros(current.saturating_add(step))?.as_micros();
            match self.micros.compare_exchange_weak(current, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(moved) => current = moved,
            }
        }
    }

    /// Set the clock to a time, which may be in the past.
    ///
    /// Parameters
    /// ----------
    /// moment
    ///     Seconds since the Unix epoch.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     `moment` is not a number from 0 to 2**52 microseconds. The clock has not moved.
    fn set(&self, moment: &Bound<'_, PyAny>) -> Result<()> {
        if moment.is_none() {
            return Err(PyTypeError::new_err("set takes seconds since the Unix epoch").into());
        }
        self.micros.store(read_now(Some(moment))?.as_micros(), Ordering::Relaxed);
        Ok(())
    }

    /// Return the time of the clock, in seconds since the Unix epoch.
    fn __call__(&self) -> f64 {
        self.micros.load(Ordering::Relaxed) as f64 / 1e6
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("ManualClock({})", self.__call__().into_pyobject(py)?.repr()?))
    }
}

impl ManualClock {
    fn timestamp(&self) -> Result<Timestamp> {
        Ok(Timestamp::from_micros(self.micros.load(Ordering::Relaxed))?)
    }
}

fn read_now(given: Arg<'_, '_>) -> Result<Timestamp> {
    read(given, |value| input::now(value, Unit::Seconds))
}
