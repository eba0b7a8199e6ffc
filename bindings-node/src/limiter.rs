//! `Limiter`: several keys, each under its rule, decided in one step.

use std::rc::Rc;

use doorkeep::host::either::{self, Limiter};
use doorkeep::host::input;
use doorkeep::{Decision, Error, Key, Timestamp};

use crate::call::{Body, Call};
use crate::decision::{as_number, put_flag, write, write_later};
use crate::external::handle;
use crate::failure::Result;
use crate::js;
use crate::key;
use crate::methods::Methods;
use crate::stats;

type Own<'a> = Call<'a, Limiter>;

/// `(capacity, [store, onError])` -> the functions of one limiter.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let storage = call.storage(1)?;
    let limiter = Limiter::new(storage.store, storage.on_error, input::capacity(call.given(0)?.value())?)?;
    Methods::new(call.env, call.realm)?.with(
        &Rc::new(limiter),
        [
            (c"decide", decide as Body<Limiter>),
            (c"peek", peek),
            (c"attempt", attempt),
            (c"reset", reset),
            (c"size", size),
            (c"stats", counters),
        ],
    )
}

/// `(cost, now)`, the keys in the slots: writes the decision into the slots.
fn decide(call: &Own<'_>) -> Result {
    ask(call, Limiter::decide)
}

fn peek(call: &Own<'_>) -> Result {
    ask(call, Limiter::peek)
}

/// The same arguments -> an attempt; writes its decision into the slots.
fn attempt(call: &Own<'_>) -> Result {
    let (cost, now) = (call.cost(0)?, call.now(1)?);
    key::read(call.realm, |keys| match call.state.attempt(keys, cost, now) {
        either::Answer::Now(attempt) => {
            let attempt = attempt?;
            write(call.realm, &attempt.decision(), keys)?;
            handle(call.env, attempt)
        }
        either::Answer::Later(attempt) => call.send(attempt, |env, realm, attempt| {
            let attempt = attempt?;
            write(realm, &attempt.decision(), &[])?;
            handle(env, attempt)
        }),
    })
}

fn reset(call: &Own<'_>) -> Result {
    let forgotten = key::read(call.realm, |keys| Ok(call.state.reset(keys)))?;
    call.answer(forgotten, |_, realm, forgotten| put_flag(realm, forgotten?))
}

fn size(call: &Own<'_>) -> Result {
    js::number(call.env, as_number(call.state.len()))
}

fn counters(call: &Own<'_>) -> Result {
    stats::answer(call, &call.state.stats())
}

#[inline]
fn ask(
    call: &Own<'_>,
    method: impl FnOnce(&Limiter, &[Key], u32, Option<Timestamp>) -> either::Answer<Result<Decision, Error>>,
) -> Result {
    let (cost, now) = (call.cost(0)?, call.now(1)?);
    key::read(call.realm, |keys| match method(call.state, keys, cost, now) {
        either::Answer::Now(decision) => write(call.realm, &decision?, keys),
        either::Answer::Later(decision) => call.send(decision, write_later),
    })
}
