//! Rates by their canonical text, which is all that TypeScript keeps of them.

use doorkeep::host::input;
use doorkeep::{Rate, Rates};

use crate::call::{self, Answer, Call};
use crate::decision::micros;
use crate::value::{Given, UNIT};

/// `(count, period)` -> `{ text, count, periodMicros }`.
pub(crate) fn rate(call: &Call<'_, ()>) -> Answer {
    let count = input::rate_count(call.given(0)?.value())?;
    let period = input::rate_period(call.given(1)?.value(), UNIT)?;
    let rate = Rate::new(count, period)?;
    let made = call::object(call.env)?;
    call::set(call.env, made, c"text", call::string(call.env, &rate.to_string())?)?;
    call::set(call.env, made, c"count", call::number(call.env, f64::from(count))?)?;
    call::set(call.env, made, c"periodMicros", call::number(call.env, micros(period))?)?;
    Ok(made)
}

/// `(text)` -> the canonical text.
pub(crate) fn rates(call: &Call<'_, ()>) -> Answer {
    call::string(call.env, &parsed(&call.given(0)?)?.to_string())
}

/// `(text, span)` -> the most that can pass in the span.
pub(crate) fn max_in(call: &Call<'_, ()>) -> Answer {
    let rates = parsed(&call.given(0)?)?;
    let span = input::span(call.given(1)?.value(), UNIT)?;
    call::number(call.env, rates.max_in(span) as f64)
}

/// The rates that a text names; a value of another type is refused as the text that it is not.
pub(crate) fn parsed(given: &Given) -> Result<Rates, doorkeep::Error> {
    given.name().unwrap_or_default().parse()
}
