//! The decision about a call.
//!
//! Knows no limiter. Invariant: it reports what the core decided and calculates nothing.

use std::sync::Arc;
use std::time::Duration;

use doorkeep::Reason;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyString, PyTuple};

use crate::convert::timedelta;
use crate::outcome::{self, outcome as to_outcome};

/// The decision about a call. True if it was allowed.
///
/// Limiters make it. It compares by value and can be pickled.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct Decision {
    pub(crate) inner: doorkeep::Decision,
}

impl From<doorkeep::Decision> for Decision {
    fn from(inner: doorkeep::Decision) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Decision {
    /// Whether the call was allowed.
    #[getter]
    fn allowed(&self) -> bool {
        self.inner.allowed()
    }

    /// The result as an `Outcome`.
    #[getter]
    fn outcome(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        outcome::member(py, self.inner.outcome)
    }

    /// Why it was denied: `"limited"`, `"locked"`, `"saturated"` or `"unavailable"`; None when allowed.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        Some(PyString::intern(py, self.inner.reason?.as_str()))
    }

    /// The name of the rule that denied with the longest wait; None when allowed.
    #[getter]
    fn rule(&self) -> Option<&str> {
        self.inner.rule.as_deref()
    }

    /// The time until the same call would be allowed if no other call is made, exact to the microsecond.
    ///
    /// Zero if allowed. None if the call can never be allowed, or if the limiter is unavailable.
    #[getter]
    fn retry_after<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDelta>>> {
        self.inner.retry_after.map(|wait| timedelta(py, wait)).transpose()
    }

    /// The wait as whole seconds for an HTTP `Retry-After`: rounded up, at least 1 on a denial, 0 when allowed.
    ///
    /// None if the call can never be allowed, or if the limiter is unavailable.
    #[getter]
    fn retry_after_seconds(&self) -> Option<u64> {
        self.inner.retry_after_seconds()
    }

    /// How many more such calls would be allowed now, the smallest over all keys.
    #[getter]
    fn remaining(&self) -> u32 {
        self.inner.remaining
    }

    /// The time until every key of the call is as if it were unused, the longest over all keys.
    #[getter]
    fn reset_after<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDelta>> {
        timedelta(py, self.inner.reset_after)
    }

    /// Whether the store failed and the limiter's `on_error` decided instead.
    #[getter]
    fn degraded(&self) -> bool {
        self.inner.degraded
    }

    /// The names of the rules whose lockout this attempt engaged.
    #[getter]
    fn engaged<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.engaged.iter().map(|rule| &**rule))
    }

    fn __bool__(&self) -> bool {
        self.inner.allowed()
    }

    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let same = self.inner == other.get().inner;
        let answer = match op {
            CompareOp::Eq => same,
            CompareOp::Ne => !same,
            _ => return Ok(py.NotImplemented()),
        };
        Ok(answer.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        let inner = &self.inner;
        (inner.outcome as u8, &inner.rule, inner.retry_after, inner.remaining, inner.reset_after).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let inner = &self.inner;
        let mut shown = format!("<Decision {}", inner.outcome.as_str());
        if let (Some(rule), Some(reason)) = (&inner.rule, inner.reason) {
            shown += &format!(" rule={rule} reason={}", reason.as_str());
        }
        match inner.retry_after {
            Some(Duration::ZERO) => {}
            Some(wait) => shown += &format!(" retry_after={wait:?}"),
            None => shown += " retry_after=never",
        }
        shown += &format!(" remaining={} reset_after={:?}", inner.remaining, inner.reset_after);
        for rule in &inner.engaged {
            shown += &format!(" engaged={rule}");
        }
        if inner.degraded {
            shown += " degraded";
        }
        shown + ">"
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Saved)> {
        let inner = &self.inner;
        let restore = py.import("doorkeep._native")?.getattr("_restore_decision")?;
        let saved = (
            inner.outcome as u8,
            inner.reason.map(|reason| reason.as_str().to_owned()),
            inner.rule.as_deref().map(str::to_owned),
            inner.retry_after,
            inner.remaining,
            inner.reset_after,
            inner.degraded,
            inner.engaged.iter().map(|rule| rule.to_string()).collect(),
        );
        Ok((restore, saved))
    }
}

type Saved = (u8, Option<String>, Option<String>, Option<Duration>, u32, Duration, bool, Vec<String>);

/// Rebuilds a pickled decision.
#[pyfunction]
#[pyo3(name = "_restore_decision")]
#[allow(clippy::too_many_arguments, reason = "the fields of a decision, in their order")]
pub(crate) fn restore(
    outcome: u8,
    reason: Option<&str>,
    rule: Option<&str>,
    retry_after: Option<Duration>,
    remaining: u32,
    reset_after: Duration,
    degraded: bool,
    engaged: Vec<String>,
) -> Decision {
    let reasons = [Reason::Limited, Reason::Locked, Reason::Saturated, Reason::Unavailable];
    Decision::from(doorkeep::Decision {
        outcome: to_outcome(outcome),
        reason: reasons.into_iter().find(|known| Some(known.as_str()) == reason),
        rule: rule.map(Arc::from),
        retry_after,
        remaining,
        reset_after,
        degraded,
        engaged: engaged.into_iter().map(Arc::from).collect(),
    })
}
