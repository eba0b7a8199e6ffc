//! Calls that do nothing but cross from Python into a native module: the floor under a call of the package.
//!
//! Crosses by the same crate as the package, and uses nothing of the package itself.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

/// Stands in for a limiter.
#[pyclass(frozen)]
struct Floor {
    outcome: Py<PyAny>,
}

/// An object with the fields of a decision: making and freeing one is part of what a call costs at least.
#[pyclass(frozen)]
struct Answer {
    #[pyo3(get)]
    allowed: bool,
    _reason: Option<u8>,
    _rule: Option<Arc<str>>,
    _retry_after: Option<Duration>,
    _remaining: u32,
    _reset_after: Duration,
    _engaged: Vec<Arc<str>>,
}

#[pymethods]
impl Floor {
    /// Keep the object that `attempt` returns.
    #[new]
    fn new(outcome: Py<PyAny>) -> Self {
        Self { outcome }
    }

    /// Read a string and return an object that exists, as `AttemptLimiter.attempt` does.
    fn attempt(&self, py: Python<'_>, key: &str) -> Option<Py<PyAny>> {
        (!key.is_empty()).then(|| self.outcome.clone_ref(py))
    }

    /// Read an object and return a new one, as `Limiter.decide` does.
    fn decide(&self, key: &Bound<'_, PyAny>) -> Answer {
        Answer {
            allowed: !key.is_none(),
            _reason: None,
            _rule: None,
            _retry_after: Some(Duration::ZERO),
            _remaining: 0,
            _reset_after: Duration::ZERO,
            _engaged: Vec::new(),
        }
    }
}

#[pymodule]
fn floor(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Floor>()
}
