//! One interpreter of a process may use the module.
//!
//! pyo3 makes each class once for a process, and what the module remembers of Python (`Outcome`, the exceptions) is that
//! of the interpreter which came first. In a second one no denial would be `Outcome.DENIED` and no `except` would catch.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Fails in every interpreter but the first that asks, however often that one asks.
pub(crate) fn refuse_a_second(py: Python<'_>) -> PyResult<()> {
    // An interpreter is told by its builtins, which it has for as long as it lives; its number takes unsafe code.
    static FIRST: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let builtins = py.import("builtins")?;
    if FIRST.get_or_init(py, || builtins.clone().unbind()).is(&builtins) {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "doorkeep is in use by another interpreter of this process: under mod_wsgi, run each site in a daemon process of \
         its own, with `WSGIApplicationGroup %{GLOBAL}` or `application-group=%{GLOBAL}`",
    ))
}
