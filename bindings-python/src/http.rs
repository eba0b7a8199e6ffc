//! A decision as an HTTP status and header fields; `doorkeep/http.py` has the public functions.
//!
//! Validates nothing. Specified by `tests/vectors/http.json`.

use std::time::Duration;

use doorkeep::host::input;
use doorkeep::http::{self, HeaderOptions};
use doorkeep::{Outcome, Reason};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::convert::{Arg, read_duration};
use crate::decision::Decision;
use crate::error::Result;
use crate::key;

/// The status of a decision.
#[pyfunction]
#[pyo3(name = "_http_status", signature = (decision, /))]
pub(crate) fn status(decision: &Bound<'_, Decision>) -> u16 {
    http::status(&decision.get().inner)
}

/// The header fields of a decision.
#[pyfunction]
#[pyo3(name = "_http_headers", signature = (decision, round_up, rate_limit, first=None, /, *rest))]
pub(crate) fn headers<'py>(
    decision: &Bound<'py, Decision>,
    round_up: Arg<'_, 'py>,
    rate_limit: bool,
    first: Arg<'_, 'py>,
    rest: &Bound<'py, PyTuple>,
) -> Result<Bound<'py, PyDict>> {
    let options = HeaderOptions { round_up: read_duration(round_up, input::round_up)?, rate_limit };
    let fields = key::with_keys(first, rest, |keys| Ok(http::headers(&decision.get().inner, keys, options)))?;
    to_dict(decision.py(), fields)
}

/// The header fields of a denial if only its wait is known.
#[pyfunction]
#[pyo3(name = "_http_wait", signature = (retry_after, /))]
pub(crate) fn wait(py: Python<'_>, retry_after: Option<Duration>) -> Result<Bound<'_, PyDict>> {
    let denied = doorkeep::Decision {
        outcome: Outcome::Denied,
        reason: Some(Reason::Limited),
        rule: None,
        retry_after,
        remaining: 0,
        reset_after: retry_after.unwrap_or_default(),
        degraded: false,
        engaged: Vec::new(),
    };
    to_dict(py, http::headers(&denied, &[], HeaderOptions::default()))
}

/// Refuses a duration that waits cannot be rounded up to.
#[pyfunction]
#[pyo3(name = "_http_round_up", signature = (round_up, /))]
pub(crate) fn round_up(round_up: Arg<'_, '_>) -> Result<()> {
    read_duration(round_up, input::round_up)?;
    Ok(())
}

fn to_dict<'py>(py: Python<'py>, fields: Vec<(&str, String)>) -> Result<Bound<'py, PyDict>> {
    let headers = PyDict::new(py);
    for (name, value) in fields {
        headers.set_item(name, value)?;
    }
    Ok(headers)
}
