//! Only one interpreter of a process may use the module.
//!
//! pyo3 makes each class once per process, and the Python objects that the module caches (`Outcome`, the exceptions)
//! belong to the first interpreter. In a second interpreter no denial would be `Outcome.DENIED`, and no `except` would
//! catch an error.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Fails in every interpreter except the first that calls it.
pub(crate) fn refuse_a_second(py: Python<'_>) -> PyResult<()> {
    // An interpreter is identified by its builtins, which live as long as it does. Reading its number would need unsafe
    // code.
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
