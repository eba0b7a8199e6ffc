//! Rules: the core builds and checks them, the realm keeps them by number.

use doorkeep::Rule;
use doorkeep::host::input;
use napi::sys;

use crate::call::Call;
use crate::decision::micros;
use crate::failure::Result;
use crate::js;
use crate::rate;
use crate::value::UNIT;

/// `(name, rates, ipv6Prefix, secret, by)` -> `{ number, name, policy, ipv6Prefix, rates }`.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let name = call.given(0)?;
    let rates = rate::parsed(&call.given(1)?)?;
    describe(call, &finish(call, Rule::new(name.name().unwrap_or_default(), rates)?, [2, 3, 4])?)
}

/// `(name, [threshold, lockoutWindow], ipv6Prefix, secret, by)` -> the same, with `threshold` and `lockoutWindowMicros`
/// instead of `rates`.
pub(crate) fn create_strikes(call: &Call<'_, ()>) -> Result {
    let name = call.given(0)?;
    let [threshold, window] = [call.member(1, 0)?, call.member(1, 1)?];
    let threshold = input::threshold(threshold.value())?;
    let window = input::lockout_window(window.value(), UNIT)?;
    describe(call, &finish(call, Rule::strikes(name.name().unwrap_or_default(), threshold, window)?, [2, 3, 4])?)
}

/// `(rule number, span)` -> the most that can pass in the span.
pub(crate) fn max_in(call: &Call<'_, ()>) -> Result {
    let rule = call.realm.rule(call.count(0)?)?;
    let span = input::span(call.given(1)?.value(), UNIT)?;
    js::number(call.env, rule.max_in(span) as f64)
}

fn finish(call: &Call<'_, ()>, rule: Rule, [prefix, secret, by]: [usize; 3]) -> Result<Rule> {
    let mut rule = rule.with_ipv6_prefix(input::ipv6_prefix(call.given(prefix)?.value())?)?;
    if let Some(secret) = call.bytes(secret)? {
        rule = rule.with_secret(&secret)?;
    }
    let by = call.texts(by)?;
    let words: Vec<&str> = by.iter().map(String::as_str).collect();
    Ok(rule.with_by(&words)?)
}

/// Describes a rule for `../lib/rules/rule.ts`.
pub(crate) fn describe(call: &Call<'_, ()>, rule: &Rule) -> Result<sys::napi_value> {
    let made = js::object(call.env)?;
    let number = call.realm.number(rule)?;
    js::set(call.env, made, c"number", js::number(call.env, f64::from(number))?)?;
    js::set(call.env, made, c"name", js::string(call.env, rule.name())?)?;
    js::set(call.env, made, c"policy", js::string(call.env, &rule.policy())?)?;
    js::set(call.env, made, c"ipv6Prefix", js::number(call.env, f64::from(rule.ipv6_prefix()))?)?;
    if let Some(rates) = rule.rates() {
        js::set(call.env, made, c"rates", js::string(call.env, &rates.to_string())?)?;
    }
    if let (Some(threshold), Some(window)) = (rule.threshold(), rule.lockout_window()) {
        js::set(call.env, made, c"threshold", js::number(call.env, f64::from(threshold))?)?;
        js::set(call.env, made, c"lockoutWindowMicros", js::number(call.env, micros(window))?)?;
    }
    Ok(made)
}
