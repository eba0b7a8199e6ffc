//! The awaitable twin of `TokenBucket`.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::answer::Answer;
use crate::convert::Arg;
use crate::error::Result;
use crate::token_bucket::TokenBucket;

/// Limits each key by a bucket of tokens that refills continuously.
///
/// Like `doorkeep.TokenBucket`, with the same arguments, and every answer awaitable. At the call, a limiter in memory
/// decides, and a limiter over a store sends its request.
#[pyclass(module = "doorkeep.aio", name = "TokenBucket", frozen)]
pub(crate) struct AioTokenBucket {
    inner: TokenBucket,
}

#[pymethods]
impl AioTokenBucket {
    #[new]
    #[pyo3(
        signature = (rate=None, window=None, capacity=None, *, name=None, store=None, on_error=None, clock=None),
        text_signature = "(rate=100, window='1m', capacity=10_000, *, name=None, store=None, on_error=None, clock=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "one for each option")]
    fn new(
        rate: Arg<'_, '_>,
        window: Arg<'_, '_>,
        capacity: Arg<'_, '_>,
        name: Arg<'_, '_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        Ok(Self { inner: TokenBucket::new(rate, window, capacity, name, store, on_error, clock)? })
    }

    /// Take one token for `key` if there is one. Like `doorkeep.TokenBucket.allow`, awaitable.
    #[pyo3(signature = (key, now=None))]
    fn allow(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.TokenBucket.allow", self.inner.start_allow(py, key, now))
    }

    /// Take `n` tokens for `key` if there are as many, else none. Like `doorkeep.TokenBucket.allow_n`, awaitable.
    #[pyo3(signature = (key, n, now=None))]
    fn allow_n(&self, py: Python<'_>, key: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.TokenBucket.allow_n", self.inner.start_allow_n(py, key, n, now))
    }

    /// Return the wait until one token for `key` is available, or None if one is available now. Takes nothing. Like
    /// `doorkeep.TokenBucket.retry_after`, awaitable.
    #[pyo3(signature = (key, now=None))]
    fn retry_after(&self, py: Python<'_>, key: &Bound<'_, PyAny>, now: Arg<'_, '_>) -> Answer {
        Answer::to(py, "aio.TokenBucket.retry_after", self.inner.start_retry_after(py, key, now))
    }

    /// Fill the bucket of `key`, even on a closed limiter. Like `doorkeep.TokenBucket.reset`, awaitable.
    fn reset(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Answer {
        Answer::to(py, "aio.TokenBucket.reset", self.inner.start_reset(key))
    }

    /// Deny every later call that takes tokens. Calling it again does nothing.
    fn close(&self, py: Python<'_>) -> Answer {
        self.inner.close();
        Answer::new(py, "aio.TokenBucket.close", Ok(py.None()))
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
