//! What can be wrong with a question: its configuration or its key.
//!
//! Knows nothing of limiters. Invariant: a message names the thing, the bound and the variable,
//! and never the value of a key. Every language shows these texts unchanged.

use std::borrow::Cow;
use std::fmt;

/// The kind of an [`Error`], by what the caller does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fix the configuration: a bound, an option or a combination of rules.
    Config,
    /// Answer 400: the key is empty, is not text or is not an address.
    InvalidKey,
}

/// A question that could not be asked. Nothing was counted.
///
/// A denial is not an error: it is a [`Decision`](crate::Decision).
///
/// ```
/// use doorkeep::{ErrorKind, Rates};
///
/// let error = "0/1m".parse::<Rates>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Config);
/// assert_eq!(error.to_string(), "rate count must be a whole number from 1 to 67108864, rate=`0/1m`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
}

impl Error {
    /// What the caller has to do about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn config(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ErrorKind::Config, message: message.into() }
    }

    pub(crate) fn key(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ErrorKind::InvalidKey, message: message.into() }
    }
}

/// What was given, cut so that a configuration of megabytes does not become a message of megabytes.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
