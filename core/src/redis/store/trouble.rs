//! Why a call was not answered, by what the store does next.
//!
//! Pure. Invariant: no message carries a key, a value, or a credential; server details are left out,
//! since they may echo what was sent.

use std::error::Error;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a call was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody answers: the breaker opens.
    Down { why: String, drop_connection: bool },
    /// The breaker is open; nothing was sent.
    StillDown,
    /// The server refused this one call; the next one asks again.
    Refused { why: String, drop_connection: bool },
    /// The store was closed by its owner.
    Closed,
}

impl Trouble {
    pub(super) fn timed_out() -> Self {
        Self::Down { why: "no answer within the timeout".to_owned(), drop_connection: false }
    }

    pub(super) fn nonsense() -> Self {
        Self::Refused { why: "an answer that is not the script's".to_owned(), drop_connection: true }
    }

    /// What went wrong before there was a connection.
    pub(super) fn unreachable(error: &RedisError) -> Self {
        Self::Down { why: word_for(error), drop_connection: false }
    }

    pub(super) fn of(error: &RedisError) -> Self {
        let why = word_for(error);
        match error.code() {
            // A replica that was promoted over, or demoted: only a new connection may find the primary.
            Some("READONLY") => Self::Refused { why, drop_connection: true },
            Some("LOADING" | "MASTERDOWN" | "CLUSTERDOWN") => Self::Down { why, drop_connection: false },
            Some("NOAUTH" | "WRONGPASS") => Self::Down { why, drop_connection: true },
            Some(_) => Self::Refused { why, drop_connection: false },
            // No code: it did not come from the server's own mouth.
            None => Self::Down { why, drop_connection: true },
        }
    }
}

/// The server's error code, or what the connection met.
fn word_for(error: &RedisError) -> String {
    if let Some(code) = error.code() {
        // The server has no code of its own for a command that is forbidden within a script.
        // Redis and Valkey word it differently.
        let forbidden = ["The user executing the script", "ACL failure in script"];
        let is_forbidden = error.detail().is_some_and(|detail| forbidden.iter().any(|start| detail.starts_with(start)));
        return if code == "ERR" && is_forbidden { "NOPERM" } else { code }.to_owned();
    }
    // The library keeps what it met behind a shared pointer, and shows that.
    let met = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let met = met.and_then(|met| met.downcast_ref::<io::Error>());
    met.map_or_else(|| error.category().to_owned(), word_for_io)
}

fn word_for_io(error: &io::Error) -> String {
    let inner = error.get_ref();
    // TLS speaks of certificates and hosts, never of what was sent.
    if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return tls.to_string();
    }
    // The resolver's errors have no kind of their own.
    if inner.is_some_and(|inner| inner.to_string().starts_with("failed to lookup address")) {
        return "the name does not resolve".to_owned();
    }
    error.kind().to_string()
}

pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
