//! The options that all limiters share: the store, and what decides in its place.
//!
//! Invariant: an invalid store is refused and never read as "in memory".

use doorkeep::OnError;
use doorkeep::host::input;
use pyo3::prelude::*;

use crate::convert::{self, Arg, read};
use crate::error::Result;
use crate::store::RedisStore;

/// Where a limiter keeps its state, and what decides when that fails.
pub(crate) struct Backend {
    pub(crate) store: Option<Py<RedisStore>>,
    pub(crate) on_error: Option<OnError>,
}

impl Backend {
    pub(crate) fn read(store: Arg<'_, '_>, on_error: Arg<'_, '_>) -> Result<Self> {
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

/// The optional name of a limiter that takes strings.
pub(crate) fn read_name(name: Arg<'_, '_>) -> Result<Option<String>> {
    name.filter(|name| !name.is_none()).map(convert::name).transpose()
}
