//! The events of stores, as lines of the logger `doorkeep`.
//!
//! Each call pulls them in its own thread, so none of our threads runs Python. Invariants: no line contains a key or a
//! password, and a log handler that raises does not affect a decision.

use doorkeep::redis::{Event, RedisStore};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

/// Logs the events since the last call. Takes no lock when there are none.
pub(crate) fn log_all(py: Python<'_>, store: &RedisStore) {
    if !store.has_events() {
        return;
    }
    for event in store.take_events() {
        if let Err(raised) = log(py, &event) {
            raised.write_unraisable(py, None);
        }
    }
}

fn log(py: Python<'_>, event: &Event) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("doorkeep",))?;
    let extra = |kind: &str| -> PyResult<Bound<'_, PyDict>> {
        let named = [("doorkeep_event", kind)].into_py_dict(py)?;
        [("extra", named)].into_py_dict(py)
    };
    match event {
        Event::StoreDown { place, why } => {
            let text = "store down: %s does not answer (%s), on_error decides until it does";
            logger.call_method("warning", (text, place, why), Some(&extra("store_down")?))
        }
        Event::StoreUp { place } => {
            // At the level of "store down": an operator who saw that line must see this one, and many loggers hide
            // lower levels.
            logger.call_method("warning", ("store up: %s answers again", place), Some(&extra("store_up")?))
        }
        Event::StoreRefused { place, why } => {
            let text = "store refused: %s answers %s, on_error decides for such calls";
            logger.call_method("error", (text, place, why), Some(&extra("store_refused")?))
        }
        Event::StoreEvicts { policy } => {
            let text = "store evicts: an evicted count is a reset limit, use maxmemory-policy noeviction instead of %s";
            logger.call_method("warning", (text, policy), Some(&extra("store_evicts")?))
        }
        Event::CorruptState { rule } => {
            let text = "corrupt state: a value under rule %s was not ours, it counts as fully spent";
            logger.call_method("warning", (text, rule), Some(&extra("corrupt_state")?))
        }
        _ => return Ok(()),
    }
    .map(drop)
}
