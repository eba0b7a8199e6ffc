//! The bounds of numbers and names, their checks, and the texts of what is refused.
//!
//! Knows no type of the library and no host. Invariant: a bound and its error text are written once, so a Rust caller
//! and every host language meet the same. Specified by `tests/vectors/config.json`.

use std::fmt::Display;

use crate::error::{Error, shown};

/// The most keys of one call.
pub(crate) const MAX_KEYS: usize = 16;
/// The most rates of one rule.
pub(crate) const MAX_RATES: usize = 16;
const MIN_SECRET: usize = 16;

/// A whole number, under the name that error texts give it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) name: &'static str,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// The most that one window holds: 2^26.
const MAX_COUNT: u64 = 1 << 26;
/// The most entries that a table may be configured for: 2^30.
const MAX_CAPACITY: u64 = 1 << 30;

pub(crate) const THRESHOLD: Whole = Whole { name: "threshold", min: 1, max: 1024 };
pub(crate) const RATE_COUNT: Whole = Whole { name: "rate count", min: 1, max: MAX_COUNT };
pub(crate) const BUCKET_RATE: Whole = Whole { name: "rate", min: 1, max: MAX_COUNT };
pub(crate) const LIMIT: Whole = Whole { name: "limit", min: 1, max: MAX_COUNT };
pub(crate) const CAPACITY: Whole = Whole { name: "capacity", min: 1, max: MAX_CAPACITY };
pub(crate) const MAX_TRACKED_KEYS: Whole = Whole { name: "max tracked keys", ..CAPACITY };
pub(crate) const MAX_WINDOW_KEYS: Whole = Whole { name: "max keys", ..CAPACITY };
pub(crate) const IPV6_PREFIX: Whole = Whole { name: "ipv6 prefix", min: 32, max: 128 };

impl Whole {
    /// The number, if it is within the bounds.
    pub(crate) fn check<N: Copy + Display + TryInto<u64>>(self, number: N) -> Result<N, Error> {
        if self.contains(number) { Ok(number) } else { Err(self.refused("value", number)) }
    }

    pub(crate) fn contains<N: TryInto<u64>>(self, number: N) -> bool {
        number.try_into().is_ok_and(|number| (self.min..=self.max).contains(&number))
    }

    /// What is said of a value that is out of the bounds, or not a whole number at all.
    pub(crate) fn refused(self, variable: &str, value: impl Display) -> Error {
        let Self { name, min, max } = self;
        Error::config(format!("{name} must be a whole number from {min} to {max}, {variable}=`{value}`"))
    }
}

/// A rule name as it may stand in Redis and in metrics.
pub(crate) fn check_name(name: &str) -> Result<&str, Error> {
    if is_name(name) {
        return Ok(name);
    }
    Err(Error::config(format!("rule name must match [a-z0-9-]{{1,32}}, name=`{}`", shown(name))))
}

/// Words that a rule is keyed by.
pub(crate) fn check_words(by: &[&str]) -> Result<(), Error> {
    match by.iter().find(|word| !is_name(word)) {
        None => Ok(()),
        Some(word) => Err(Error::config(format!("by must name things by [a-z0-9-]{{1,32}}, by=`{}`", shown(word)))),
    }
}

pub(crate) fn check_secret(secret: &[u8]) -> Result<(), Error> {
    if secret.len() >= MIN_SECRET {
        return Ok(());
    }
    Err(Error::config(format!("secret must be at least {MIN_SECRET} bytes, bytes={}", secret.len())))
}

/// Whether a single-key limiter takes this key: an empty key is an error, not a shared bucket.
pub(crate) fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.is_empty() { Err(Error::key("a key must not be empty")) } else { Ok(()) }
}

pub(crate) fn check_key_count(keys: usize) -> Result<(), Error> {
    if (1..=MAX_KEYS).contains(&keys) {
        return Ok(());
    }
    Err(Error::config(format!("a call takes 1 to {MAX_KEYS} keys, keys={keys}")))
}

pub(crate) fn check_rate_count(rates: usize) -> Result<(), Error> {
    if (1..=MAX_RATES).contains(&rates) {
        return Ok(());
    }
    Err(Error::config(format!("a rule takes 1 to {MAX_RATES} rates, rates={rates}")))
}

fn is_name(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Bounds of a store.
#[cfg(feature = "redis")]
pub(crate) mod store {
    use std::fmt::Display;
    use std::time::Duration;

    use crate::error::{Error, shown};

    /// What stands before every key of a store.
    pub(crate) fn check_prefix(prefix: &str) -> Result<(), Error> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-');
        if (1..=64).contains(&prefix.len()) && prefix.bytes().all(is_plain) {
            return Ok(());
        }
        Err(prefix_refused(shown(prefix)))
    }

    pub(crate) fn prefix_refused(prefix: impl Display) -> Error {
        Error::config(format!("prefix must match [A-Za-z0-9_.:-]{{1,64}}, prefix=`{prefix}`"))
    }

    /// The bound on every call to a store.
    pub(crate) fn check_timeout(timeout: Duration) -> Result<(), Error> {
        if (Duration::from_millis(1)..=Duration::from_secs(60)).contains(&timeout) {
            return Ok(());
        }
        Err(timeout_refused(format_args!("{timeout:?}")))
    }

    pub(crate) fn timeout_refused(timeout: impl Display) -> Error {
        Error::config(format!("timeout must be from 1ms to 60s, value=`{timeout}`"))
    }
}
