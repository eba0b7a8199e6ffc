//! Rates and their string form.
//!
//! Bounds, parsing and arithmetic are the core's. Specified by `tests/vectors/rates.json`.

use std::str::FromStr;

use doorkeep::host::input;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyIterator, PyString, PyTuple};

use crate::convert::{read, read_duration, timedelta};
use crate::error::Result;

/// A number of attempts per period: a burst of that many, then one every `period / count`.
///
/// Parameters
/// ----------
/// count
///     Attempts per period, 1 to 2**26.
/// period
///     A `timedelta`, a number of seconds, or a string such as `"1h"`; a whole number of microseconds from 1 to 2**48.
///
/// Raises
/// ------
/// ConfigError
///     `count` or `period` is out of its bounds.
#[pyclass(module = "doorkeep", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Rate {
    inner: doorkeep::Rate,
}

#[pymethods]
impl Rate {
    #[new]
    fn new(count: &Bound<'_, PyAny>, period: &Bound<'_, PyAny>) -> Result<Self> {
        let count = read(Some(count), input::rate_count)?;
        let period = read_duration(Some(period), input::rate_period)?;
        Ok(Self { inner: doorkeep::Rate::new(count, period)? })
    }

    /// Attempts per period.
    #[getter]
    fn count(&self) -> u32 {
        self.inner.count()
    }

    /// The period that the count refills in.
    #[getter]
    fn period<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDelta>> {
        timedelta(py, self.inner.period())
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Rate({}, {:?})", self.inner.count(), period_text(self.inner))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<SavedRate<'py>> {
        let rate = slf.get();
        Ok((slf.get_type().into_any(), (rate.inner.count(), rate.period(slf.py())?)))
    }
}

type SavedRate<'py> = (Bound<'py, PyAny>, (u32, Bound<'py, PyDelta>));

/// Rates that apply together: an attempt passes if every one of them has room.
///
/// Compares by value. Iterating yields each `Rate` in canonical order: by period, then by count.
///
/// Parameters
/// ----------
/// rates
///     A string such as `"5/1m,50/1h"`, one `Rate`, or several; 1 to 16 different rates.
///
/// Raises
/// ------
/// ConfigError
///     A rate cannot be parsed, or is a duplicate. The message names it.
#[pyclass(module = "doorkeep", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Rates {
    pub(crate) inner: doorkeep::Rates,
}

#[pymethods]
impl Rates {
    #[new]
    fn new(rates: &Bound<'_, PyAny>) -> Result<Self> {
        Ok(Self { inner: read_rates(rates)? })
    }

    /// Return the most attempts that can pass within any span, however an attacker times them.
    ///
    /// Parameters
    /// ----------
    /// span
    ///     A `timedelta`, a number of seconds, or a string such as `"24h"`.
    ///
    /// Returns
    /// -------
    /// int
    ///     The smallest over all rates of `ceil(span * count / period) + count - 1`.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     `span` is not a duration.
    fn max_in(&self, span: &Bound<'_, PyAny>) -> Result<u64> {
        Ok(self.inner.max_in(read_duration(Some(span), input::span)?))
    }

    fn __len__(&self) -> usize {
        self.inner.iter().count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, self.inner.iter().map(|rate| Rate { inner: *rate }))?.try_iter()
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Rates({:?})", self.inner.to_string())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().inner.to_string(),))
    }
}

/// Reads any of the forms that rates may have.
pub(crate) fn read_rates(rates: &Bound<'_, PyAny>) -> Result<doorkeep::Rates> {
    if let Ok(rates) = rates.cast::<Rates>() {
        return Ok(rates.get().inner.clone());
    }
    if let Ok(rate) = rates.cast::<Rate>() {
        return Ok(doorkeep::Rates::new(vec![rate.get().inner])?);
    }
    if let Ok(text) = rates.cast::<PyString>() {
        return Ok(doorkeep::Rates::from_str(&text.to_string_lossy())?);
    }
    let Ok(several) = rates.try_iter() else {
        return Err(not_rates().into());
    };
    let mut read = Vec::new();
    // One more than a rule accepts is enough to refuse them, so that an endless iterable ends here.
    for rate in several.take(17) {
        read.push(rate?.cast::<Rate>().map_err(|_| not_rates())?.get().inner);
    }
    Ok(doorkeep::Rates::new(read)?)
}

fn not_rates() -> PyErr {
    PyTypeError::new_err("rates are text such as \"5/1m,50/1h\", a Rate, or several of them")
}

fn period_text(rate: doorkeep::Rate) -> String {
    let text = rate.to_string();
    text.split_once('/').map_or(text.clone(), |(_, period)| period.to_owned())
}
