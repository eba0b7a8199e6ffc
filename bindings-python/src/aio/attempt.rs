//! The attempt of an `aio` limiter, and the awaitable that `limiter.attempt(...)` returns.
//!
//! Invariant: as a block and as a plain await it settles by the same rules as the blocking one.

use std::sync::OnceLock;

use doorkeep::Error;
use doorkeep::host::either;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};

use crate::answer::Answer;
use crate::attempt;
use crate::call::Call;
use crate::convert::Arg;
use crate::decision::Decision;
use crate::error::Result;
use crate::key::Key;

/// One attempt over several keys, counted when it was made and settled at most once.
///
/// Like `doorkeep.Attempt`, with `success`, `failure`, `cancel` and `extend` awaitable, and `async with` for the block.
#[pyclass(module = "doorkeep.aio", name = "Attempt", frozen)]
pub(crate) struct AioAttempt {
    inner: attempt::Attempt,
}

impl From<attempt::Attempt> for AioAttempt {
    fn from(inner: attempt::Attempt) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl AioAttempt {
    /// Whether the attempt may proceed.
    #[getter]
    fn allowed(&self) -> bool {
        self.inner.allowed()
    }

    /// The decision about the attempt.
    #[getter]
    fn decision(&self) -> Decision {
        self.inner.decision()
    }

    /// Settle the attempt as a right guess. Like `doorkeep.Attempt.success`, awaitable.
    #[pyo3(
        signature = (*, forgive=None, give_back=None, forgive_address=None, now=None),
        text_signature = "($self, *, forgive=(), give_back=(), forgive_address=(), now=None)"
    )]
    fn success(
        &self,
        py: Python<'_>,
        forgive: Arg<'_, '_>,
        give_back: Arg<'_, '_>,
        forgive_address: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Answer {
        Answer::to(py, "aio.Attempt.success", self.inner.start_success(py, forgive, give_back, forgive_address, now))
    }

    fn __bool__(&self) -> bool {
        self.inner.allowed()
    }

    /// Settle the attempt as a wrong guess: it stays counted, at the call. Like `doorkeep.Attempt.failure`, awaitable.
    fn failure(&self, py: Python<'_>) -> Answer {
        Answer::new(py, "aio.Attempt.failure", Ok(self.inner.failure()))
    }

    /// Take the attempt back completely. Like `doorkeep.Attempt.cancel`, awaitable.
    #[pyo3(signature = (now=None))]
    fn cancel(&self, py: Python<'_>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.Attempt.cancel", self.inner.start_cancel(py, now))
    }

    /// Count further keys under the same attempt. Like `doorkeep.Attempt.extend`, awaitable.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    fn extend(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Answer {
        Answer::to(py, "aio.Attempt.extend", self.inner.start_extend(py, first, rest, cost, now))
    }

    /// Return whether `key` is part of the attempt.
    fn holds(&self, key: &Bound<'_, Key>) -> bool {
        self.inner.holds(key)
    }

    /// Give the attempt back if `give_back_on` names the class of `error`. Like `doorkeep.Attempt._give_back`,
    /// awaitable.
    #[pyo3(signature = (error, give_back_on, now=None))]
    fn _give_back(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        give_back_on: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Answer {
        Answer::to(py, "aio.Attempt._give_back", self.inner.start_give_back(py, error, give_back_on, now))
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> Answer {
        let entered = slf.get().inner.enter(slf.py()).map(|()| slf.clone());
        Answer::new(slf.py(), "aio.Attempt.__aenter__", entered)
    }

    fn __aexit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Answer {
        Answer::to(py, "aio.Attempt.__aexit__", self.inner.start_exit(py, error))
    }

    fn __repr__(&self) -> String {
        format!("<aio.Attempt {}>", self.inner.decision().inner.outcome.as_str())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.inner.__traverse__(visit)
    }
}

/// The awaitable that `aio.Limiter.attempt` returns: await it for the `Attempt`, or enter it with `async with`.
#[pyclass(module = "doorkeep._native", extends = Answer, frozen)]
pub(crate) struct PendingAttempt {
    entered: OnceLock<Py<AioAttempt>>,
}

impl PendingAttempt {
    pub(crate) fn new<W: Send + 'static>(
        py: Python<'_>,
        called: Result<Call<'_, Result<either::Attempt, Error>, AioAttempt, W>>,
    ) -> PyClassInitializer<Self> {
        let answer = Answer::to(py, "aio.Limiter.attempt", called);
        PyClassInitializer::from(answer).add_subclass(Self { entered: OnceLock::new() })
    }
}

#[pymethods]
impl PendingAttempt {
    fn __aenter__(slf: &Bound<'_, Self>) -> Answer {
        let pending = slf.clone().unbind();
        slf.as_super().get().then(slf.py(), "aio.Attempt.__aenter__", move |py, attempt| {
            let attempt = attempt.into_bound(py).cast_into::<AioAttempt>()?;
            attempt.get().inner.enter(py)?;
            pending.get().entered.get_or_init(|| attempt.clone().unbind());
            Ok(attempt.into_any().unbind())
        })
    }

    fn __aexit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Answer> {
        match self.entered.get() {
            Some(attempt) => Ok(attempt.get().__aexit__(py, kind, error, traceback)),
            None => Err(PyRuntimeError::new_err("the attempt was not entered")),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.entered.get().map_or(Ok(()), |attempt| visit.call(attempt))
    }
}
