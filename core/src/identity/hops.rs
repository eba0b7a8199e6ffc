//! The hops that a forwarding header names, read from its end.
//!
//! Knows not whom to trust. Invariants: the work is bounded whatever the size of the header, and the hops end at the
//! first one that is no address, so that nothing to the left of it is ever seen. What a proxy of yours appended stands
//! at the end, which is why nothing is read from the left: an open quote in what the client sent must not swallow it.

use std::net::IpAddr;

use crate::identity::network;

/// The most hops that are looked at. Real chains have one to four.
pub(super) const MAX_HOPS: u32 = 64;
/// The most bytes that are looked at, counted from the end of the header.
pub(super) const MAX_BYTES: usize = 16 * 1024;
/// No spelling of an address is longer: brackets, a zone and a port included.
const LONGEST_HOP: usize = 128;

/// How a header names hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// Addresses with commas between them: `X-Forwarded-For`.
    List,
    /// RFC 7239: `for=` of each element.
    Forwarded,
    /// One address: `CF-Connecting-IP`, `X-Real-IP` and their like.
    Single,
}

/// The hops from right to left.
pub(super) struct Hops<'a, L> {
    syntax: Syntax,
    lines: &'a [L],
    rest: Option<&'a [u8]>,
    hops_left: u32,
    bytes_left: usize,
}

impl<'a, L: AsRef<[u8]>> Hops<'a, L> {
    pub(super) fn new(syntax: Syntax, lines: &'a [L]) -> Self {
        // Of a header that says one thing, two lines say nothing: either may be the client's own.
        let lines = if syntax == Syntax::Single && lines.len() > 1 { &[] } else { lines };
        Self { syntax, lines, rest: None, hops_left: MAX_HOPS, bytes_left: MAX_BYTES }
    }

    /// The text of the next hop; none at the leftmost one, and where the bound cuts one.
    fn element(&mut self) -> Option<&'a [u8]> {
        let line = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let (last, before) = self.lines.split_last()?;
                self.lines = before;
                last.as_ref()
            }
        };
        let unseen = line.len().saturating_sub(self.bytes_left);
        let seen = &line[unseen..];
        let comma = match self.syntax {
            Syntax::List => seen.iter().rposition(|&byte| byte == b','),
            Syntax::Forwarded => last_comma_outside_quotes(seen),
            Syntax::Single => None,
        };
        if let Some(comma) = comma {
            self.rest = Some(&line[..unseen + comma]);
            self.bytes_left -= seen.len() - comma;
            return Some(&seen[comma + 1..]);
        }
        self.bytes_left -= seen.len();
        (unseen == 0).then_some(seen)
    }
}

impl<L: AsRef<[u8]>> Iterator for Hops<'_, L> {
    type Item = IpAddr;

    fn next(&mut self) -> Option<IpAddr> {
        self.hops_left = self.hops_left.checked_sub(1)?;
        let element = self.element()?;
        let address = match self.syntax {
            Syntax::Forwarded => forwarded_for(element),
            Syntax::List | Syntax::Single => address(element),
        };
        if address.is_none() {
            self.hops_left = 0;
        }
        address
    }
}

/// An address as proxies write it: bare, with a port, in brackets. Zones are dropped, a mapped address is its IPv4 address.
pub(super) fn address(hop: &[u8]) -> Option<IpAddr> {
    let hop = hop.trim_ascii();
    let text = std::str::from_utf8(hop).ok().filter(|text| text.len() <= LONGEST_HOP)?;
    let bare = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (inside, port) = bracketed.split_once(']')?;
            let is_v6 = inside.contains(':') && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
            is_v6.then_some(inside)?
        }
        // One colon stands before the port of an IPv4 address; in a bare IPv6 address there are more.
        None => match text.split_once(':') {
            Some((v4, port)) if !port.contains(':') => is_port(port).then_some(v4)?,
            _ => text,
        },
    };
    network::parse(bare).ok().map(|address| address.to_canonical())
}

/// A port of RFC 7239: up to five digits, or a name that hides them.
fn is_port(text: &str) -> bool {
    let is_hidden = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && is_hidden(name),
        None => (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()),
    }
}

fn last_comma_outside_quotes(text: &[u8]) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b'"' if !(is_quoted && is_escaped(&text[..at])) => is_quoted = !is_quoted,
            b',' if !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether an odd number of backslashes stands before. Each run of them is counted for one quote, so this stays linear.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// The address in the one `for` of an element; none for `unknown`, hidden names, and an element that is malformed
/// anywhere, since then nobody knows where its values end.
fn forwarded_for(element: &[u8]) -> Option<IpAddr> {
    let mut rest = element.trim_ascii();
    let mut found = None;
    while !rest.is_empty() {
        let (name, after) = rest.split_at(rest.iter().position(|&byte| byte == b'=')?);
        if name.is_empty() || !name.iter().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b)) {
            return None;
        }
        let (value, after) = value(&after[1..])?;
        if name.eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
            return None;
        }
        rest = after.trim_ascii_start();
        if !rest.is_empty() {
            rest = rest.strip_prefix(b";")?.trim_ascii_start();
        }
    }
    address(found?)
}

/// A value and what follows it. Escapes stay as they are: no address needs one.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let mut bytes = quoted.iter().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b'"' => return Some((&quoted[..at], &quoted[at + 1..])),
                b'\\' => drop(bytes.next()),
                _ => {}
            }
        }
        return None;
    }
    let end = text.iter().position(|&b| b == b';' || b.is_ascii_whitespace()).unwrap_or(text.len());
    let value = &text[..end];
    // Colons and brackets would need quotes; proxies leave them out, and nothing is ambiguous without them.
    (!value.is_empty() && !value.iter().any(|b| b"\"\\,=".contains(b))).then_some((value, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_a_hop_that_is_no_address() {
        for syntax in [Syntax::List, Syntax::Forwarded] {
            let lines = ["192.0.2.1, for=192.0.2.2", "unknown"];
            let mut hops = Hops::new(syntax, &lines);
            assert_eq!((hops.next(), hops.next(), hops.next()), (None, None, None));
        }
    }
}
