//! The options that all limiters share, as far as they go while state lives in memory only.
//!
//! Invariant: an option that could not be honoured is refused, never ignored.

use doorkeep::input;
use pyo3::prelude::*;

use crate::convert::{self, Given, read};
use crate::refused::Answer;

/// Refuses a store, and an `on_error` that does not exist.
pub(crate) fn check_store(store: Given<'_, '_>, on_error: Given<'_, '_>) -> Answer<()> {
    read(on_error, input::on_error)?;
    if store.is_some_and(|store| !store.is_none()) {
        return Err(input::no_store().into());
    }
    Ok(())
}

/// Applies the name of a single-key limiter, when one is given.
pub(crate) fn with_name<T>(
    limiter: T,
    name: Given<'_, '_>,
    named: impl FnOnce(T, &str) -> Result<T, doorkeep::Error>,
) -> Answer<T> {
    match name.filter(|name| !name.is_none()) {
        Some(name) => Ok(named(limiter, &convert::name(name)?)?),
        None => Ok(limiter),
    }
}
