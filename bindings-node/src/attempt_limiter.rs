//! `AttemptLimiter`: strikes and lockout for one key at a time.

use std::rc::Rc;

use doorkeep::host::either::{AttemptLimiter, Reservation};
use doorkeep::host::input;
use doorkeep::{Cancelled, Strikes};

use crate::call::{Body, Call};
use crate::decision::{as_number, put_flag, put_wait, write_single};
use crate::external::handle;
use crate::failure::Result;
use crate::js::{self, UNDEFINED};
use crate::methods::Methods;
use crate::slots::Slot;
use crate::stats;
use crate::value::UNIT;

type Own<'a> = Call<'a, AttemptLimiter>;

/// `(threshold, lockoutWindow, maxTrackedKeys, name, [store, onError])` -> the functions of one limiter, with its
/// `name`.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let storage = call.storage(4)?;
    let strikes = Strikes {
        threshold: input::threshold(call.given(0)?.value())?,
        lockout_window: input::lockout_window(call.given(1)?.value(), UNIT)?,
        max_tracked_keys: input::max_tracked_keys(call.given(2)?.value())?,
    };
    let limiter = AttemptLimiter::new(storage.store, call.given(3)?.name(), strikes, storage.on_error)?;
    let mut methods = Methods::new(call.env, call.realm)?;
    methods.value(c"name", js::string(call.env, limiter.name())?)?;
    methods.with(
        &Rc::new(limiter),
        [
            (c"attempt", attempt as Body<AttemptLimiter>),
            (c"decide", decide),
            (c"reserve", reserve),
            (c"cancel", cancel),
            (c"locked", locked),
            (c"retryAfter", retry_after),
            (c"reset", reset),
            (c"refund", refund),
            (c"size", size),
            (c"stats", counters),
        ],
    )
}

/// `(key, now)`: writes the outcome alone into the slots.
fn attempt(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let outcome = key(call, |key| call.state.attempt(key, now))?;
    call.answer(outcome, |_, realm, outcome| {
        realm.slots.put(Slot::Outcome, f64::from(outcome? as u8));
        Ok(UNDEFINED)
    })
}

fn decide(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let decision = key(call, |key| call.state.decide(key, now))?;
    call.answer(decision, |_, realm, decision| write_single(realm, &decision?))
}

/// `(key, now)` -> a reservation; writes the decision into the slots.
fn reserve(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let reserved = key(call, |key| call.state.reserve(key, now))?;
    call.answer(reserved, |env, realm, reserved| {
        let (decision, reservation) = reserved?;
        write_single(realm, &decision)?;
        handle(env, reservation)
    })
}

/// `(reservation, now)`: writes what the cancel did into the slots.
fn cancel(call: &Own<'_>) -> Result {
    let reservation: &Reservation = call.behind(0)?;
    call.answer(call.state.cancel(reservation.clone(), call.now(1)?), |_, realm, cancelled| {
        let number = match cancelled {
            Cancelled::Nothing => 0.0,
            Cancelled::GivenBack => 1.0,
            Cancelled::Lifted => 2.0,
        };
        realm.slots.put(Slot::Outcome, number);
        Ok(UNDEFINED)
    })
}

fn locked(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let locked = key(call, |key| call.state.locked(key, now))?;
    call.answer(locked, |_, realm, locked| put_flag(realm, locked?))
}

fn retry_after(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let wait = key(call, |key| call.state.retry_after(key, now))?;
    call.answer(wait, |_, realm, wait| put_wait(realm, wait?))
}

fn reset(call: &Own<'_>) -> Result {
    let forgotten = key(call, |key| call.state.reset(key))?;
    call.answer(forgotten, |_, realm, forgotten| put_flag(realm, forgotten?))
}

fn refund(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let refunded = key(call, |key| call.state.refund(key, now))?;
    call.answer(refunded, |_, _, refunded| Ok(refunded.map(|()| UNDEFINED)?))
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
