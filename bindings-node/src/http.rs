//! A decision in HTTP. It returns from TypeScript as `[outcome, reason, rule, retryAfterMs, remaining, resetAfterMs]`;
//! the core does everything else.

use std::sync::Arc;
use std::time::Duration;

use doorkeep::host::input;
use doorkeep::http::{self, HeaderOptions};
use doorkeep::{Decision, Outcome, Reason};

use crate::call::Call;
use crate::failure::Result;
use crate::js::{self, UNDEFINED};
use crate::key;
use crate::value::{Given, UNIT};

/// `(decision)` -> the status.
pub(crate) fn status(call: &Call<'_, ()>) -> Result {
    js::number(call.env, f64::from(http::status(&decision(call)?)))
}

/// `(decision, roundUp, rateLimit)`, the keys in the slots -> names and values alternately.
pub(crate) fn headers(call: &Call<'_, ()>) -> Result {
    let decision = decision(call)?;
    let options = HeaderOptions {
        round_up: input::round_up(call.given(1)?.value(), UNIT)?,
        rate_limit: matches!(call.given(2)?, Given::Bool(true)),
    };
    let fields = key::read(call.realm, |keys| Ok(http::headers(&decision, keys, options)))?;
    js::strings(call.env, fields.iter().flat_map(|(name, value)| [*name, value.as_str()]))
}

/// `(roundUp)`: refuses a duration that waits cannot be rounded up to.
pub(crate) fn round_up(call: &Call<'_, ()>) -> Result {
    input::round_up(call.given(0)?.value(), UNIT)?;
    Ok(UNDEFINED)
}

fn decision(call: &Call<'_, ()>) -> Result<Decision> {
    let outcome = match call.member(0, 0)? {
        Given::Number(1.0) => Outcome::Allowed,
        Given::Number(2.0) => Outcome::AllowedLast,
        _ => Outcome::Denied,
    };
    let reason = call.member(0, 1)?;
    let reasons = [Reason::Limited, Reason::Locked, Reason::Saturated, Reason::Unavailable];
    let remaining = match call.member(0, 4)? {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        Given::Number(remaining) => remaining as u32,
        _ => 0,
    };
    Ok(Decision {
        outcome,
        reason: reasons.into_iter().find(|known| Some(known.as_str()) == reason.name()),
        rule: call.member(0, 2)?.name().map(Arc::from),
        retry_after: duration(&call.member(0, 3)?),
        remaining,
        reset_after: duration(&call.member(0, 5)?).unwrap_or_default(),
        degraded: false,
        engaged: Vec::new(),
    })
}

/// Converts milliseconds that began as whole microseconds.
fn duration(given: &Given) -> Option<Duration> {
    match given {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        Given::Number(ms) => Some(Duration::from_micros((ms * 1e3).round() as u64)),
        _ => None,
    }
}
