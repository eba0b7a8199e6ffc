//! What only host languages use (cargo feature `host`): the bindings of Python and Node stand on it, and the lab reads
//! its files by it.
//!
//! Not a part of the stable API: it changes with the bindings, in any version.

#[cfg(feature = "redis")]
pub mod either;
pub mod input;
pub mod keys;
#[cfg(feature = "redis")]
pub mod runtime;
