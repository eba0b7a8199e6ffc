//! What can be wrong with a scenario or with a question to a closed form.

use std::fmt;

/// A scenario or a question that cannot be answered. Nothing was run.
///
/// Names the field and, in a file, the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// What was given, cut so that a scenario of megabytes does not become a message of megabytes.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

impl From<doorkeep::Error> for Error {
    fn from(error: doorkeep::Error) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
