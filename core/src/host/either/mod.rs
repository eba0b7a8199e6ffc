//! Limiters that keep their state in memory or in a store, chosen at run time: in host languages, one class serves
//! both.
//!
//! Contains no formula and no default. Invariant: in memory every call answers immediately and uses no runtime.

mod attempt;
mod attempt_limiter;
mod fixed_window;
mod limiter;
mod token_bucket;

pub use attempt::Attempt;
pub use attempt_limiter::{AttemptLimiter, Reservation};
pub use fixed_window::FixedWindow;
pub use limiter::Limiter;
pub use token_bucket::TokenBucket;

use std::pin::Pin;

use crate::redis::or_now;

/// An answer, now or later.
///
/// The request for a later answer is sent when the future is first polled: spawn it, or block on it.
#[must_use = "an answer that is not looked at admits everybody"]
pub enum Answer<T> {
    /// From memory.
    Now(T),
    /// From a store, within its timeout.
    Later(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T> Answer<T> {
    fn later(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }

    /// Returns the answer; blocks the calling thread if it comes later.
    pub fn wait(self) -> T {
        match self {
            Self::Now(answer) => answer,
            Self::Later(future) => crate::host::runtime::block_on(future),
        }
    }
}
