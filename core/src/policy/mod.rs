//! The three policies as pure steps over `(state | absent, now, cost)`.
//!
//! Each has two halves: *test* (may this be counted, and if not, how long to wait?) and *commit*
//! (the new state). They know nothing of locks, clocks and stores.

pub(crate) mod fixed_window;
pub(crate) mod gcra;
pub(crate) mod strikes;
