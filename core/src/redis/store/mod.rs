//! State in Redis: one connection, one script that decides, one that settles.
//!
//! Knows policy parameters, keys and states as bytes; the formulas stay in `policy` and, for the
//! half that must run beside the data, in the two scripts. Invariant: nothing that may have been
//! executed is sent twice.

mod breaker;
mod connection;
mod memory_check;
mod options;
mod reading;
mod road;
mod script;
mod socket;
mod trouble;
mod wire;

pub use breaker::Event;
pub(crate) use breaker::Store;
pub use options::{Clock, Options};
pub(crate) use reading::{Asked, Charges, Reading};
pub(crate) use script::Request;
pub(crate) use wire::{Act, Kind, Wire};
