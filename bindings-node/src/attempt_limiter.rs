//! `AttemptLimiter`: strikes and lockout for one key at a time.

use std::rc::Rc;

use doorkeep::{AttemptLimiter, Reservation, Strikes, input};

use crate::call::{self, Answer, Body, Call, UNDEFINED};
use crate::decision::{as_number, micros, write_single};
use crate::external::handle;
use crate::failure::Failure;
use crate::methods::Methods;
use crate::slots::Place;
use crate::stats;
use crate::value::UNIT;

type Own<'a> = Call<'a, AttemptLimiter>;

/// `(threshold, lockoutWindow, maxTrackedKeys, name)` -> the functions of one limiter, with its `name`.
pub(crate) fn create(call: &Call<'_, ()>) -> Answer {
    let mut limiter = AttemptLimiter::new(Strikes {
        threshold: input::threshold(call.given(0)?.value())?,
        lockout_window: input::lockout_window(call.given(1)?.value(), UNIT)?,
        max_tracked_keys: input::max_tracked_keys(call.given(2)?.value())?,
    })?;
    if let Some(name) = call.given(3)?.name() {
        limiter = limiter.named(name)?;
    }
    let mut methods = Methods::new(call.env, call.realm)?;
    methods.value(c"name", call::string(call.env, limiter.name())?)?;
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

/// `(key, now)`: the outcome alone, into the slots.
fn attempt(call: &Own<'_>) -> Answer {
    let now = call.now(1)?;
    key(call, |key| {
        let outcome = call.state.try_attempt(key, now)?;
        call.realm.slots.put(Place::Outcome, f64::from(outcome as u8));
        Ok(UNDEFINED)
    })
}

fn decide(call: &Own<'_>) -> Answer {
    let now = call.now(1)?;
    let decision = key(call, |key| call.state.decide(key, now))?;
    write_single(call.realm, &decision);
    Ok(UNDEFINED)
}

/// `(key, now)` -> a reservation; the decision lies in the slots.
fn reserve(call: &Own<'_>) -> Answer {
    let now = call.now(1)?;
    let (decision, reservation) = key(call, |key| call.state.try_reserve(key, now))?;
    write_single(call.realm, &decision);
    handle(call.env, reservation)
}

/// `(reservation, now)`: what the cancel did, into the slots.
fn cancel(call: &Own<'_>) -> Answer {
    let reservation: &Reservation = call.behind(0)?;
    let cancelled = call.state.cancel(reservation.clone(), call.now(1)?);
    let number = match cancelled {
        doorkeep::Cancelled::Nothing => 0.0,
        doorkeep::Cancelled::GivenBack => 1.0,
        doorkeep::Cancelled::Lifted => 2.0,
    };
    call.realm.slots.put(Place::Outcome, number);
    Ok(UNDEFINED)
}

fn locked(call: &Own<'_>) -> Answer {
    let now = call.now(1)?;
    let locked = key(call, |key| call.state.locked(key, now))?;
    call.realm.slots.put(Place::Outcome, f64::from(u8::from(locked)));
    Ok(UNDEFINED)
}

fn retry_after(call: &Own<'_>) -> Answer {
    let now = call.now(1)?;
    let wait = key(call, |key| call.state.retry_after(key, now))?;
    call.realm.slots.put(Place::RetryAfter, wait.map_or(-1.0, micros));
    Ok(UNDEFINED)
}

fn reset(call: &Own<'_>) -> Answer {
    let forgotten = key(call, |key| call.state.reset(key))?;
    call.realm.slots.put(Place::Outcome, f64::from(u8::from(forgotten)));
    Ok(UNDEFINED)
}

fn refund(call: &Own<'_>) -> Answer {
    let now = call.now(1)?;
    key(call, |key| call.state.refund(key, now))?;
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
