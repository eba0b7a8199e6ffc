//! The options that all limiters share: the store, and what answers in its place.
//!
//! Invariant: a store that is none is refused, never taken for memory.

use doorkeep::OnError;
use doorkeep::host::input;
use pyo3::prelude::*;

use crate::convert::{self, Given, read};
use crate::error::Result;
use crate::store::RedisStore;

/// Where a limiter keeps its state, and what answers when that fails.
pub(crate) struct Place {
    pub(crate) store: Option<Py<RedisStore>>,
    pub(crate) on_error: Option<OnError>,
}

impl Place {
    pub(crate) fn read(store: Given<'_, '_>, on_error: Given<'_, '_>) -> Result<Self> {
        let on_error = read(on_error, input::on_error)?;
        let store = match store.filter(|store| !store.is_none()) {
            Some(store) => Some(store.cast::<RedisStore>().map_err(|_| input::no_store())?.clone().unbind()),
            None => None,
        };
        Ok(Self { store, on_error })
    }

    pub(crate) fn store(&self) -> Option<&doorkeep::redis::RedisStore> {
        self.store.as_ref().map(|store| &store.get().inner)
    }
}

/// The name of a single-key limiter, when one is given.
pub(crate) fn read_name(name: Given<'_, '_>) -> Result<Option<String>> {
    name.filter(|name| !name.is_none()).map(convert::name).transpose()
}
