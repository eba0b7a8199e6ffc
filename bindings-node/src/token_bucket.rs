//! `TokenBucket`: tokens that refill continuously.

use std::rc::Rc;

use doorkeep::host::either::TokenBucket;
use doorkeep::host::input;

use crate::call::{Body, Call};
use crate::decision::{as_number, put_flag, put_wait};
use crate::failure::Result;
use crate::js::{self, UNDEFINED};
use crate::methods::Methods;
use crate::stats;
use crate::value::UNIT;

type Own<'a> = Call<'a, TokenBucket>;

/// `(rate, window, capacity, name, [store, onError])` -> the functions of one limiter.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let storage = call.storage(4)?;
    let rate = input::bucket_rate(call.given(0)?.value())?;
    let window = input::bucket_window(call.given(1)?.value(), UNIT)?;
    let capacity = input::bucket_capacity(call.given(2)?.value())?;
    let bucket = TokenBucket::new(storage.store, call.given(3)?.name(), (rate, window, capacity), storage.on_error)?;
    Methods::new(call.env, call.realm)?.with(
        &Rc::new(bucket),
        [
            (c"allow", allow as Body<TokenBucket>),
            (c"allowN", allow_n),
            (c"retryAfter", retry_after),
            (c"reset", reset),
            (c"close", close),
            (c"size", size),
            (c"stats", counters),
        ],
    )
}

/// `(key, now)`: writes whether a token was taken into the slots.
fn allow(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let allowed = key(call, |key| call.state.allow_n(key, 1, now))?;
    call.answer(allowed, |_, realm, allowed| put_flag(realm, allowed))
}

/// `(key, n, now)`: the same for n tokens.
fn allow_n(call: &Own<'_>) -> Result {
    let tokens = input::tokens(call.given(1)?.value())?;
    let now = call.now(2)?;
    let allowed = key(call, |key| call.state.allow_n(key, tokens, now))?;
    call.answer(allowed, |_, realm, allowed| put_flag(realm, allowed))
}

/// `(key, now)`: writes the wait until there is a token into the slots.
fn retry_after(call: &Own<'_>) -> Result {
    let now = call.now(1)?;
    let wait = key(call, |key| call.state.retry_after(key, now))?;
    call.answer(wait, |_, realm, wait| put_wait(realm, wait?))
}

fn reset(call: &Own<'_>) -> Result {
    let forgotten = key(call, |key| call.state.reset(key))?;
    call.answer(forgotten, |_, realm, forgotten| put_flag(realm, forgotten))
}

fn close(call: &Own<'_>) -> Result {
    call.state.close();
    Ok(UNDEFINED)
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
