//! A limiter and its rules as a plain mapping.
//!
//! Invariant: an unknown name is refused, so that a misspelt limit is not a missing limit.

use doorkeep::host::input;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use crate::convert::{Arg, read, read_duration};
use crate::error::Result;
use crate::options::Backend;
use crate::rate::read_rates;
use crate::rule::{Rule, StrikeRule, with_options};
use crate::store::{self, RedisStore};

/// The result of reading the mapping of `Limiter.from_config`.
pub(crate) struct Config<'py> {
    pub(crate) backend: Backend,
    pub(crate) capacity: usize,
    pub(crate) rules: Bound<'py, PyDict>,
}

impl<'py> Config<'py> {
    pub(crate) fn read(config: &Bound<'py, PyAny>) -> Result<Self> {
        let options = Options::read(config, &["redis", "prefix", "on_error", "timeout", "capacity", "rules"])?;
        let backend = read_backend(config.py(), &options)?;
        let capacity = read(options.get("capacity"), input::capacity)?;
        let rules = PyDict::new(config.py());
        if let Some(given) = options.get("rules").filter(|rules| !rules.is_none()) {
            for (name, rule) in pairs(given, "rules")? {
                rules.set_item(&name, read_rule(&name, &rule)?)?;
            }
        }
        Ok(Self { backend, capacity, rules })
    }
}

// The options of a store are validated even without a URL: otherwise a bad option would fail only once a URL is added.
fn read_backend(py: Python<'_>, options: &Options<'_>) -> Result<Backend> {
    let [prefix, timeout, on_error] = ["prefix", "timeout", "on_error"].map(|name| options.get(name));
    let Some(url) = options.get("redis").filter(|url| !url.is_none()) else {
        store::options(prefix, timeout, on_error, None)?;
        return Backend::read(None, on_error);
    };
    let store = Bound::new(py, RedisStore::new(url, prefix, timeout, on_error, None)?)?;
    Backend::read(Some(store.as_any()), None)
}

fn read_rule<'py>(name: &str, given: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let py = given.py();
    if given.cast::<PyString>().is_ok() || given.cast::<PyMapping>().is_err() {
        let inner = doorkeep::Rule::new(name, read_rates(given)?)?;
        return Ok(Bound::new(py, Rule { inner })?.into_any());
    }
    let options = Options::read(given, &["rates", "threshold", "lockout_window", "ipv6_prefix", "secret", "by"])?;
    let with = |rule| with_options(rule, options.get("ipv6_prefix"), options.get("secret"), options.get("by"));
    if let Some(rates) = options.get("rates") {
        if let Some(strikes) = options.name_of_first(&["threshold", "lockout_window"]) {
            return Err(input::unknown_option(strikes).into());
        }
        let inner = with(doorkeep::Rule::new(name, read_rates(rates)?)?)?;
        return Ok(Bound::new(py, Rule { inner })?.into_any());
    }
    let threshold = read(options.get("threshold"), input::threshold)?;
    let lockout_window = read_duration(options.get("lockout_window"), input::lockout_window)?;
    let inner = with(doorkeep::Rule::strikes(name, threshold, lockout_window)?)?;
    Ok(Bound::new(py, StrikeRule { inner })?.into_any())
}

/// The entries of a mapping whose names are all known.
struct Options<'py>(Vec<(String, Bound<'py, PyAny>)>);

impl<'py> Options<'py> {
    fn read(mapping: &Bound<'py, PyAny>, known: &[&str]) -> Result<Self> {
        let entries = pairs(mapping, "a configuration")?;
        match entries.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((unknown, _)) => Err(input::unknown_option(unknown).into()),
            None => Ok(Self(entries)),
        }
    }

    fn get(&self, name: &str) -> Arg<'_, 'py> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn name_of_first<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().copied().find(|name| self.get(name).is_some())
    }
}

fn pairs<'py>(mapping: &Bound<'py, PyAny>, what: &str) -> Result<Vec<(String, Bound<'py, PyAny>)>> {
    let Ok(mapping) = mapping.cast::<PyMapping>() else {
        return Err(PyTypeError::new_err(format!("{what} must be a mapping")).into());
    };
    let mut pairs = Vec::new();
    for item in mapping.items()?.iter() {
        let (name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
        pairs.push((name.str()?.to_string_lossy().into_owned(), value));
    }
    Ok(pairs)
}
