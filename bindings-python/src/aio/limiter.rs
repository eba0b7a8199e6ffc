//! The awaitable twin of `Limiter`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMappingProxy, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::aio::attempt::PendingAttempt;
use crate::answer::Answer;
use crate::convert::Arg;
use crate::error::Result;
use crate::limiter::Limiter;
use crate::store::RedisStore;

/// Decides over several keys of several rules in one atomic step: all of them are counted, or none.
///
/// Like `doorkeep.Limiter`, with the same arguments, and every answer awaitable. At the call, a limiter in memory
/// decides, and a limiter over a store sends its request.
#[pyclass(module = "doorkeep.aio", name = "Limiter", frozen)]
pub(crate) struct AioLimiter {
    inner: Limiter,
}

#[pymethods]
impl AioLimiter {
    #[new]
    #[pyo3(
        signature = (*, store=None, on_error=None, capacity=None, clock=None),
        text_signature = "(*, store=None, on_error=None, capacity=100_000, clock=None)"
    )]
    fn new(
        py: Python<'_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        capacity: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        Ok(Self { inner: Limiter::new(py, store, on_error, capacity, clock)? })
    }

    /// Make a limiter and its rules from a plain mapping. Like `doorkeep.Limiter.from_config`.
    #[staticmethod]
    #[pyo3(signature = (config, *, clock=None))]
    fn from_config(config: &Bound<'_, PyAny>, clock: Arg<'_, '_>) -> Result<Self> {
        Ok(Self { inner: Limiter::from_config(config, clock)? })
    }

    /// The rules of `from_config` by name, read-only; empty otherwise.
    #[getter]
    fn rules<'py>(&self, py: Python<'py>) -> Bound<'py, PyMappingProxy> {
        self.inner.rules(py)
    }

    /// The store that was passed or that `from_config` made; None in memory.
    #[getter]
    fn store(&self, py: Python<'_>) -> Option<Py<RedisStore>> {
        self.inner.store(py)
    }

    /// Count one attempt under all `keys`, or deny it and count nothing. Like `doorkeep.Limiter.decide`, awaitable.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    fn decide(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Answer {
        Answer::to(py, "aio.Limiter.decide", self.inner.start_decide(py, first, rest, cost, now))
    }

    /// Count one attempt under all `keys`, or deny it, and return whether it is allowed. Like `doorkeep.Limiter.allow`,
    /// awaitable.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    fn allow(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Answer {
        Answer::to(py, "aio.Limiter.allow", self.inner.start_allow(py, first, rest, cost, now))
    }

    /// Return the decision that `decide` would return, without counting. Like `doorkeep.Limiter.peek`, awaitable.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    fn peek(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Answer {
        Answer::to(py, "aio.Limiter.peek", self.inner.start_peek(py, first, rest, cost, now))
    }

    /// Forget `keys` completely, as an administrator does. Like `doorkeep.Limiter.reset`, awaitable.
    #[pyo3(signature = (first=None, /, *rest), text_signature = "($self, *keys)")]
    fn reset(&self, py: Python<'_>, first: Arg<'_, '_>, rest: &Bound<'_, PyTuple>) -> Answer {
        Answer::to(py, "aio.Limiter.reset", self.inner.start_reset(first, rest))
    }

    /// Count one attempt under all `keys`, to be settled once its outcome is known. Like `doorkeep.Limiter.attempt`.
    ///
    /// Await it for the `Attempt`, or enter it with `async with`, which raises if the attempt is denied.
    #[pyo3(
        signature = (first=None, /, *rest, cost=None, now=None, give_back_on=None),
        text_signature = "($self, *keys, cost=1, now=None, give_back_on=())"
    )]
    fn attempt(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
        give_back_on: Arg<'_, '_>,
    ) -> PyResult<Py<PendingAttempt>> {
        Py::new(py, PendingAttempt::new(py, self.inner.start_attempt(py, first, rest, cost, now, give_back_on)))
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
