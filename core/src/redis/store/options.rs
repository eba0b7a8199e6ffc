//! How a store is configured, judged when it is built.

use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::bounds::store::{check_prefix, check_timeout};
use crate::decision::OnError;
use crate::error::Error;

/// Whose time decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clock {
    /// The server's: replicas cannot disagree.
    #[default]
    Server,
    /// This process's, sent with every call.
    Client,
}

/// Options of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Before every key: 1 to 64 of `A-Z a-z 0-9 _ . : -`. One for each service that must not share budgets.
    pub prefix: String,
    /// The bound on every call, connecting included: 1 ms to 60 s.
    pub timeout: Duration,
    /// What to answer when the store does not, unless a limiter says otherwise.
    pub on_error: OnError,
    /// Whose time decides.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "ratelimit".to_owned(),
            timeout: Duration::from_millis(200),
            on_error: OnError::default(),
            clock: Clock::default(),
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_prefix(&self.prefix)?;
        check_timeout(self.timeout)
    }
}

/// Reads `redis://`, `rediss://` and `unix://` addresses. The URL may hold a password, so no message shows it.
pub(super) fn address(url: &str) -> Result<ConnectionInfo, Error> {
    let refused = || {
        Error::config(
            "redis url must read redis://[user:password@]host[:port][/database], rediss://... or unix:///path",
        )
    };
    url.into_connection_info().map_err(|_| refused())
}

/// Where a store is, without credentials.
pub(super) fn place(info: &ConnectionInfo) -> String {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => format!("{host}:{port}"),
        ConnectionAddr::Unix(path) => path.display().to_string(),
        _ => "an address of another kind".to_owned(),
    }
}
