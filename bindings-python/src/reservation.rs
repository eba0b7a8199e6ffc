//! A reserved attempt of an `AttemptLimiter`, which can be cancelled.
//!
//! Invariant: cancelling it again, or cancelling a denied attempt, does nothing.

use doorkeep::host::either;
use pyo3::prelude::*;

use crate::decision::Decision;

/// An attempt that can be taken back with `AttemptLimiter.cancel`. For a denied attempt it cancels nothing and is
/// false.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct Reservation {
    pub(crate) inner: either::Reservation,
    pub(crate) decision: Py<Decision>,
}

#[pymethods]
impl Reservation {
    /// The decision about the attempt.
    #[getter]
    fn decision(&self, py: Python<'_>) -> Py<Decision> {
        self.decision.clone_ref(py)
    }

    fn __bool__(&self) -> bool {
        self.decision.get().inner.allowed()
    }

    fn __repr__(&self) -> String {
        format!("<Reservation {}>", self.decision.get().inner.outcome.as_str())
    }
}
