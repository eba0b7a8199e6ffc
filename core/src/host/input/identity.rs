//! Arguments of host languages about clients and accounts.
//!
//! Invariant: of a string that is too long, no more is read than is needed to know that. Specified by
//! `tests/vectors/email.json`, `username.json` and `client-ip.json`.

use crate::error::Error;
use crate::host::input::Value;
use crate::identity::canonical;
use crate::identity::client_ip::DEFAULT_HEADER;

/// Whether the tags of an email are dropped; off by default.
///
/// # Errors
/// The value is not a boolean.
pub fn drop_tags(value: Value<'_>) -> Result<bool, Error> {
    flag("drop tags", value)
}

/// Whether the dots in an email at Gmail are dropped; off by default.
///
/// # Errors
/// The value is not a boolean.
pub fn drop_gmail_dots(value: Value<'_>) -> Result<bool, Error> {
    flag("drop gmail dots", value)
}

/// How much of the start of an email or a user name is enough to know that it is too long; a host needs to pass no
/// more.
pub const SPELLING_REACH: usize = canonical::MAX_BYTES + 1;

/// An email as a host passes it: none if it is not a string, WTF-8 if it has lone surrogates.
///
/// # Errors
/// It is not a string, is longer than 1,024 bytes, or has lone surrogates, which no canonical spelling has.
pub fn email(bytes: Option<&[u8]>) -> Result<&str, Error> {
    well_formed("an email", bytes)
}

/// A user name as a host passes it, like [`email`].
///
/// # Errors
/// It is not a string, is longer than 1,024 bytes, or has lone surrogates.
pub fn username(bytes: Option<&[u8]>) -> Result<&str, Error> {
    well_formed("a username", bytes)
}

/// The header into which proxies write the address of the client, default `x-forwarded-for`.
///
/// # Errors
/// The value is not a string; [`ClientIp::new`](crate::ClientIp::new) validates its characters.
pub fn client_ip_header(value: Value<'_>) -> Result<String, Error> {
    match value {
        Value::Missing => Ok(DEFAULT_HEADER.to_owned()),
        Value::Text(text) => Ok(text.to_owned()),
        _ => Err(Error::config(format!("header must be the name of a header, value=`{value}`"))),
    }
}

/// The error for a peer of a socket that is neither a string nor missing.
#[must_use]
pub fn peer_not_text() -> Error {
    Error::config("peer must be the text of an address, or none")
}

/// The error for headers of a request that cannot be read as headers.
#[must_use]
pub fn not_headers() -> Error {
    Error::config("headers must be a mapping of names to values, or pairs of them")
}

fn flag(what: &str, value: Value<'_>) -> Result<bool, Error> {
    match value {
        Value::Missing => Ok(false),
        Value::Bool(truth) => Ok(truth),
        _ => Err(Error::config(format!("{what} must be true or false, value=`{value}`"))),
    }
}

fn well_formed<'a>(what: &str, bytes: Option<&'a [u8]>) -> Result<&'a str, Error> {
    let bytes = bytes.ok_or_else(|| Error::key(format!("{what} must be text")))?;
    let bytes = canonical::bounded(what, bytes)?;
    std::str::from_utf8(bytes).map_err(|_| Error::key(format!("{what} must have no lone surrogate")))
}
