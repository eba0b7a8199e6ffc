//! The lab: takes a scenario as a string and returns columns as bytes.
//!
//! Validates nothing. Invariant: a run holds the GIL only while it reports its progress.

use std::ops::ControlFlow;

use doorkeep::host::input::{Unit, Value};
use doorkeep_lab::{Column, Progress, Scenario, Table};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict};

use crate::convert::read;
use crate::error::Result;

/// Run a scenario and return its tables: columns of float64 as bytes, strings as lists.
///
/// `progress(events, done)` is called every 65,536 attempts, or points in time without attempts; `False` ends the run
/// with the results so far; so does Ctrl-C.
#[pyfunction]
#[pyo3(name = "lab_run", signature = (scenario, progress=None))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    scenario: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyDict>> {
    let scenario = Scenario::read(scenario)?;
    let progress = progress.map(Bound::unbind);
    let (outcome, raised) = py.detach(|| {
        let mut raised = None;
        let outcome = scenario.run_watched(|at| {
            let continues = Python::attach(|py| match report_progress(py, progress.as_ref(), at) {
                Ok(continues) => continues,
                // After an interrupt the results so far are still useful.
                Err(interrupt) if interrupt.is_instance_of::<PyKeyboardInterrupt>(py) => false,
                Err(error) => {
                    raised = Some(error);
                    false
                }
            });
            if continues { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        (outcome, raised)
    });
    if let Some(error) = raised {
        return Err(error.into());
    }
    let tables = PyDict::new(py);
    for (name, table) in outcome?.tables() {
        tables.set_item(name, columns(py, table)?)?;
    }
    Ok(tables)
}

/// Validate a scenario.
#[pyfunction]
#[pyo3(name = "lab_check")]
pub(crate) fn check(scenario: &str) -> Result<()> {
    Scenario::read(scenario)?;
    Ok(())
}

/// Validate a scenario and return it as JSON.
#[pyfunction]
#[pyo3(name = "lab_json")]
pub(crate) fn json(scenario: &str) -> Result<String> {
    Ok(Scenario::json(scenario)?)
}

/// Return what a policy such as `5/1m,50/1h`, `s5/15m` or `w100/1m` admits in spans from a minute to a year.
#[pyfunction]
#[pyo3(name = "lab_bounds")]
pub(crate) fn bounds<'py>(py: Python<'py>, policy: &str) -> Result<Bound<'py, PyDict>> {
    Ok(columns(py, &doorkeep_lab::bounds_of(policy)?)?)
}

/// Return the value of a closed form by its name. Durations are strings or seconds; results are seconds.
#[pyfunction]
#[pyo3(name = "lab_bound", signature = (name, /, **arguments))]
pub(crate) fn bound(name: &str, arguments: Option<&Bound<'_, PyDict>>) -> Result<f64> {
    let mut names: Vec<String> = Vec::new();
    let mut given: Vec<Owned> = Vec::new();
    for (name, value) in arguments.into_iter().flatten() {
        names.push(name.to_string());
        given.push(read(Some(&value), |value| Ok(Owned::of(value)))?);
    }
    let arguments: Vec<(&str, Value<'_>)> =
        names.iter().zip(&given).map(|(name, value)| (name.as_str(), value.value())).collect();
    Ok(doorkeep_lab::bound(name, &arguments, Unit::Seconds)?)
}

/// A plain argument that may outlive its object.
enum Owned {
    Text(String),
    Plain(Value<'static>),
}

impl Owned {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Integer(number) => Self::Plain(Value::Integer(number)),
            Value::Float(number) => Self::Plain(Value::Float(number)),
            Value::Bool(flag) => Self::Plain(Value::Bool(flag)),
            Value::Missing => Self::Plain(Value::Missing),
            Value::Other => Self::Plain(Value::Other),
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text),
            Self::Plain(value) => *value,
        }
    }
}

/// Whether the run continues.
fn report_progress(py: Python<'_>, progress: Option<&Py<PyAny>>, at: Progress) -> PyResult<bool> {
    py.check_signals()?;
    let Some(progress) = progress else { return Ok(true) };
    let answer = progress.bind(py).call1((at.events, at.done))?;
    Ok(!answer.cast::<PyBool>().is_ok_and(|answer| !answer.is_true()))
}

fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, column) in &table.0 {
        match column {
            Column::Texts(texts) => columns.set_item(name, texts)?,
            Column::Numbers(numbers) => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
                columns.set_item(name, PyBytes::new(py, &bytes))?;
            }
        }
    }
    Ok(columns)
}
