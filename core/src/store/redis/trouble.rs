//! Why a call was not answered, by what the store does next.
//!
//! Pure. Invariant: no message carries a key, a value, or a credential; server details are left out,
//! since they may echo what was sent.

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

/// The server's error code, or the kind of the failure.
fn word_for(error: &RedisError) -> String {
    error.code().unwrap_or_else(|| error.category()).to_owned()
}

pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
