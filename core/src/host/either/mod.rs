//! The limiters with the place of their state chosen at run time: for host languages, whose users
//! give a store or none to one and the same class.
//!
//! Holds no formula and no default. Invariant: over memory every answer is there at the call, and no
//! runtime is touched.

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

/// An answer that is there, or will be.
///
/// The request of a later answer is sent when the future is first polled: spawn it, or block on it.
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

    /// The answer, waited for on the calling thread if it is not there.
    pub fn wait(self) -> T {
        match self {
            Self::Now(answer) => answer,
            Self::Later(future) => crate::host::runtime::block_on(future),
        }
    }
}
