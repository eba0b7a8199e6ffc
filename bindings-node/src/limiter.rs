//! `Limiter`: several keys, each under its rule, decided in one step.

use std::rc::Rc;

use doorkeep::{Decision, Error, Key, Limiter, input};

use crate::attempt;
use crate::call::{self, Answer, Body, Call, UNDEFINED};
use crate::decision::{as_number, write};
use crate::key;
use crate::methods::Methods;
use crate::slots::Place;
use crate::stats;

type Own<'a> = Call<'a, Limiter>;

/// `(capacity)` -> the functions of one limiter.
pub(crate) fn create(call: &Call<'_, ()>) -> Answer {
    let limiter = Limiter::new(input::capacity(call.given(0)?.value())?)?;
    Methods::new(call.env, call.realm)?.with(
        &Rc::new(limiter),
        [
            (c"allow", allow as Body<Limiter>),
            (c"peek", peek),
            (c"attempt", attempt),
            (c"reset", reset),
            (c"size", size),
            (c"stats", counters),
        ],
    )
}

/// `(cost, now)`, the keys in the slots: the decision, into the slots.
fn allow(call: &Own<'_>) -> Answer {
    decide(call, Limiter::allow)
}

fn peek(call: &Own<'_>) -> Answer {
    decide(call, Limiter::peek)
}

/// The same arguments -> an attempt; its decision lies in the slots.
fn attempt(call: &Own<'_>) -> Answer {
    let (cost, now) = (call.cost(0)?, call.now(1)?);
    key::read(call.realm, |keys| {
        let attempt = call.state.attempt(keys, cost, now)?;
        write(call.realm, &attempt.decision(), keys);
        attempt::give(call, attempt)
    })
}

fn reset(call: &Own<'_>) -> Answer {
    let forgotten = key::read(call.realm, |keys| Ok(call.state.reset(keys)?))?;
    call.realm.slots.put(Place::Outcome, f64::from(u8::from(forgotten)));
    Ok(UNDEFINED)
}

fn size(call: &Own<'_>) -> Answer {
    call::number(call.env, as_number(call.state.len()))
}

fn counters(call: &Own<'_>) -> Answer {
    stats::answer(call, &call.state.stats())
}

#[inline]
fn decide(
    call: &Own<'_>,
    ask: impl FnOnce(&Limiter, &[Key], u32, doorkeep::Timestamp) -> Result<Decision, Error>,
) -> Answer {
    let (cost, now) = (call.cost(0)?, call.now(1)?);
    key::read(call.realm, |keys| {
        let decision = ask(call.state, keys, cost, now)?;
        write(call.realm, &decision, keys);
        Ok(UNDEFINED)
    })
}
