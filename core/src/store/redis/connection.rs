//! The one connection of a store, made at first use and made anew after it was dropped.
//!
//! Knows no script. Invariant: callers that find no connection wait for one attempt to connect,
//! not each for its own.

use parking_lot::RwLock;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio::sync::Mutex;

use crate::time::Timestamp;

/// How many commands may wait to be written; a burst above it waits for the socket.
const QUEUED_COMMANDS: usize = 1024;
const YOUNG_MICROS: u64 = 1_000_000;

#[derive(Clone)]
pub(super) struct Connected {
    pub(super) connection: MultiplexedConnection,
    /// Counts the connections of a slot, so that a late failure does not drop a newer one.
    pub(super) number: u64,
    made_at: Timestamp,
}

#[derive(Default)]
pub(super) struct Slot {
    current: RwLock<Option<Connected>>,
    connecting: Mutex<u64>,
}

impl Slot {
    /// The connection, made now if there is none.
    pub(super) async fn get(&self, client: &Client) -> Result<Connected, RedisError> {
        if let Some(connected) = self.current() {
            return Ok(connected);
        }
        let mut number = self.connecting.lock().await;
        if let Some(connected) = self.current() {
            return Ok(connected);
        }
        // No timeouts in here: the caller's deadline covers everything.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUED_COMMANDS);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        *number += 1;
        let connected = Connected { connection, number: *number, made_at: Timestamp::now() };
        *self.current.write() = Some(connected.clone());
        Ok(connected)
    }

    pub(super) fn current(&self) -> Option<Connected> {
        self.current.read().clone()
    }

    /// Drops the connection, unless it is a newer one than the failing call used.
    pub(super) fn drop_up_to(&self, number: u64) {
        self.drop_if(|connected| connected.number <= number);
    }

    /// Like [`Slot::drop_up_to`], but spares a young connection: a server that stays read-only must not
    /// cost a connection a call.
    pub(super) fn drop_old_up_to(&self, number: u64) {
        let is_old = |connected: &Connected| Timestamp::now().since(connected.made_at) > YOUNG_MICROS;
        self.drop_if(|connected| connected.number <= number && is_old(connected));
    }

    fn drop_if(&self, condition: impl Fn(&Connected) -> bool) {
        let mut current = self.current.write();
        if current.as_ref().is_some_and(&condition) {
            *current = None;
        }
    }
}
