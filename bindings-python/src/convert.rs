//! Converts Python arguments for the core's `input`, and durations back to Python.
//!
//! Validates nothing: bounds, defaults and error texts are the core's. Invariant: no value of any type panics here.

use std::borrow::Cow;
use std::time::Duration;

use doorkeep::Error;
use doorkeep::host::input::{self, Unit, Value};
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDelta, PyDeltaAccess, PyFloat, PyInt, PySlice, PyString};

use crate::error::Result;

/// An optional argument. `None` counts as omitted.
pub(crate) type Arg<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Reads a plain argument with one of the core's readers.
pub(crate) fn read<T>(given: Arg<'_, '_>, reader: impl FnOnce(Value<'_>) -> Result<T, Error>) -> Result<T> {
    let Some(object) = given.filter(|object| !object.is_none()) else {
        return Ok(reader(Value::Missing)?);
    };
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(reader(Value::Text(&text.to_string_lossy()))?);
    }
    Ok(reader(plain(object))?)
}

/// Reads a duration: a `timedelta`, seconds, or a string such as `15m`.
pub(crate) fn read_duration<T>(
    given: Arg<'_, '_>,
    reader: impl FnOnce(Value<'_>, Unit) -> Result<T, Error>,
) -> Result<T> {
    if let Some(delta) = given.and_then(|object| object.cast::<PyDelta>().ok()) {
        return Ok(reader(Value::Float(seconds_of(delta)), Unit::Seconds)?);
    }
    read(given, |value| reader(value, Unit::Seconds))
}

/// The bytes of a string: UTF-8, or WTF-8 if it has lone surrogates. `None` for other types.
pub(crate) fn text<'a>(object: &'a Bound<'_, PyAny>) -> Result<Option<Cow<'a, [u8]>>> {
    let Ok(text) = object.cast::<PyString>() else {
        return Ok(None);
    };
    match text.to_str() {
        Ok(text) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) => lone_surrogates(text).map(Some),
        Err(error) => Err(error.into()),
    }
}

/// The first `reach` characters of a string, so that one of megabytes costs nothing. Other types are returned
/// unchanged.
pub(crate) fn start_of<'py>(object: &Bound<'py, PyAny>, reach: usize) -> PyResult<Bound<'py, PyAny>> {
    if !object.is_instance_of::<PyString>() || object.len()? <= reach {
        return Ok(object.clone());
    }
    let reach = isize::try_from(reach).unwrap_or(isize::MAX);
    object.get_item(PySlice::new(object.py(), 0, reach, 1))
}

/// The last `reach` characters of a string, like [`start_of`].
pub(crate) fn end_of<'py>(object: &Bound<'py, PyAny>, reach: usize) -> PyResult<Bound<'py, PyAny>> {
    if !object.is_instance_of::<PyString>() || object.len()? <= reach {
        return Ok(object.clone());
    }
    let reach = isize::try_from(reach).unwrap_or(isize::MAX);
    object.get_item(PySlice::new(object.py(), -reach, isize::MAX, 1))
}

/// The name of a rule. Lone surrogates become replacement characters, which are not valid in a name either.
pub(crate) fn name(object: &Bound<'_, PyAny>) -> Result<String> {
    match object.cast::<PyString>() {
        Ok(name) => Ok(name.to_string_lossy().into_owned()),
        Err(_) => Err(PyTypeError::new_err("name must be text").into()),
    }
}

/// A duration as a `timedelta`.
pub(crate) fn timedelta(py: Python<'_>, duration: Duration) -> PyResult<Bound<'_, PyDelta>> {
    // Bounded durations have no day count past i32; saturating avoids a panic even then.
    let days = i32::try_from(duration.as_secs() / 86_400).unwrap_or(999_999_999);
    let seconds = i32::try_from(duration.as_secs() % 86_400).unwrap_or(0);
    let micros = i32::try_from(duration.subsec_micros()).unwrap_or(0);
    PyDelta::new(py, days, seconds, micros, false)
}

/// An optional duration as a `timedelta` or `None`.
pub(crate) fn optional_timedelta(py: Python<'_>, duration: Option<Duration>) -> PyResult<Option<Py<PyDelta>>> {
    duration.map(|duration| timedelta(py, duration).map(Bound::unbind)).transpose()
}

fn plain<'a>(object: &Bound<'_, PyAny>) -> Value<'a> {
    if let Ok(flag) = object.cast::<PyBool>() {
        return Value::Bool(flag.is_true());
    }
    if object.is_instance_of::<PyInt>() {
        // Most numbers fit into 64 bits, which convert much faster than 128.
        if let Ok(number) = object.extract::<i64>() {
            return Value::Integer(i128::from(number));
        }
        return match object.extract::<i128>() {
            Ok(number) => Value::Integer(number),
            Err(_) if object.lt(0).unwrap_or(false) => Value::Integer(i128::MIN),
            Err(_) => Value::Integer(i128::MAX),
        };
    }
    match object.cast::<PyFloat>() {
        Ok(number) => Value::Float(number.value()),
        Err(_) => Value::Other,
    }
}

// Every duration within bounds has at most 15 digits, so its float prints as exactly its microseconds.
fn seconds_of(delta: &Bound<'_, PyDelta>) -> f64 {
    let seconds = i64::from(delta.get_days()) * 86_400 + i64::from(delta.get_seconds());
    let micros = i128::from(seconds) * 1_000_000 + i128::from(delta.get_microseconds());
    micros as f64 / 1e6
}

fn lone_surrogates<'a>(text: &Bound<'_, PyString>) -> Result<Cow<'a, [u8]>> {
    let encoded = text.call_method1(intern!(text.py(), "encode"), ("utf-16-le", "surrogatepass"))?;
    let encoded = encoded.cast::<PyBytes>().map_err(PyErr::from)?;
    let (pairs, _) = encoded.as_bytes().as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    Ok(Cow::Owned(input::wtf8(&units)))
}
