//! The fault matrix: whatever the server and the network do, every call is answered in time.
//!
//! `rows` is the common course of a row, `matrix` the rows; the other files hold the rows that need a
//! course of their own. `stage` asserts the invariants in all of them. Invariant: a test starts its
//! own servers, and fails where it finds none.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test waits for real servers")]

mod access;
mod bytes;
mod flapping;
mod idle;
mod matrix;
#[path = "../support/proxy.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod proxy;
mod replies;
mod rows;
mod scenarios;
#[path = "../support/server.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod server;
mod stage;
mod states;
mod tls;
