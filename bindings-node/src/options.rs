//! Checks that TypeScript calls on their own, so that their bounds and texts exist once, in the core.

use doorkeep::host::input;

use crate::call::Call;
use crate::decision::micros;
use crate::failure::Result;
use crate::js;
use crate::value::UNIT;

/// `(duration)` -> microseconds.
pub(crate) fn span(call: &Call<'_, ()>) -> Result {
    js::number(call.env, micros(input::span(call.given(0)?.value(), UNIT)?))
}

/// `(moment)` -> microseconds.
pub(crate) fn now(call: &Call<'_, ()>) -> Result {
    js::number(call.env, call.moment(0)?.as_micros() as f64)
}

/// Refuses an option by its name.
pub(crate) fn unknown(call: &Call<'_, ()>) -> Result {
    let given = call.given(0)?;
    Err(input::unknown_option(given.name().unwrap_or_default()).into())
}
