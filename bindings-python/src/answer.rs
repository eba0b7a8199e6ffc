//! An awaitable that was finished before it was made.
//!
//! Knows no limiter and no event loop. Invariants: its truth is never taken, so a forgotten `await` cannot admit; it is
//! awaited once; one that is dropped without an await says so, as a coroutine does.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::refused::Answer as Told;

/// The answer of an `aio` limiter: await it once.
///
/// The decision was taken when the call was made; the await gives it, or raises what went wrong. Serves wherever a
/// coroutine does, such as in `asyncio.gather` and `asyncio.create_task`. Taking its truth raises TypeError. Dropped
/// without an await it warns; the attempt stays counted.
#[pyclass(module = "doorkeep.aio", frozen, subclass)]
pub(crate) struct Answer {
    told: Mutex<Option<PyResult<Py<PyAny>>>>,
    call: &'static str,
}

impl Answer {
    /// Finishes with what a call came to.
    pub(crate) fn new<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, call: &'static str, told: Told<T>) -> Self {
        let told = told.map_err(PyErr::from).and_then(|value| value.into_py_any(py));
        Self { told: Mutex::new(Some(told)), call }
    }

    /// Gives what the call came to, once.
    pub(crate) fn take(&self) -> PyResult<Py<PyAny>> {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .unwrap_or_else(|| Err(PyRuntimeError::new_err(format!("{} was already awaited", self.call))))
    }

    fn finish(&self) -> PyErr {
        match self.take() {
            // Inside a tuple, or a value that is itself a tuple would be spread over the arguments.
            Ok(value) => PyStopIteration::new_err((value,)),
            Err(error) => error,
        }
    }
}

#[pymethods]
impl Answer {
    fn __await__<'a, 'py>(slf: &'a Bound<'py, Self>) -> &'a Bound<'py, Self> {
        slf
    }

    fn __iter__<'a, 'py>(slf: &'a Bound<'py, Self>) -> &'a Bound<'py, Self> {
        slf
    }

    fn __next__(&self) -> PyResult<()> {
        Err(self.finish())
    }

    /// Finish, as a coroutine's `send` does.
    #[pyo3(signature = (value, /))]
    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let _nothing_waits_for_it = value;
        Err(self.finish())
    }

    /// Raise the given exception in place of the answer, as a coroutine's `throw` does.
    #[pyo3(signature = (kind, value=None, traceback=None, /))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _the_exception_carries_its_own = traceback;
        drop(self.take());
        Err(PyErr::from_value(value.unwrap_or(kind).clone()))
    }

    /// Do without the answer, as a coroutine's `close` does.
    fn close(&self) {
        drop(self.take());
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(self.forgotten())
    }

    // `limiter.attempt(key) == Outcome.DENIED` without the await would be false, and admit.
    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, _op: CompareOp) -> PyResult<Py<PyAny>> {
        if other.is_instance_of::<PyInt>() {
            return Err(self.forgotten());
        }
        Ok(py.NotImplemented())
    }

    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __repr__(&self) -> String {
        format!("<answer of {}>", self.call)
    }
}

impl Answer {
    fn forgotten(&self) -> PyErr {
        PyTypeError::new_err(format!("the answer of {} has to be awaited first", self.call))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let told = self.told.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if told.is_none() {
            return;
        }
        // At interpreter exit there is nobody left to warn.
        let _warned = Python::try_attach(|py| {
            drop(told);
            // An object may die while an exception is on its way: that one must not be lost.
            let pending = PyErr::take(py);
            warn(py, self.call);
            if let Some(pending) = pending {
                pending.restore(py);
            }
        });
    }
}

fn warn(py: Python<'_>, call: &str) {
    let Ok(message) = CString::new(format!("{call} was never awaited; what it counted stays counted")) else {
        return;
    };
    if let Err(raised) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1) {
        raised.write_unraisable(py, None);
    }
}
