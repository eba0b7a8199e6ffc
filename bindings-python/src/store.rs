//! The Redis or Valkey server in which several processes share a budget.
//!
//! Validates nothing: the core reads every option. Invariant: neither repr nor messages show the URL, since it may
//! contain a password.

use doorkeep::host::input;
use doorkeep::redis::{self, StoreOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::answer::Answer;
use crate::convert::{Arg, read, read_duration};
use crate::error::Result;
use crate::events;

/// A Redis or Valkey server that keeps the state of limiters, so that all processes share one budget.
///
/// Connects at first use, over one connection. If the server does not answer within `timeout`, nothing is raised:
/// `on_error` decides. One store serves blocking and `aio` limiters, any thread, any event loop, and a forked child,
/// which connects again. Outages are logged by the logger `doorkeep`, without keys and passwords.
///
/// Parameters
/// ----------
/// url
///     `redis://[user:password@]host[:port][/database]`, `rediss://...` for TLS, or `unix:///path`.
/// prefix
///     The start of every key in the server: 1 to 64 of `A-Z a-z 0-9 _ . : -`, default `"ratelimit"`. Services with one
///     prefix and rules of one name and policy share a budget.
/// timeout
///     The time limit of every call, including connecting: 1 ms to 60 s as a `timedelta`, a number of seconds, or a
///     string such as `"200ms"`. Defaults to 200 ms.
/// on_error
///     What decides when the server does not answer: `"local"` (default), tables of this process under the same rules;
///     `"open"`, admitted without counting; `"closed"`, unavailable. A limiter may override it.
/// clock
///     Which clock decides: the `"server"`'s (default), on which replicas agree, or the `"client"`'s.
///
/// Raises
/// ------
/// ConfigError
///     The URL cannot be parsed, or an option is out of its bounds.
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
        prefix: Arg<'_, '_>,
        timeout: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        let options = options(prefix, timeout, on_error, clock)?;
        let Ok(url) = url.cast::<PyString>() else {
            return Err(PyTypeError::new_err("the url of a store must be text").into());
        };
        // Imported now and not with the first event: a fork while another thread imports leaves the import lock held in
        // the child.
        url.py().import("logging")?;
        Ok(Self { inner: redis::RedisStore::new(&url.to_string_lossy(), options)? })
    }

    /// Close the connection. From then on `on_error` decides. Calling it again does nothing.
    fn close(&self, py: Python<'_>) {
        self.inner.close();
        events::log_all(py, &self.inner);
    }

    /// Close the connection. Like `close`, awaitable.
    fn aclose(&self, py: Python<'_>) -> Answer {
        self.close(py);
        Answer::new(py, "RedisStore.aclose", Ok(py.None()))
    }

    fn __repr__(&self) -> String {
        format!("<RedisStore prefix={}>", self.inner.options().prefix)
    }
}

/// Reads the options of a store.
pub(crate) fn options(
    prefix: Arg<'_, '_>,
    timeout: Arg<'_, '_>,
    on_error: Arg<'_, '_>,
    clock: Arg<'_, '_>,
) -> Result<StoreOptions> {
    Ok(StoreOptions {
        prefix: read(prefix, input::store_prefix)?,
        timeout: read_duration(timeout, input::store_timeout)?,
        on_error: read(on_error, input::on_error)?.unwrap_or_default(),
        clock: read(clock, input::store_clock)?,
    })
}
