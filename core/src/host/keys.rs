//! `keys_for` for hosts: the address may be omitted, a word may not be a string, and the host learns whether rules were
//! left out, so that it can warn once.

use crate::error::Error;
use crate::key::Key;
use crate::keys_for::made;
use crate::rule::Rule;

/// The warning, once per process, if rules were left out.
pub const NO_ADDRESS: &str =
    "a request has no address: rules on the address are left out for such requests, the others stand";

/// The address of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// It was omitted, which is a mistake if a rule is keyed by the address.
    Unnamed,
    /// The request has none.
    None,
    /// The address as a string.
    Text(&'a str),
}

/// The keys of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// One key for each rule that is not left out, in order.
    pub keys: Vec<Key>,
    /// Whether a rule was left out, because the request has no address.
    pub leaves_out: bool,
}

/// Like [`crate::keys_for`]. `word` returns the UTF-8 or WTF-8 bytes of a word, and none for anything but a string.
///
/// # Errors
/// Like [`crate::keys_for`]; also if a rule is keyed by the address and the address was omitted.
pub fn keys_for<'a>(
    rules: &[Rule],
    address: Address<'a>,
    word: impl Fn(&str) -> Option<&'a [u8]>,
) -> Result<Made, Error> {
    let address = |rule: &Rule| match address {
        Address::Text(address) => Ok(Some(address)),
        Address::None => Ok(None),
        Address::Unnamed => {
            let text = "a rule keyed by the address needs an address, or none by name";
            Err(Error::config(format!("{text}, rule=`{}`", rule.name())))
        }
    };
    let (keys, leaves_out) = made(rules, address, word)?;
    Ok(Made { keys, leaves_out })
}
