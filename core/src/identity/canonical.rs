//! One spelling for each account: emails and user names before they become keys.
//!
//! Pure. Invariants: applying a function to its own answer changes nothing; what folds together is case, width and
//! characters that nobody sees, never two letters that a reader tells apart (ß and ss, dotted and dotless i). Specified by `tests/vectors/email.json` and
//! `tests/vectors/username.json`.

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use unicode_normalization::UnicodeNormalization;

use crate::error::Error;

/// No email and no name of a user is longer; bounds the work for texts of any size.
pub(crate) const MAX_BYTES: usize = 1024;
const GMAIL: [&str; 2] = ["gmail.com", "googlemail.com"];

/// What providers of mail take for one mailbox and others do not. Both are off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmailOptions {
    /// Drops from the first `+` of the local part on, unless nothing stands before it.
    pub drop_tags: bool,
    /// Drops the dots in the local part of gmail.com and googlemail.com.
    pub drop_gmail_dots: bool,
}

/// The canonical spelling of an email: NFKC and lower case, without white space around it and without invisible
/// characters, the domain as in DNS.
///
/// Lower case is taken one character at a time. The domain is in ASCII by UTS 46 (IDNA), without a dot at its end.
///
/// # Errors
/// There is not exactly one `@`, a side of it is empty, the domain is none, a control character is in it, or it is longer
/// than 1,024 bytes as given or as made ([`ErrorKind::InvalidKey`](crate::ErrorKind)).
///
/// ```
/// use doorkeep::{EmailOptions, canonical_email};
///
/// assert_eq!(canonical_email(" Ann@B\u{fc}cher.Example ", EmailOptions::default())?, "ann@xn--bcher-kva.example");
/// let options = EmailOptions { drop_tags: true, drop_gmail_dots: true };
/// assert_eq!(canonical_email("A.N.N+news@gmail.com", options)?, "ann@gmail.com");
/// # Ok::<(), doorkeep::Error>(())
/// ```
pub fn canonical_email(text: &str, options: EmailOptions) -> Result<String, Error> {
    let text = plain("an email", text)?;
    let (local, domain) = text
        .split_once('@')
        .filter(|(_, domain)| !domain.contains('@'))
        .ok_or_else(|| Error::key("an email must have exactly one @"))?;
    let domain = ascii_domain(domain)?;
    let local = mailbox(local, &domain, options);
    if local.is_empty() || domain.is_empty() {
        return Err(Error::key("an email must have text on both sides of the @"));
    }
    bounded("an email", format!("{local}@{domain}"))
}

/// The canonical spelling of a user name: NFKC and lower case, without white space around it and without invisible
/// characters.
///
/// # Errors
/// It is empty, a control character is in it, or it is longer than 1,024 bytes as given or as made
/// ([`ErrorKind::InvalidKey`](crate::ErrorKind)).
///
/// ```
/// assert_eq!(doorkeep::canonical_username(" \u{ff21}nn ")?, "ann");
/// # Ok::<(), doorkeep::Error>(())
/// ```
pub fn canonical_username(text: &str) -> Result<String, Error> {
    let text = plain("a username", text)?;
    if text.is_empty() {
        return Err(Error::key("a username must not be empty"));
    }
    bounded("a username", text)
}

/// The text folded and trimmed, without invisible and control characters.
fn plain(what: &str, text: &str) -> Result<String, Error> {
    let text = visible(folded(bounded(what, text)?.trim()));
    // Folding may put a space in front: that is what NFKC makes of an accent that stands alone.
    let text = text.trim();
    if text.contains(char::is_control) {
        return Err(Error::key(format!("{what} must have no control character")));
    }
    Ok(text.to_owned())
}

pub(crate) fn bounded<T: AsRef<[u8]>>(what: &str, text: T) -> Result<T, Error> {
    if text.as_ref().len() <= MAX_BYTES {
        return Ok(text);
    }
    Err(Error::key(format!("{what} must be at most {MAX_BYTES} bytes")))
}

/// One character at a time: case folding of whole texts would take ß for ss.
fn folded(text: &str) -> String {
    text.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

/// Without the characters that show nothing. A database may compare names without them, as PostgreSQL does with the ICU
/// collations, and each of them would make another key of one account.
fn visible(text: String) -> String {
    if !text.contains(is_invisible) {
        return text;
    }
    // What an invisible character kept apart may compose now.
    folded(&text.replace(is_invisible, ""))
}

/// Default_Ignorable_Code_Point of the Unicode Character Database, and the interlinear annotations, which collation
/// ignores as well.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn mailbox(local: &str, domain: &str, options: EmailOptions) -> String {
    let mut local = local;
    if options.drop_tags
        && let Some((plus, _)) = local.char_indices().skip(1).find(|&(_, c)| c == '+')
    {
        local = &local[..plus];
    }
    if options.drop_gmail_dots && GMAIL.contains(&domain) {
        // What stood on both sides of a dot may compose now.
        return folded(&local.replace('.', "")).trim_start().to_owned();
    }
    local.to_owned()
}

fn ascii_domain(domain: &str) -> Result<String, Error> {
    if domain.is_empty() {
        return Ok(String::new());
    }
    let length = DnsLength::VerifyAllowRootDot;
    let ascii = Uts46::new().to_ascii(domain.as_bytes(), AsciiDenyList::URL, Hyphens::Allow, length);
    let ascii = ascii.map_err(|_| Error::key("the domain of an email must be a domain name"))?;
    Ok(ascii.strip_suffix('.').unwrap_or(&ascii).to_owned())
}
