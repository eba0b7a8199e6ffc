//! The Redis or Valkey server that many processes share a budget in.
//!
//! Judges nothing: every option is read by the core. Invariant: neither repr nor message shows the URL, since it may
//! hold a password.

use doorkeep::host::input;
use doorkeep::redis::{self, StoreOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::answer::Answer;
use crate::convert::{Given, read, read_duration};
use crate::error::Result;
use crate::events;

/// A Redis or Valkey server that keeps the state of limiters, so that every process draws on one budget.
///
/// Connects at first use, over one connection, and never raises for a dead server: then `on_error` decides, within
/// `timeout`. One store serves blocking and `aio` limiters alike, any thread and any event loop, and a forked child,
/// which connects anew. Outages are told to the logger `doorkeep`, without keys and passwords.
///
/// Parameters
/// ----------
/// url
///     `redis://[user:password@]host[:port][/database]`, `rediss://...` for TLS, or `unix:///path`.
/// prefix
///     Stands before every key: 1 to 64 of `A-Z a-z 0-9 _ . : -`, default `"ratelimit"`. Services with one prefix and
///     rules of one name and policy share a budget.
/// timeout
///     The bound on every call, connecting included: 1 ms to 60 s as a `timedelta`, a number of seconds, or text such
///     as `"200ms"`. Defaults to 200 ms.
/// on_error
///     What answers when the server does not: `"local"` (default), this process's own tables by the same rules;
///     `"open"`, admitted without counting; `"closed"`, unavailable. A limiter may say otherwise.
/// clock
///     Whose time decides: the `"server"`'s (default), on which replicas cannot disagree, or the `"client"`'s.
///
/// Raises
/// ------
/// ConfigError
///     The URL cannot be read, or an option is out of its bounds.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct RedisStore {
    pub(crate) inner: redis::RedisStore,
}

#[pymethods]
impl RedisStore {
    #[new]
    #[pyo3(
        signature = (url, *, prefix=None, timeout=None, on_error=None, clock=None),
        text_signature = "(url, *, prefix='ratelimit', timeout=0.2, on_error='local', clock='server')"
    )]
    pub(crate) fn new(
        url: &Bound<'_, PyAny>,
        prefix: Given<'_, '_>,
        timeout: Given<'_, '_>,
        on_error: Given<'_, '_>,
        clock: Given<'_, '_>,
    ) -> Result<Self> {
        let options = options(prefix, timeout, on_error, clock)?;
        let Ok(url) = url.cast::<PyString>() else {
            return Err(PyTypeError::new_err("the url of a store must be text").into());
        };
        // Now and not with the first event: a fork while another thread imports leaves the child a locked import.
        url.py().import("logging")?;
        Ok(Self { inner: redis::RedisStore::new(&url.to_string_lossy(), options)? })
    }

    /// Drop the connection. Calls are answered by `on_error` from then on; closing twice is closing once.
    fn close(&self, py: Python<'_>) {
        self.inner.close();
        events::log_all(py, &self.inner);
    }

    /// Drop the connection. As `close`, awaitable.
    fn aclose(&self, py: Python<'_>) -> Answer {
        self.close(py);
        Answer::new(py, "RedisStore.aclose", Ok(py.None()))
    }

    fn __repr__(&self) -> String {
        format!("<RedisStore prefix={}>", self.inner.options().prefix)
    }
}

/// Reads what a store takes beside its URL.
pub(crate) fn options(
    prefix: Given<'_, '_>,
    timeout: Given<'_, '_>,
    on_error: Given<'_, '_>,
    clock: Given<'_, '_>,
) -> Result<StoreOptions> {
    Ok(StoreOptions {
        prefix: read(prefix, input::store_prefix)?,
        timeout: read_duration(timeout, input::store_timeout)?,
        on_error: read(on_error, input::on_error)?.unwrap_or_default(),
        clock: read(clock, input::store_clock)?,
    })
}
