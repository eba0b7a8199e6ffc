//! Who is asking: addresses as buckets, the client behind proxies, accounts by one spelling.
//!
//! Usable alone; knows nothing of limiters.

pub(crate) mod canonical;
pub(crate) mod client_ip;
mod hops;
pub(crate) mod network;
