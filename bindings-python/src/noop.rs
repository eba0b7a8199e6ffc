//! Calls that do nothing, as the floor that benchmarks compare with: the cost of crossing alone.

use std::time::Duration;

use doorkeep::Outcome;
use pyo3::prelude::*;

use crate::decision::Decision;
use crate::outcome;

/// Stands in the native module as `_noop_limiter`.
#[pyclass(name = "_NoopLimiter", module = "doorkeep._native", frozen)]
pub(crate) struct NoopLimiter;

#[pymethods]
impl NoopLimiter {
    /// Take a text and give a cached enum member.
    fn attempt(&self, py: Python<'_>, key: &str) -> PyResult<Py<PyAny>> {
        outcome::member(py, if key.is_empty() { Outcome::Denied } else { Outcome::Allowed })
    }

    /// Take an object and give a new one.
    fn allow(&self, key: &Bound<'_, PyAny>) -> Decision {
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
}
