//! Laws of the limiters, held against a slow exact model through the public API.
//!
//! Each file states one family of laws. Invariant: nothing here reads a clock, and a failing run
//! prints the seed or the history that shows it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

mod all_or_nothing;
mod floods;
mod give_back;
mod histories;
mod identity;
mod model;
mod pair;
mod retry;
mod rng;
mod spans;
mod traces;
