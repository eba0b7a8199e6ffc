//! Keys: what an attempt is counted under, as a digest.
//!
//! Pure. Invariant: the value is hashed the moment a key is built and kept nowhere, so no table,
//! log line, error or `Debug` can show it. Specified by `tests/vectors/keys.json`.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::identity::network::network;
use crate::rule::Rule;

/// The first 16 bytes of SHA-256 (or HMAC-SHA-256) over the parts of a key, each with its length before it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(align(8))]
pub struct Digest([u8; 16]);

impl Digest {
    /// A digest that was made elsewhere by the same rule.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The digest of `parts`; the length before each keeps (`a b`, `c`) and (`a`, `b c`) apart.
    pub(crate) fn of_parts(parts: &[&[u8]], secret: Option<&[u8]>) -> Result<Self, Error> {
        check_parts(parts)?;
        match secret {
            None => {
                let mut hash = Sha256::new();
                feed(parts, |bytes| hash.update(bytes));
                Ok(Self::cut(&hash.finalize()))
            }
            Some(secret) => {
                let mut hash = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a secret of any length");
                feed(parts, |bytes| hash.update(bytes));
                Ok(Self::cut(&hash.finalize().into_bytes()))
            }
        }
    }

    fn cut(full: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&full[..16]);
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0_u8; 32];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).expect("hex is ASCII"))
    }
}

const HEX: [u8; 16] = *b"0123456789abcdef";

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let nibble = |c: u8| (c as char).to_digit(16).and_then(|n| u8::try_from(n).ok());
        let mut bytes = [0; 16];
        if text.len() != 32 {
            return Err(Error::key("a digest must be 32 hexadecimal characters"));
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (Some(high), Some(low)) = (nibble(pair[0]), nibble(pair[1])) else {
                return Err(Error::key("a digest must be 32 hexadecimal characters"));
            };
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

/// What an attempt is counted under: a rule and the digest of a value. Made by [`Rule::key`] and [`Rule::ip_key`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    rule: Rule,
    digest: Digest,
    is_address: bool,
}

impl Key {
    /// A key whose digest was made by the same rule, perhaps in another process.
    #[must_use]
    pub fn from_digest(rule: Rule, digest: Digest, is_address: bool) -> Self {
        Self { rule, digest, is_address }
    }

    pub(crate) fn from_parts(rule: &Rule, parts: &[&[u8]], is_address: bool) -> Result<Self, Error> {
        let digest = Digest::of_parts(parts, rule.secret())?;
        Ok(Self { rule: rule.clone(), digest, is_address })
    }

    /// Aims the key at another value of its rule: cheaper than another key where one is asked about many values in turn.
    pub fn set_digest(&mut self, digest: Digest) {
        self.digest = digest;
    }

    /// The rule that decides for this key.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The digest of the value.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether the key was built from an address alone: a success must not wipe it unasked.
    #[must_use]
    pub fn is_address(&self) -> bool {
        self.is_address
    }

    /// Whether both are counted as one.
    pub(crate) fn counts_as(&self, other: &Self) -> bool {
        self.digest == other.digest && self.rule == other.rule
    }
}

impl Rule {
    /// The key of a value made of one or more parts, each UTF-8 or WTF-8 bytes. Parts are not trimmed.
    ///
    /// # Errors
    /// There is no part, or one is empty: an empty key is an error, not a shared bucket.
    pub fn key(&self, parts: &[&[u8]]) -> Result<Key, Error> {
        Key::from_parts(self, parts, self.is_address_alone())
    }

    /// The key of a client address: `rule.key(network(address, prefix))`.
    ///
    /// # Errors
    /// The text is not an IPv4 or IPv6 address.
    pub fn ip_key(&self, address: &str) -> Result<Key, Error> {
        let bucket = network(address, self.ipv6_prefix())?;
        Key::from_parts(self, &[bucket.as_bytes()], true)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {})", self.rule.name(), self.digest)
    }
}

fn check_parts(parts: &[&[u8]]) -> Result<(), Error> {
    if parts.is_empty() {
        return Err(Error::key("a key needs at least one part"));
    }
    if let Some(empty) = parts.iter().position(|part| part.is_empty()) {
        return Err(Error::key(format!("a key part must not be empty, part={}", empty + 1)));
    }
    match parts.iter().position(|part| u32::try_from(part.len()).is_err()) {
        Some(long) => Err(Error::key(format!("a key part must be shorter than 4 GiB, part={}", long + 1))),
        None => Ok(()),
    }
}

fn feed(parts: &[&[u8]], mut update: impl FnMut(&[u8])) {
    for part in parts {
        let length = u32::try_from(part.len()).expect("check_parts bounds the length");
        update(&length.to_be_bytes());
        update(part);
    }
}
