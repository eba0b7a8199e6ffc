//! One spelling for each account, made by the core.

use doorkeep::EmailOptions;
use doorkeep::host::input;
use pyo3::prelude::*;

use crate::convert::{Arg, read, start_of, text};
use crate::error::Result;

/// Return the canonical spelling of an email, for looking up the account and for making keys.
///
/// NFKC and lower case, one character at a time (ß stays apart from ss), without white space around it; the domain in
/// ASCII as in DNS (IDNA). Applying it twice changes nothing.
///
/// Parameters
/// ----------
/// text
///     At most 1,024 bytes as UTF-8.
/// drop_tags
///     Whether to drop the first ``+`` of the local part and all that follows. Off by default: not every provider
///     ignores tags.
/// drop_gmail_dots
///     Whether to drop the dots in the local part at gmail.com and googlemail.com. Off by default.
///
/// Returns
/// -------
/// str
///     Such as ``"ann@example.com"``.
///
/// Raises
/// ------
/// InvalidKeyError
///     `text` is not a string, does not have exactly one ``@`` with characters on both sides, has an invalid domain, a
///     control character or a lone surrogate, or is too long: answer 400.
#[pyfunction]
#[pyo3(
    signature = (text, *, drop_tags=None, drop_gmail_dots=None),
    text_signature = "(text, *, drop_tags=False, drop_gmail_dots=False)"
)]
pub(crate) fn canonical_email(
    text: &Bound<'_, PyAny>,
    drop_tags: Arg<'_, '_>,
    drop_gmail_dots: Arg<'_, '_>,
) -> Result<String> {
    let options = EmailOptions {
        drop_tags: read(drop_tags, input::drop_tags)?,
        drop_gmail_dots: read(drop_gmail_dots, input::drop_gmail_dots)?,
    };
    Ok(doorkeep::canonical_email(
        input::email(self::text(&start_of(text, input::SPELLING_REACH)?)?.as_deref())?,
        options,
    )?)
}

/// Return the canonical spelling of a user name, for looking up the account and for making keys.
///
/// NFKC and lower case, one character at a time (ß stays apart from ss), without white space around it. Applying it twice
/// changes nothing.
///
/// Parameters
/// ----------
/// text
///     At most 1,024 bytes as UTF-8.
///
/// Returns
/// -------
/// str
///     Such as ``"ann"``.
///
/// Raises
/// ------
/// InvalidKeyError
///     `text` is not a string, is empty, has a control character or a lone surrogate, or is too long: answer 400.
#[pyfunction]
pub(crate) fn canonical_username(text: &Bound<'_, PyAny>) -> Result<String> {
    Ok(doorkeep::canonical_username(input::username(self::text(&start_of(text, input::SPELLING_REACH)?)?.as_deref())?)?)
}
