//! `FixedWindow`: a budget per window that opens at the first attempt.

use std::rc::Rc;

use doorkeep::host::either::FixedWindow;
use doorkeep::host::input;

use crate::call::{Body, Call};
use crate::decision::{as_number, micros, put_flag, write_single};
use crate::failure::Result;
use crate::js;
use crate::methods::Methods;
use crate::stats;
use crate::value::UNIT;

type Own<'a> = Call<'a, FixedWindow>;

/// `(limit, window, maxKeys, name, [store, onError])` -> the functions of one limiter, with `name`, `limit` and
/// `windowMicros`.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let storage = call.storage(4)?;
    let limit = input::limit(call.given(0)?.value())?;
    let window = input::window(call.given(1)?.value(), UNIT)?;
    let max_keys = input::max_keys(call.given(2)?.value())?;
    let fixed = FixedWindow::new(storage.store, call.given(3)?.name(), (limit, window, max_keys), storage.on_error)?;
    let mut methods = Methods::new(call.env, call.realm)?;
    methods.value(c"name", js::string(call.env, fixed.name())?)?;
    methods.value(c"limit", js::number(call.env, f64::from(fixed.limit()))?)?;
    methods.value(c"windowMicros", js::number(call.env, micros(fixed.window()))?)?;
    methods.with(
        &Rc::new(fixed),
        [
            (c"consume", consume as Body<FixedWindow>),
            (c"peek", peek),
            (c"reset", reset),
            (c"size", size),
            (c"stats", counters),
        ],
    )
}

/// `(key, now)`: writes the decision into the slots.
fn consume(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let decision = key(call, |key| call.state.consume(key, now))?;
    call.answer(decision, |_, realm, decision| write_single(realm, &decision?))
}

/// `(key, now)`: writes the decision that `consume` would return into the slots.
fn peek(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let decision = key(call, |key| call.state.peek(key, now))?;
    call.answer(decision, |_, realm, decision| write_single(realm, &decision?))
}

fn reset(call: &Own<'_>) -> Result {
    let forgotten = key(call, |key| call.state.reset(key))?;
    call.answer(forgotten, |_, realm, forgotten| put_flag(realm, forgotten?))
}

fn size(call: &Own<'_>) -> Result {
    js::number(call.env, as_number(call.state.len()))
}

fn counters(call: &Own<'_>) -> Result {
    stats::answer(call, &call.state.stats())
}

/// Calls the limiter with the key in the first argument.
#[inline]
fn key<R>(call: &Own<'_>, ask: impl FnOnce(&[u8]) -> R) -> Result<R> {
    Ok(call.text(0, ask)?.ok_or_else(input::not_text)?)
}
