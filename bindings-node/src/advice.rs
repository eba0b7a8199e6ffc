//! Presets, and advice on rules. Decides nothing.

use doorkeep::Rule;
use doorkeep::host::input;

use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::js;
use crate::rule;

/// `(name)` -> the preset of that name, described like a rule, with `by`.
pub(crate) fn preset(call: &Call<'_, ()>) -> Result {
    let given = call.given(0)?;
    let named = doorkeep::presets::all().into_iter().find(|preset| Some(preset.name()) == given.name());
    let preset = named.ok_or(Failure::Internal("there is no preset of this name"))?;
    let made = rule::describe(call, &preset)?;
    js::set(call.env, made, c"by", js::strings(call.env, preset.by().iter().map(String::as_str))?)?;
    Ok(made)
}

/// `(rule numbers, names to forgive)` -> advice, an array of strings.
pub(crate) fn lint(call: &Call<'_, ()>) -> Result {
    let rules = call.numbers(0)?.into_iter().map(|number| call.realm.rule(number));
    let rules: Vec<Rule> = rules.collect::<Result<_>>()?;
    let forgive = call.texts(1)?;
    let forgive: Vec<&str> = forgive.iter().map(String::as_str).collect();
    let advice: Vec<String> = doorkeep::lint::lint(&rules, &forgive).iter().map(ToString::to_string).collect();
    js::strings(call.env, advice.iter().map(String::as_str))
}

/// Refuses a claim by its name.
pub(crate) fn refuse_claim(call: &Call<'_, ()>) -> Result {
    let given = call.given(0)?;
    Err(input::not_a_claim(given.name().unwrap_or_default()).into())
}
