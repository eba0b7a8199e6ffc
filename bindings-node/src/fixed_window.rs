//! `FixedWindow`: a budget that opens at the first attempt.

use std::rc::Rc;

use doorkeep::{FixedWindow, input};

use crate::call::{self, Answer, Body, Call, UNDEFINED};
use crate::decision::{as_number, micros, write_single};
use crate::failure::Failure;
use crate::methods::Methods;
use crate::slots::Place;
use crate::stats;
use crate::value::UNIT;

type Own<'a> = Call<'a, FixedWindow>;

/// `(limit, window, maxKeys, name)` -> the functions of one limiter, with `name`, `limit` and `windowMicros`.
pub(crate) fn create(call: &Call<'_, ()>) -> Answer {
    let limit = input::limit(call.given(0)?.value())?;
    let window = input::window(call.given(1)?.value(), UNIT)?;
    let mut fixed = FixedWindow::new(limit, window, input::max_keys(call.given(2)?.value())?)?;
    if let Some(name) = call.given(3)?.name() {
        fixed = fixed.named(name)?;
    }
    let mut methods = Methods::new(call.env, call.realm)?;
    methods.value(c"name", call::string(call.env, fixed.name())?)?;
    methods.value(c"limit", call::number(call.env, f64::from(fixed.limit()))?)?;
    methods.value(c"windowMicros", call::number(call.env, micros(fixed.window()))?)?;
    methods.with(
        &Rc::new(fixed),
        [(c"consume", consume as Body<FixedWindow>), (c"reset", reset), (c"size", size), (c"stats", counters)],
    )
}

/// `(key, now)`: the decision, into the slots.
fn consume(call: &Own<'_>) -> Answer {
    let now = call.now(1)?;
    let decision = key(call, |key| call.state.try_consume(key, now))?;
    write_single(call.realm, &decision);
    Ok(UNDEFINED)
}

fn reset(call: &Own<'_>) -> Answer {
    let forgotten = key(call, |key| call.state.reset(key))?;
    call.realm.slots.put(Place::Outcome, f64::from(u8::from(forgotten)));
    Ok(UNDEFINED)
}

fn size(call: &Own<'_>) -> Answer {
    call::number(call.env, as_number(call.state.len()))
}

fn counters(call: &Own<'_>) -> Answer {
    stats::answer(call, &call.state.stats())
}

/// Asks about the key in the first argument.
#[inline]
fn key<R>(call: &Own<'_>, ask: impl FnOnce(&[u8]) -> Result<R, doorkeep::Error>) -> Result<R, Failure> {
    Ok(call.text(0, ask)?.ok_or_else(input::not_text)??)
}
