//! The limiters of one text key: strikes with reservations, token buckets, fixed windows.

use std::time::Duration;

use doorkeep::redis::{self as shared};
use doorkeep::{AttemptLimiter, FixedWindow, Reservation, Strikes, TokenBucket};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

use crate::bench::{Bench, Place, alike, at, everywhere, holds, wait};
use crate::traces::{Clock, Tick, count, period, tick};

const ROOMY: usize = 100_000;

#[derive(Clone, Debug)]
enum Call {
    Reserve(char),
    Repeat(Index),
    Cancel(Index),
    Ask(char),
    Refund(char),
    Reset(char),
    Take(char, i64),
}

fn key() -> impl Strategy<Value = char> {
    prop::char::range('a', 'c')
}

fn strike_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => key().prop_map(Call::Reserve),
        2 => any::<Index>().prop_map(Call::Repeat),
        4 => any::<Index>().prop_map(Call::Cancel),
        3 => key().prop_map(Call::Ask),
        1 => key().prop_map(Call::Refund),
        1 => key().prop_map(Call::Reset),
    ]
}

fn take_call() -> impl Strategy<Value = Call> {
    let n = prop_oneof![5 => Just(1_i64), 3 => -1..8_i64, 1 => Just(4093_i64), 1 => Just(1 << 40)];
    prop_oneof![
        10 => (key(), n).prop_map(|(key, n)| Call::Take(key, n)),
        3 => key().prop_map(Call::Ask),
        1 => key().prop_map(Call::Reset),
    ]
}

/// Runs `step` on every call at its moment.
fn steps(
    bench: &Bench,
    window: u64,
    calls: &[(Tick, Call)],
    mut step: impl FnMut(&Call, u64) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut clock = Clock::new(window);
    for (tick, call) in calls {
        step(call, clock.tick(*tick))?;
        bench.check_ends(window, clock.reach)?;
    }
    Ok(())
}

fn strikes(place: Place) {
    let traces = (1..5_u32, period(), prop::collection::vec((tick(), strike_call()), 1..60));
    holds(place, 500, traces, |bench, (threshold, window, calls)| {
        let strikes = Strikes { threshold, lockout_window: Duration::from_micros(window), max_tracked_keys: ROOMY };
        let here = AttemptLimiter::new(strikes).unwrap().named("same").unwrap();
        let there = shared::AttemptLimiter::new(&bench.store, "same", strikes, None).unwrap();
        let mut reserved: Vec<(Reservation, shared::Reservation)> = Vec::new();
        steps(bench, window, &calls, |call, now| {
            let then = at(now);
            match call {
                Call::Reserve(key) => {
                    let key = key.to_string();
                    let (mine, my) = here.try_reserve(&key, then).unwrap();
                    let (theirs, their) = wait(there.reserve(&key, Some(then))).unwrap();
                    reserved.push((my, their));
                    alike(Ok(mine), Ok(theirs), call, now)
                }
                Call::Repeat(_) | Call::Cancel(_) if reserved.is_empty() => Ok(()),
                Call::Repeat(which) => {
                    let (my, their) = which.get(&reserved);
                    alike(Ok(here.repeat(my, then)), Ok(wait(there.repeat(their, Some(then)))), call, now)
                }
                Call::Cancel(which) => {
                    let (my, their) = which.get(&reserved).clone();
                    alike(Ok(here.cancel(my, then)), Ok(wait(there.cancel(their, Some(then)))), call, now)
                }
                Call::Ask(key) => {
                    let key = key.to_string();
                    let waits = (here.retry_after(&key, then), wait(there.retry_after(&key, Some(then))));
                    alike(waits.0, waits.1, call, now)?;
                    alike(here.locked(&key, then), wait(there.locked(&key, Some(then))), call, now)
                }
                Call::Refund(key) => {
                    let key = key.to_string();
                    alike(here.refund(&key, then), wait(there.refund(&key, Some(then))), call, now)
                }
                Call::Reset(key) => {
                    let key = key.to_string();
                    alike(here.reset(&key), wait(there.reset(&key)), call, now)
                }
                Call::Take(..) => unreachable!("no call of this limiter"),
            }
        })
    });
}

fn a_token_bucket(place: Place) {
    let traces = (count(), period(), prop::collection::vec((tick(), take_call()), 1..60));
    holds(place, 250, traces, |bench, (rate, window, calls)| {
        let length = Duration::from_micros(window);
        let here = TokenBucket::new(rate, length, ROOMY).unwrap().named("same").unwrap();
        let there = shared::TokenBucket::new(&bench.store, "same", (rate, length, ROOMY), None).unwrap();
        steps(bench, window, &calls, |call, now| match call {
            Call::Take(key, n) => {
                let key = key.to_string();
                let theirs = wait(there.allow_n(&key, *n, Some(at(now))));
                alike(Ok(here.allow_n(&key, *n, at(now))), Ok(theirs), call, now)
            }
            Call::Ask(key) => {
                let key = key.to_string();
                let mine = here.retry_after(&key, at(now));
                alike(mine.clone(), wait(there.retry_after(&key, Some(at(now)))), call, now)?;
                // Asking took nothing, and what it answered is what an attempt meets.
                let met = here.allow(&key, at(now));
                alike(Ok(met), Ok(wait(there.allow(&key, Some(at(now))))), call, now)?;
                alike(Ok(mine.unwrap().is_none()), Ok(met), call, now)
            }
            Call::Reset(key) => {
                let key = key.to_string();
                alike(Ok(here.reset(&key)), Ok(wait(there.reset(&key))), call, now)
            }
            _ => unreachable!("no call of this limiter"),
        })
    });
}

fn a_fixed_window(place: Place) {
    let traces = (count(), period(), prop::collection::vec((tick(), take_call()), 1..60));
    holds(place, 250, traces, |bench, (limit, window, calls)| {
        let length = Duration::from_micros(window);
        let here = FixedWindow::new(limit, length, ROOMY).unwrap().named("same").unwrap();
        let there = shared::FixedWindow::new(&bench.store, "same", (limit, length, ROOMY), None).unwrap();
        steps(bench, window, &calls, |call, now| match call {
            Call::Take(key, _) => {
                let key = key.to_string();
                let theirs = wait(there.consume(&key, Some(at(now))));
                alike(here.try_consume(&key, at(now)), theirs, call, now)
            }
            Call::Ask(key) => {
                let key = key.to_string();
                let mine = here.peek(&key, at(now));
                alike(mine.clone(), wait(there.peek(&key, Some(at(now)))), call, now)?;
                // Asking counted nothing, and what it answered is what an attempt meets.
                let (peeked, met) = (mine.unwrap(), here.try_consume(&key, at(now)));
                alike(met.clone(), wait(there.consume(&key, Some(at(now)))), call, now)?;
                let met = met.unwrap();
                alike(Ok((peeked.outcome, peeked.retry_after)), Ok((met.outcome, met.retry_after)), call, now)
            }
            Call::Reset(key) => {
                let key = key.to_string();
                alike(here.reset(&key), wait(there.reset(&key)), call, now)
            }
            _ => unreachable!("no call of this limiter"),
        })
    });
}

everywhere!(
    strikes,
    strikes_over_redis_answer_as_in_memory,
    strikes_over_valkey_answer_as_in_memory,
    strikes_under_lua_5_4_answer_as_in_memory
);
everywhere!(
    a_token_bucket,
    a_token_bucket_over_redis_answers_as_in_memory,
    a_token_bucket_over_valkey_answers_as_in_memory,
    a_token_bucket_under_lua_5_4_answers_as_in_memory
);
everywhere!(
    a_fixed_window,
    a_fixed_window_over_redis_answers_as_in_memory,
    a_fixed_window_over_valkey_answers_as_in_memory,
    a_fixed_window_under_lua_5_4_answers_as_in_memory
);
