//! The awaitable twins: each call goes to the blocking type immediately; over memory its answer is complete.
//!
//! Invariant: an error of a call is raised by its await, never by the call.

pub(crate) mod attempt;
pub(crate) mod attempt_limiter;
pub(crate) mod fixed_window;
pub(crate) mod limiter;
pub(crate) mod token_bucket;
