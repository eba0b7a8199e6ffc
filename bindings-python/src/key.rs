//! Keys: what an attempt is counted under.
//!
//! Invariant: the value is hashed when a key is made, and is neither kept nor shown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use doorkeep::Error;
use doorkeep::host::input;
use doorkeep::host::keys::{self, Address};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::convert::{Arg, read, text};
use crate::error::Result;
use crate::rule::one_or_more_rules;

/// What an attempt is counted under: a rule and the digest of a value. Made by `Rule.key` and `Rule.ip_key`.
///
/// Compares by value and is hashable. Does not contain the value itself.
#[pyclass(module = "doorkeep", frozen, eq, hash)]
pub(crate) struct Key {
    pub(crate) inner: doorkeep::Key,
}

// Two keys are equal if they share a budget, however they were made: `ip_key(a)` equals `key(network(a))`.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.inner.digest() == other.inner.digest() && self.inner.rule() == other.inner.rule()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.digest().hash(state);
    }
}

#[pymethods]
impl Key {
    /// The name of the rule that made this key.
    #[getter]
    fn rule(&self) -> &str {
        self.inner.rule().name()
    }

    /// 128 bits of the value's SHA-256 (HMAC-SHA-256 under a secret), as 32 lower-case hex digits.
    #[getter]
    fn digest(&self) -> String {
        self.inner.digest().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Key of {}>", self.inner.rule().name())
    }
}

/// Return the network that an address is counted under, in canonical spelling.
///
/// An IPv4 address is kept whole. An IPv6 address is cut to its prefix, since one subscriber usually gets a whole /64.
/// IPv4-mapped, NAT64 and 6to4 addresses become the IPv4 address inside them; zone ids are dropped.
///
/// Parameters
/// ----------
/// address
///     An IPv4 or IPv6 address, as a string or an object of `ipaddress`.
/// ipv6_prefix
///     32 to 128. Defaults to 64.
///
/// Returns
/// -------
/// str
///     Such as `"203.0.113.9"` or `"2001:db8:0:1::/64"`.
///
/// Raises
/// ------
/// InvalidKeyError
///     `address` is not an address.
/// ConfigError
///     `ipv6_prefix` is out of its bounds.
#[pyfunction]
#[pyo3(signature = (address, ipv6_prefix=None), text_signature = "(address, ipv6_prefix=64)")]
pub(crate) fn network(address: &Bound<'_, PyAny>, ipv6_prefix: Arg<'_, '_>) -> Result<String> {
    let prefix = read(ipv6_prefix, input::ipv6_prefix)?;
    with_address(address, |address| doorkeep::network(address, prefix))
}

/// The keys of a request, and whether rules were left out because it has no address. Specified by
/// `tests/vectors/keys-for.json`.
///
/// An ellipsis means that the address was not passed. A word of a rule may have hyphens; the name of an argument has
/// underscores instead.
#[pyfunction]
#[pyo3(name = "_keys_for", signature = (rules, address, values, /))]
pub(crate) fn keys_for(
    rules: &Bound<'_, PyAny>,
    address: &Bound<'_, PyAny>,
    values: &Bound<'_, PyDict>,
) -> Result<(Vec<Key>, bool)> {
    let rules = one_or_more_rules("keys_for", rules)?;
    let items: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = values.iter().collect();
    let mut texts: HashMap<String, Cow<'_, [u8]>> = HashMap::with_capacity(items.len());
    for (name, value) in &items {
        if let Some(text) = text(value)? {
            texts.insert(name.extract::<String>()?.replace('_', "-"), text);
        }
    }
    let make = |address: Address<'_>| keys::keys_for(&rules, address, |word| texts.get(word).map(AsRef::as_ref));
    let made = if address.is(address.py().Ellipsis()) {
        make(Address::Unnamed)?
    } else if address.is_none() {
        make(Address::None)?
    } else {
        with_address(address, |address| make(Address::Text(address)))?
    };
    Ok((made.keys.into_iter().map(|inner| Key { inner }).collect(), made.leaves_out))
}

/// Makes a key from the parts of a Python call.
pub(crate) fn of_parts(rule: &doorkeep::Rule, parts: &Bound<'_, PyTuple>) -> Result<Key> {
    let objects: Vec<Bound<'_, PyAny>> = parts.iter().collect();
    let mut texts = Vec::with_capacity(objects.len());
    for (index, object) in objects.iter().enumerate() {
        texts.push(text(object)?.ok_or_else(|| input::part_not_text(index + 1))?);
    }
    let bytes: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
    Ok(Key { inner: rule.key(&bytes)? })
}

/// Makes a key from an address.
pub(crate) fn of_address(rule: &doorkeep::Rule, address: &Bound<'_, PyAny>) -> Result<Key> {
    Ok(Key { inner: with_address(address, |address| rule.ip_key(address))? })
}

/// Calls `call` with the keys of a Python call, in order. A single key is borrowed and not copied.
pub(crate) fn with_keys<T>(
    first: Arg<'_, '_>,
    rest: &Bound<'_, PyTuple>,
    call: impl FnOnce(&[doorkeep::Key]) -> Result<T>,
) -> Result<T> {
    let Some(first) = first else {
        // No argument, or None: the core refuses a call without keys, and None among other keys is not a key.
        return if rest.is_empty() { call(&[]) } else { Err(not_a_key().into()) };
    };
    let first = &first.cast::<Key>().map_err(|_| not_a_key())?.get().inner;
    if rest.is_empty() {
        return call(std::slice::from_ref(first));
    }
    let mut keys = Vec::with_capacity(rest.len() + 1);
    keys.push(first.clone());
    for key in rest.iter() {
        keys.push(key.cast::<Key>().map_err(|_| not_a_key())?.get().inner.clone());
    }
    call(&keys)
}

fn not_a_key() -> PyErr {
    PyTypeError::new_err("a call takes keys made by a rule: rule.key(...) or rule.ip_key(...)")
}

// An object of `ipaddress` prints as its address. The core refuses any other type that is not a string.
fn with_address<T>(address: &Bound<'_, PyAny>, make: impl FnOnce(&str) -> Result<T, Error>) -> Result<T> {
    if let Ok(text) = address.cast::<PyString>() {
        return Ok(make(&text.to_string_lossy())?);
    }
    let ip = address.py().import("ipaddress")?;
    let kinds = (ip.getattr("IPv4Address")?, ip.getattr("IPv6Address")?).into_pyobject(address.py())?;
    if address.is_instance(&kinds)? {
        return Ok(make(&address.str()?.to_string_lossy())?);
    }
    Ok(make("")?)
}
