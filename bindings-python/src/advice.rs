//! Rules that come with the package, and advice on rules of an application.
//!
//! Validates nothing. Specified by `tests/vectors/presets.json` and `tests/vectors/lint.json`.

use doorkeep::host::input;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::Arg;
use crate::error::Result;
use crate::rule::{Rule, StrikeRule, one_rule, read_names};

/// All presets by name; `doorkeep/presets.py` makes them attributes.
#[pyfunction]
#[pyo3(name = "_presets")]
pub(crate) fn presets(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let presets = PyDict::new(py);
    for inner in doorkeep::presets::all() {
        let name = inner.name().to_owned();
        if inner.rates().is_some() {
            presets.set_item(name, Rule { inner })?;
        } else {
            presets.set_item(name, StrikeRule { inner })?;
        }
    }
    Ok(presets)
}

/// Return advice on the rules that one endpoint uses together: how an attacker would get around them.
///
/// It reads from `by` what each rule is keyed by, and gives no advice on a set in which a rule has no `by`.
///
/// Parameters
/// ----------
/// rules
///     The rules in the order in which their keys are passed.
/// forgive
///     The rules that a success forgives, as objects or as names.
///
/// Returns
/// -------
/// list of str
///     Each names a rule, what is wrong with it, and what to do. An empty list does not mean that the numbers suit the
///     endpoint.
#[pyfunction]
#[pyo3(signature = (rules, *, forgive=None), text_signature = "(rules, *, forgive=())")]
pub(crate) fn lint(rules: &Bound<'_, PyAny>, forgive: Arg<'_, '_>) -> Result<Vec<String>> {
    let read = rules.try_iter()?.map(|rule| one_rule("lint", &rule?)).collect::<PyResult<Vec<_>>>()?;
    let forgive = read_names(forgive)?;
    let forgive: Vec<&str> = forgive.iter().map(String::as_str).collect();
    Ok(doorkeep::lint::lint(&read, &forgive).iter().map(ToString::to_string).collect())
}

/// Refuses the claim of this name.
#[pyfunction]
#[pyo3(name = "_refuse_claim", signature = (name, /))]
pub(crate) fn refuse_claim(name: &str) -> Result<()> {
    Err(input::not_a_claim(name).into())
}
