//! Counters as plain dictionaries.
//!
//! Invariant: labels are names of rules and reasons, never keys.

use doorkeep::Stats;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The counters of a limiter as `{allowed, denied, store_failed, evicted, tracked_keys}`.
pub(crate) fn to_dict<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("allowed", &stats.allowed)?;
    dict.set_item("denied", &stats.denied)?;
    dict.set_item("store_failed", &stats.store_failed)?;
    dict.set_item("evicted", stats.evicted)?;
    dict.set_item("tracked_keys", stats.tracked_keys)?;
    Ok(dict)
}
