//! The options of a store, from a host language.
//!
//! Specified by `tests/vectors/config.json` and the stores' own tests.

use std::time::Duration;

use crate::bounds::store::{check_timeout, prefix_refused, timeout_refused};
use crate::error::{Error, shown};
use crate::host::input::durations::duration;
use crate::host::input::{Unit, Value};
use crate::redis::{StoreClock, StoreOptions};

/// The prefix of a store's keys: 1 to 64 of `A-Z a-z 0-9 _ . : -`, default `ratelimit`.
///
/// # Errors
/// The value is not such a string.
pub fn store_prefix(value: Value<'_>) -> Result<String, Error> {
    match value {
        Value::Missing => Ok(StoreOptions::default().prefix),
        Value::Text(text) => Ok(text.to_owned()),
        _ => Err(prefix_refused(value)),
    }
}

/// The time limit of every call to a store: 1 ms to 60 s, default 200 ms.
///
/// # Errors
/// The value is not a duration within these bounds.
pub fn store_timeout(value: Value<'_>, unit: Unit) -> Result<Duration, Error> {
    if value == Value::Missing {
        return Ok(StoreOptions::default().timeout);
    }
    let timeout = duration("timeout", value, unit).and_then(|timeout| check_timeout(timeout).map(|()| timeout));
    timeout.map_err(|_| timeout_refused(value))
}

/// The clock that decides: `server` (default) or `client`.
///
/// # Errors
/// Any other value.
pub fn store_clock(value: Value<'_>) -> Result<StoreClock, Error> {
    match value {
        Value::Missing => Ok(StoreClock::default()),
        Value::Text("server") => Ok(StoreClock::Server),
        Value::Text("client") => Ok(StoreClock::Client),
        Value::Text(text) => Err(Error::config(format!("clock must be server or client, value=`{}`", shown(text)))),
        _ => Err(Error::config(format!("clock must be server or client, value=`{value}`"))),
    }
}

/// The error for a limiter over a store without a name, which its keys need.
#[must_use]
pub fn name_required() -> Error {
    Error::config("name is required with a store")
}
