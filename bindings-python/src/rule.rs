//! Rules: a name, a policy, and how keys are made under them.
//!
//! Validates nothing. Invariant: a rule is immutable, and its secret is never shown.

use doorkeep::host::input;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDelta, PyString, PyTuple};

use crate::convert::{self, Arg, read, read_duration, text, timedelta};
use crate::error::Result;
use crate::key::{self, Key};
use crate::rate::{Rates, read_rates};

/// A rule of rates: a key may spend so much per period, and refills continuously.
///
/// Rules of one name in one limiter must agree in kind, rates, prefix and secret.
///
/// Parameters
/// ----------
/// name
///     Matches `[a-z0-9-]{1,32}`; the name of the rule in decisions and counters.
/// rates
///     A string such as `"5/1m,50/1h"`, a `Rates`, a `Rate`, or several; 1 to 16 rates.
/// ipv6_prefix
///     How much of an IPv6 address `ip_key` keeps: 32 to 128, default 64.
/// secret
///     At least 16 bytes. Keys are then made with HMAC-SHA-256, so that a reader of the state cannot test guesses at a
///     value.
/// by
///     Words for what the keys are made of, such as `("account",)`. Keys of a rule by `("address",)` are addresses: a
///     success forgives them only if `forgive_address` names the rule.
///
/// Raises
/// ------
/// ConfigError
///     The name, a rate, the prefix, the secret or a word is invalid.
#[pyclass(module = "doorkeep", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) inner: doorkeep::Rule,
}

#[pymethods]
impl Rule {
    #[new]
    #[pyo3(
        signature = (name, rates, *, ipv6_prefix=None, secret=None, by=None),
        text_signature = "(name, rates, *, ipv6_prefix=64, secret=None, by=())"
    )]
    fn new(
        name: &Bound<'_, PyAny>,
        rates: &Bound<'_, PyAny>,
        ipv6_prefix: Arg<'_, '_>,
        secret: Arg<'_, '_>,
        by: Arg<'_, '_>,
    ) -> Result<Self> {
        let rule = doorkeep::Rule::new(&convert::name(name)?, read_rates(rates)?)?;
        Ok(Self { inner: with_options(rule, ipv6_prefix, secret, by)? })
    }

    /// Make the key of one or more strings.
    ///
    /// The parts are kept apart: `key("a b", "c")` and `key("a", "b c")` differ. They are hashed immediately,
    /// untrimmed, and never kept. Costs one SHA-256 over the parts.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     There is no part, or a part is empty or not a string: an empty part is an error, not a shared bucket.
    #[pyo3(signature = (*parts))]
    fn key(&self, parts: &Bound<'_, PyTuple>) -> Result<Key> {
        key::of_parts(&self.inner, parts)
    }

    /// Make the key of an address, cut to its network as `network` does.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `address` is not an IPv4 or IPv6 address.
    fn ip_key(&self, address: &Bound<'_, PyAny>) -> Result<Key> {
        key::of_address(&self.inner, address)
    }

    /// The rule's name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The rates that an attempt must all pass.
    #[getter]
    fn rates(&self) -> Option<Rates> {
        self.inner.rates().map(|rates| Rates { inner: rates.clone() })
    }

    /// How much of an IPv6 address `ip_key` keeps, in bits.
    #[getter]
    fn ipv6_prefix(&self) -> u8 {
        self.inner.ipv6_prefix()
    }

    /// What the keys are made of.
    #[getter]
    fn by<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.by())
    }

    /// Return the most attempts on one key that can pass within any span, however an attacker times them.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     `span` is not a duration.
    fn max_in(&self, span: &Bound<'_, PyAny>) -> Result<u64> {
        Ok(self.inner.max_in(read_duration(Some(span), input::span)?))
    }

    fn __repr__(&self) -> String {
        format!("Rule({:?}, {:?})", self.inner.name(), self.inner.policy())
    }
}

/// A rule of strikes: a number of attempts, then a lockout.
///
/// A key that is idle for a whole window starts again from zero. Attempts that are always a little less than a window
/// apart accumulate forever. A lockout ends exactly one window after the attempt that engaged it; denied attempts do
/// not extend it.
///
/// Parameters
/// ----------
/// name
///     Matches `[a-z0-9-]{1,32}`; the name of the rule in decisions and counters.
/// threshold
///     The attempt that engages the lockout, 1 to 1024.
/// lockout_window
///     A `timedelta`, a number of seconds, or a string such as `"15m"`; a whole number of microseconds from 1 to 2**48.
/// ipv6_prefix, secret, by
///     As in `Rule`.
///
/// Raises
/// ------
/// ConfigError
///     The name, a number, the prefix, the secret or a word is not acceptable.
#[pyclass(module = "doorkeep", frozen, eq, hash)]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct StrikeRule {
    pub(crate) inner: doorkeep::Rule,
}

#[pymethods]
impl StrikeRule {
    #[new]
    #[pyo3(
        signature = (name, threshold=None, lockout_window=None, *, ipv6_prefix=None, secret=None, by=None),
        text_signature = "(name, threshold, lockout_window, *, ipv6_prefix=64, secret=None, by=())"
    )]
    fn new(
        name: &Bound<'_, PyAny>,
        threshold: Arg<'_, '_>,
        lockout_window: Arg<'_, '_>,
        ipv6_prefix: Arg<'_, '_>,
        secret: Arg<'_, '_>,
        by: Arg<'_, '_>,
    ) -> Result<Self> {
        let threshold = read(threshold, input::threshold)?;
        let lockout_window = read_duration(lockout_window, input::lockout_window)?;
        let rule = doorkeep::Rule::strikes(&convert::name(name)?, threshold, lockout_window)?;
        Ok(Self { inner: with_options(rule, ipv6_prefix, secret, by)? })
    }

    /// Make the key of one or more strings.
    ///
    /// The parts stay apart: `key("a b", "c")` and `key("a", "b c")` differ. They are hashed immediately, untrimmed,
    /// and never kept. Put an address through `network` first. Costs one SHA-256 over the parts.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     There is no part, or a part is empty or not a string: an empty part is an error, not a shared bucket.
    #[pyo3(signature = (*parts))]
    fn key(&self, parts: &Bound<'_, PyTuple>) -> Result<Key> {
        key::of_parts(&self.inner, parts)
    }

    /// Make the key of an address, cut to its network as `network` does.
    ///
    /// Raises
    /// ------
    /// InvalidKeyError
    ///     `address` is not an IPv4 or IPv6 address.
    fn ip_key(&self, address: &Bound<'_, PyAny>) -> Result<Key> {
        key::of_address(&self.inner, address)
    }

    /// The rule's name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The attempt that engages the lockout.
    #[getter]
    fn threshold(&self) -> Option<u32> {
        self.inner.threshold()
    }

    /// How long a lockout lasts, and how long attempts are remembered.
    #[getter]
    fn lockout_window<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDelta>>> {
        self.inner.lockout_window().map(|window| timedelta(py, window)).transpose()
    }

    /// How much of an IPv6 address `ip_key` keeps, in bits.
    #[getter]
    fn ipv6_prefix(&self) -> u8 {
        self.inner.ipv6_prefix()
    }

    /// What the keys are made of.
    #[getter]
    fn by<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.by())
    }

    /// Return the most attempts on one key that can pass within any span, however an attacker times them.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     `span` is not a duration.
    fn max_in(&self, span: &Bound<'_, PyAny>) -> Result<u64> {
        Ok(self.inner.max_in(read_duration(Some(span), input::span)?))
    }

    fn __repr__(&self) -> String {
        format!("StrikeRule({:?}, {:?})", self.inner.name(), self.inner.policy())
    }
}

/// The names of rules, passed as objects or as names.
pub(crate) fn read_names(rules: Arg<'_, '_>) -> Result<Vec<String>> {
    let Some(rules) = rules.filter(|rules| !rules.is_none()) else {
        return Ok(Vec::new());
    };
    // One rule may be passed where several are expected, and a string must not be read letter by letter.
    if let Some(name) = name_of(rules)? {
        return Ok(vec![name]);
    }
    let mut names = Vec::new();
    for rule in rules.try_iter()? {
        names.push(name_of(&rule?)?.ok_or_else(|| PyTypeError::new_err("rules are named by themselves or by text"))?);
    }
    Ok(names)
}

fn name_of(rule: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(rule) = rule.cast::<Rule>() {
        return Ok(Some(rule.get().inner.name().to_owned()));
    }
    if let Ok(rule) = rule.cast::<StrikeRule>() {
        return Ok(Some(rule.get().inner.name().to_owned()));
    }
    rule.cast::<PyString>().map_or(Ok(None), |name| Ok(Some(name.to_string_lossy().into_owned())))
}

pub(crate) fn with_options(
    rule: doorkeep::Rule,
    ipv6_prefix: Arg<'_, '_>,
    secret: Arg<'_, '_>,
    by: Arg<'_, '_>,
) -> Result<doorkeep::Rule> {
    let mut rule = rule.with_ipv6_prefix(read(ipv6_prefix, input::ipv6_prefix)?)?;
    if let Some(secret) = secret.filter(|secret| !secret.is_none()) {
        rule = match text(secret)? {
            Some(secret) => rule.with_secret(&secret)?,
            None => rule.with_secret(&secret.extract::<PyBackedBytes>().map_err(PyErr::from)?)?,
        };
    }
    let by = read_words(by)?;
    let words: Vec<&str> = by.iter().map(String::as_str).collect();
    Ok(rule.with_by(&words)?)
}

fn read_words(words: Arg<'_, '_>) -> PyResult<Vec<String>> {
    let Some(words) = words.filter(|words| !words.is_none()) else {
        return Ok(Vec::new());
    };
    if let Ok(word) = words.cast::<PyString>() {
        return Ok(vec![word.to_string_lossy().into_owned()]);
    }
    words.extract()
}

/// The rule that was passed to `call`.
pub(crate) fn one_rule(call: &str, object: &Bound<'_, PyAny>) -> PyResult<doorkeep::Rule> {
    any_rule(object).ok_or_else(|| PyTypeError::new_err(format!("{call} takes rules: Rule or StrikeRule")))
}

/// The rules that were passed to `call`: one or several.
pub(crate) fn one_or_more_rules(call: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<doorkeep::Rule>> {
    match any_rule(given) {
        Some(rule) => Ok(vec![rule]),
        None => given.try_iter()?.map(|rule| one_rule(call, &rule?)).collect(),
    }
}

fn any_rule(object: &Bound<'_, PyAny>) -> Option<doorkeep::Rule> {
    let rate = object.cast::<Rule>().map(|rule| rule.get().inner.clone());
    rate.or_else(|_| object.cast::<StrikeRule>().map(|rule| rule.get().inner.clone())).ok()
}
