//! The awaitable twins: each call is made at once, by the blocking type; over memory its answer is finished.
//!
//! Invariant: an error of a call is raised by its await, never by the call.

pub(crate) mod attempt;
pub(crate) mod attempt_limiter;
pub(crate) mod fixed_window;
pub(crate) mod limiter;
pub(crate) mod token_bucket;
