//! Calls that do nothing, as the floor that benchmarks compare with: the cost of crossing alone.

use std::time::Duration;

use doorkeep::Outcome;
use pyo3::prelude::*;

use crate::decision::Decision;
use crate::outcome;

/// Takes a text and gives a cached enum member.
#[pyfunction]
pub(crate) fn _noop_enum(py: Python<'_>, key: &str) -> PyResult<Py<PyAny>> {
    let outcome = if key.is_empty() { Outcome::Denied } else { Outcome::Allowed };
    outcome::member(py, outcome)
}

/// Takes an object and gives a new one.
#[pyfunction]
pub(crate) fn _noop_object(key: &Bound<'_, PyAny>) -> Decision {
    Decision::from(doorkeep::Decision {
        outcome: if key.is_none() { Outcome::Denied } else { Outcome::Allowed },
        reason: None,
        rule: None,
        retry_after: Some(Duration::ZERO),
        remaining: 0,
        reset_after: Duration::ZERO,
        degraded: false,
        engaged: Vec::new(),
    })
}
