//! Rates in their canonical text, which is all that TypeScript keeps of them.

use doorkeep::host::input;
use doorkeep::{Rate, Rates};

use crate::call::Call;
use crate::decision::micros;
use crate::failure::Result;
use crate::js;
use crate::value::{Given, UNIT};

/// `(count, period)` -> `{ text, count, periodMicros }`.
pub(crate) fn rate(call: &Call<'_, ()>) -> Result {
    let count = input::rate_count(call.given(0)?.value())?;
    let period = input::rate_period(call.given(1)?.value(), UNIT)?;
    let rate = Rate::new(count, period)?;
    let made = js::object(call.env)?;
    js::set(call.env, made, c"text", js::string(call.env, &rate.to_string())?)?;
    js::set(call.env, made, c"count", js::number(call.env, f64::from(count))?)?;
    js::set(call.env, made, c"periodMicros", js::number(call.env, micros(period))?)?;
    Ok(made)
}

/// `(text)` -> the canonical text.
pub(crate) fn rates(call: &Call<'_, ()>) -> Result {
    js::string(call.env, &parsed(&call.given(0)?)?.to_string())
}

/// `(text, span)` -> the most that can pass in the span.
pub(crate) fn max_in(call: &Call<'_, ()>) -> Result {
    let rates = parsed(&call.given(0)?)?;
    let span = input::span(call.given(1)?.value(), UNIT)?;
    js::number(call.env, rates.max_in(span) as f64)
}

/// Parses rates; a value of another type is refused like an invalid string.
pub(crate) fn parsed(given: &Given) -> Result<Rates, doorkeep::Error> {
    given.name().unwrap_or_default().parse()
}
