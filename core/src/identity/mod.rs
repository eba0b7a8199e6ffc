//! Who is asking: addresses as buckets.
//!
//! Usable alone; knows nothing of limiters.

pub(crate) mod network;
