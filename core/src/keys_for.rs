//! The keys of a request, from what its rules say that they are keyed by.
//!
//! Pure. Invariant: a rule on the address never gets a key without an address, and no rule gets a key of which a part is
//! missing. Specified by `tests/vectors/keys-for.json`.

use std::borrow::Cow;

use crate::error::Error;
use crate::identity::network::network;
use crate::key::Key;
use crate::rule::Rule;

/// The key of each rule, from the words of its [`by`](Rule::by), in the order of the rules, at least one.
///
/// The word `address` is the network of `address`, as wide as the rule says. Without an address, as behind a Unix
/// socket, rules on the address are left out. Every other word is a string of `words`, in its canonical spelling; those
/// that no rule names are ignored.
///
/// ```
/// use std::time::Duration;
/// use doorkeep::{Rule, keys_for};
///
/// let rules = [
///     Rule::new("login-ip", "20/1m".parse()?)?.with_by(&["address"])?,
///     Rule::strikes("login-account", 5, Duration::from_secs(900))?.with_by(&["account"])?,
/// ];
/// let keys = keys_for(&rules, Some("203.0.113.9"), &[("account", "ann@example.com")])?;
/// assert_eq!(keys.len(), 2);
/// assert!(keys[0].is_address());
/// # Ok::<(), doorkeep::Error>(())
/// ```
///
/// # Errors
/// A rule has no `by` ([`ErrorKind::Config`](crate::ErrorKind)). A word has no string, the address is not one, or no rule
/// is left ([`ErrorKind::InvalidKey`](crate::ErrorKind): answer 400).
pub fn keys_for<W: AsRef<[u8]>>(rules: &[Rule], address: Option<&str>, words: &[(&str, W)]) -> Result<Vec<Key>, Error> {
    let word = |wanted: &str| words.iter().find(|(word, _)| *word == wanted).map(|(_, text)| text.as_ref());
    Ok(made(rules, |_| Ok(address), word)?.0)
}

/// The keys, and whether a rule was left out because there is no address.
///
/// `address` is asked by each rule on the address, `word` for every other word.
pub(crate) fn made<'w>(
    rules: &[Rule],
    address: impl Fn(&Rule) -> Result<Option<&'w str>, Error>,
    word: impl Fn(&str) -> Option<&'w [u8]>,
) -> Result<(Vec<Key>, bool), Error> {
    let (mut keys, mut leaves_out) = (Vec::with_capacity(rules.len()), false);
    for rule in rules {
        if rule.by().is_empty() {
            return Err(Error::config(format!("a rule must say what it is keyed by, rule=`{}`", rule.name())));
        }
        let is_on_address = rule.by().iter().any(|word| word == Rule::ADDRESS);
        let address = if is_on_address { address(rule)? } else { None };
        match address {
            None if is_on_address => leaves_out = true,
            Some(address) if rule.is_address_alone() => keys.push(rule.ip_key(address)?),
            _ => keys.push(key(rule, address.unwrap_or_default(), &word)?),
        }
    }
    if keys.is_empty() {
        return Err(Error::key("no key is left: the address is missing, and there is no rule without it"));
    }
    Ok((keys, leaves_out))
}

fn key<'w>(rule: &Rule, address: &str, word: impl Fn(&str) -> Option<&'w [u8]>) -> Result<Key, Error> {
    let part = |wanted: &String| {
        if wanted == Rule::ADDRESS {
            return network(address, rule.ipv6_prefix()).map(|bucket| Cow::Owned(bucket.into_bytes()));
        }
        word(wanted).filter(|text| !text.is_empty()).map(Cow::Borrowed).ok_or_else(|| {
            let text = "a key needs a text for each word of its rule";
            Error::key(format!("{text}, rule=`{}`, word=`{wanted}`", rule.name()))
        })
    };
    let parts: Vec<Cow<'_, [u8]>> = rule.by().iter().map(part).collect::<Result<_, _>>()?;
    rule.key(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}
