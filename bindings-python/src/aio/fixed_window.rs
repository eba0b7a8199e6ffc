//! The awaitable twin of `FixedWindow`.

use pyo3::prelude::*;
use pyo3::types::{PyDelta, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use crate::answer::Answer;
use crate::convert::Arg;
use crate::error::Result;
use crate::fixed_window::FixedWindow;

/// Admits a number of attempts per key and window; a key's window opens at its first attempt.
///
/// Like `doorkeep.FixedWindow`, with the same arguments, and every answer awaitable. At the call, a limiter in memory
/// decides, and a limiter over a store sends its request.
#[pyclass(module = "doorkeep.aio", name = "FixedWindow", frozen)]
pub(crate) struct AioFixedWindow {
    inner: FixedWindow,
}

#[pymethods]
impl AioFixedWindow {
    #[new]
    #[pyo3(
        signature = (limit=None, window=None, max_keys=None, *, name=None, store=None, on_error=None, clock=None),
        text_signature = "(limit, window, max_keys=100_000, *, name=None, store=None, on_error=None, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        limit: Arg<'_, '_>,
        window: Arg<'_, '_>,
        max_keys: Arg<'_, '_>,
        name: Arg<'_, '_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        Ok(Self { inner: FixedWindow::new(limit, window, max_keys, name, store, on_error, clock)? })
    }

    /// Count one attempt for `key`, or deny it with the wait until its window ends. Like
    /// `doorkeep.FixedWindow.consume`, awaitable.
    #[pyo3(signature = (key, now=None))]
    fn consume(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.FixedWindow.consume", self.inner.start_consume(py, key, now))
    }

    /// Return the decision that `consume` would return for `key`; what remains is as it is now. Counts nothing. Like
    /// `doorkeep.FixedWindow.peek`, awaitable.
    #[pyo3(signature = (key, now=None))]
    fn peek(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.FixedWindow.peek", self.inner.start_peek(py, key, now))
    }

    /// Forget `key`. Calling it again does nothing. Like `doorkeep.FixedWindow.reset`, awaitable.
    fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Answer {
        Answer::to(py, "aio.FixedWindow.reset", self.inner.start_reset(key))
    }

    /// Attempts per window.
    #[getter]
    fn limit(&self) -> u32 {
        self.inner.limit()
    }

    /// The length of a window.
    #[getter]
    fn window<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDelta>> {
        self.inner.window(py)
    }

    /// Return the counters: `allowed`, `denied`, `store_failed`, `evicted` and `tracked_keys`.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.inner.stats(py)
    }

    fn __len__(&self) -> usize {
        self.inner.__len__()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.inner.__traverse__(visit)
    }
}
