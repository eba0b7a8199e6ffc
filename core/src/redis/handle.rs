//! The handle that users hold on a store.

use std::sync::Arc;

use crate::error::Error;
use crate::redis::store::{Event, Options, Store};

/// A Redis or Valkey server that keeps the state of limiters. Cheap to clone.
///
/// It connects at first use, over one multiplexed connection, and never fails for a dead server.
#[derive(Clone)]
pub struct RedisStore(pub(crate) Arc<Store>);

impl RedisStore {
    /// A store at `redis://[user:password@]host[:port][/database]`, `rediss://...` or `unix:///path`.
    ///
    /// # Errors
    /// The URL cannot be read, or an option is out of its bounds. A dead server is not an error.
    pub fn new(url: &str, options: Options) -> Result<Self, Error> {
        Store::new(url, options).map(Self)
    }

    /// Drops the connection; calls are answered by `on_error` from then on. Closing twice is closing once.
    pub fn close(&self) {
        self.0.close();
    }

    /// The options that the store was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Whether [`RedisStore::take_events`] has something to say. Takes no lock.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.0.has_events()
    }

    /// What happened since the last call, oldest first; at most 64 events are kept.
    #[must_use]
    pub fn take_events(&self) -> Vec<Event> {
        self.0.take_events()
    }
}
