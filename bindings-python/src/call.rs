//! A call that was made on a limiter: over memory its answer is there, over a store it is on its way.
//!
//! Invariant: whoever waits does so without the GIL, and what the store has to tell is told by whoever gets an answer.

use doorkeep::Error;
use doorkeep::host::either;
use doorkeep::host::runtime;
use doorkeep::redis::RedisStore;
use pyo3::prelude::*;

use crate::error::Result;
use crate::events;

/// What the core is about to answer, and how that looks in Python. `with` is what the look needs beside the answer.
pub(crate) struct Call<'a, T, R, W = ()> {
    pub(crate) answer: either::Answer<T>,
    pub(crate) shown: fn(Python<'_>, T, W) -> Result<R>,
    pub(crate) with: W,
    pub(crate) store: Option<&'a RedisStore>,
}

/// A call that the core may refuse at once, or answer with an error.
pub(crate) type Asked<'a, T, R, W = ()> = Result<Call<'a, Result<T, Error>, R, W>>;

impl<'a, T, R> Call<'a, T, R> {
    pub(crate) fn new(
        store: Option<&'a RedisStore>,
        answer: either::Answer<T>,
        shown: fn(Python<'_>, T, ()) -> Result<R>,
    ) -> Self {
        Self { answer, shown, with: (), store }
    }
}

impl<T: Send, R, W> Call<'_, T, R, W> {
    /// Blocks until the answer is there.
    pub(crate) fn wait(self, py: Python<'_>) -> Result<R> {
        let answer = match self.answer {
            either::Answer::Now(answer) => answer,
            either::Answer::Later(future) => {
                let answer = py.detach(|| runtime::block_on(future));
                if let Some(store) = self.store {
                    events::tell(py, store);
                }
                answer
            }
        };
        (self.shown)(py, answer, self.with)
    }
}
