//! Where state lives. A store holds no formula: policies decide, tables keep.

pub(crate) mod memory;
#[cfg(feature = "redis")]
pub(crate) mod redis;
