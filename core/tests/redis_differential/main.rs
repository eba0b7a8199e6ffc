//! Memory and Redis give the same answer to the same trace, to the microsecond.
//!
//! Random traces of every limiter under an explicit `now` that also steps back, at a roomy capacity, on
//! both engines and under Lua 5.4. Invariant: seeded, so a failure repeats; it is shrunk to the shortest trace that shows it.
//! After every step every key in Redis has an end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod limiter;
#[path = "../support/lua54.rs"]
mod lua54;
#[path = "../support/server.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod server;
mod single;
mod traces;
