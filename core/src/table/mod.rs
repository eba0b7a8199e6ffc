//! The bounded tables that hold state in this process. Eviction orders live here.
//!
//! `&mut self` only: no lock, no clock. Invariant: a table never holds more than its capacity, and
//! no call scans it.

mod eviction_queue;
mod fixed_windows;
mod recency;
mod slots;
mod strikes;
mod windows;

pub(crate) use fixed_windows::FixedWindows;
pub(crate) use slots::{KeyedHash, Slot};
pub(crate) use strikes::StrikeTable;
pub(crate) use windows::{Charge, Checked, Group, WindowTable};
