//! A call on a limiter: complete over memory, in flight over a store.
//!
//! Invariant: a blocking call waits without the GIL, and logs the events of the store before it returns.

use doorkeep::Error;
use doorkeep::host::either;
use doorkeep::host::runtime;
use doorkeep::redis::RedisStore;
use pyo3::prelude::*;

use crate::error::Result;
use crate::events;

/// An answer of the core, now or later, and how it becomes a Python object. `context` is what that takes besides the
/// answer.
pub(crate) struct Call<'a, T, R, C = ()> {
    pub(crate) answer: either::Answer<T>,
    pub(crate) convert: fn(Python<'_>, T, C) -> Result<R>,
    pub(crate) context: C,
    pub(crate) store: Option<&'a RedisStore>,
}

/// A call whose arguments may be refused, and whose answer may be an error.
pub(crate) type CallResult<'a, T, R, C = ()> = Result<Call<'a, Result<T, Error>, R, C>>;

impl<'a, T, R> Call<'a, T, R> {
    pub(crate) fn new(
        store: Option<&'a RedisStore>,
        answer: either::Answer<T>,
        convert: fn(Python<'_>, T, ()) -> Result<R>,
    ) -> Self {
        Self { answer, convert, context: (), store }
    }
}

impl<T: Send, R, C> Call<'_, T, R, C> {
    /// Blocks until the call is complete.
    pub(crate) fn wait(self, py: Python<'_>) -> Result<R> {
        let answer = match self.answer {
            either::Answer::Now(answer) => answer,
            either::Answer::Later(future) => {
                let answer = py.detach(|| runtime::block_on(future));
                if let Some(store) = self.store {
                    events::log_all(py, store);
                }
                answer
            }
        };
        (self.convert)(py, answer, self.context)
    }
}
