//! The part of the crate for host languages (cargo feature `host`): the bindings of Python and Node use it, and the lab
//! reads its files with it.
//!
//! Not part of the stable API: it changes with the bindings, in any version.

#[cfg(feature = "redis")]
pub mod either;
pub mod input;
pub mod keys;
#[cfg(feature = "redis")]
pub mod runtime;
