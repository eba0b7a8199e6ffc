//! The tables answer as the model does, call by call: decisions, sizes and evictions, at capacities
//! so small that every insertion evicts, with clocks that step back.

use std::time::Duration;

use doorkeep::{AttemptLimiter, FixedWindow, Reservation, TokenBucket};

use crate::histories::{self, Clock};
use crate::model::{self, Answer, Policy, Strikes};
use crate::pair::{Pair, PairAttempt, at};
use crate::rng::Rng;

/// Each trace has its own rules; the four tests together make a million operations.
const TRACES: u64 = 500;
const STEPS: u64 = 500;

fn each_trace(test: impl Fn(&mut Rng, Clock)) {
    for seed in 0..TRACES {
        let clock = if seed % 2 == 0 { Clock::Unsteady } else { Clock::Forward };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&mut Rng::new(seed), clock)));
        if outcome.is_err() {
            panic!("the trace of seed {seed} differs");
        }
    }
}

/// A capacity, and how many keys want to be in there.
fn small_table(rng: &mut Rng) -> (usize, u32) {
    let most = if rng.one_in(2) { 5 } else { 30 };
    let capacity = 1 + rng.small(most);
    (capacity as usize, capacity + 1 + rng.small(capacity + 4))
}

#[test]
fn a_limiter_answers_as_the_model_on_any_trace() {
    each_trace(|rng, clock| {
        let rules = histories::small_rules(rng);
        let windows: usize =
            rules.iter().map(|rule| if let Policy::Rates(rates) = rule { rates.len() } else { 1 }).sum();
        // Room for one call of three keys, and little more.
        let (more, keys) = small_table(rng);
        let mut pair = Pair::new(3 * windows + more, &rules);
        let (mut now, mut attempts): (u64, Vec<PairAttempt>) = (1_000, Vec::new());
        for _ in 0..STEPS {
            now = histories::tick(rng, now, clock);
            let called: Vec<model::Key> =
                (0..=rng.index(3)).map(|_| (rng.index(rules.len()), rng.small(keys))).collect();
            let cost = if rng.one_in(4) { rng.small(8) } else { 1 };
            match rng.below(12) {
                0..=4 => drop(pair.allow(&called, cost, now)),
                5 | 6 => attempts.push(pair.attempt(&called, cost, now).1),
                7 | 8 if !attempts.is_empty() => pair.cancel(&attempts[rng.index(attempts.len())], now),
                9 => pair.reset(called[0]),
                _ => drop(pair.peek(&called, cost, now)),
            }
            pair.check_sizes();
        }
    });
}

#[test]
fn an_attempt_limiter_answers_as_the_model_on_any_trace() {
    each_trace(|rng, clock| {
        let strikes = Strikes { threshold: 1 + rng.small(4), window: 1 + rng.below(40) };
        let (capacity, keys) = small_table(rng);
        let limiter = AttemptLimiter::new(doorkeep::Strikes {
            threshold: strikes.threshold,
            lockout_window: Duration::from_micros(strikes.window),
            max_tracked_keys: capacity,
        });
        let limiter = limiter.unwrap().named("rule-0").unwrap();
        let mut model = model::Limiter::new(capacity, &[Policy::Strikes(strikes)]);
        let (mut now, mut reserved): (u64, Vec<(Reservation, model::Ticket)>) = (1_000, Vec::new());
        for _ in 0..STEPS {
            now = histories::tick(rng, now, clock);
            let key = rng.small(keys);
            let text = key.to_string();
            match rng.below(12) {
                0..=4 => {
                    let (decision, reservation) = limiter.try_reserve(&text, at(now)).unwrap();
                    let (expected, ticket) = model.allow(&[(0, key)], 1, now);
                    assert_eq!(Answer::from(&decision), expected, "reserve {key} at {now}, model on the right");
                    reserved.push((reservation, ticket));
                }
                5 => assert_eq!(limiter.attempt(&text, at(now)), model.allow(&[(0, key)], 1, now).0.outcome),
                6 | 7 if !reserved.is_empty() => {
                    let (reservation, ticket) = &reserved[rng.index(reserved.len())];
                    let expected = model.give_back(ticket, now).pop().unwrap_or(doorkeep::Cancelled::Nothing);
                    assert_eq!(limiter.cancel(reservation.clone(), at(now)), expected, "cancel at {now}");
                }
                8 => {
                    limiter.refund(&text, at(now)).unwrap();
                    model.refund((0, key), now);
                }
                9 => {
                    limiter.reset(&text).unwrap();
                    model.reset((0, key));
                }
                _ => {
                    let wait = model.peek(&[(0, key)], 1, now).retry_after.filter(|wait| *wait > 0);
                    assert_eq!(limiter.retry_after(&text, at(now)).unwrap(), wait.map(Duration::from_micros));
                    assert_eq!(limiter.locked(&text, at(now)).unwrap(), wait.is_some());
                }
            }
            assert_eq!((limiter.len(), limiter.stats().evicted), (model.len(), model.evicted()), "at {now}");
        }
    });
}

#[test]
fn a_token_bucket_answers_as_the_model_on_any_trace() {
    each_trace(|rng, clock| {
        let rate = histories::small_rate(rng);
        let (capacity, keys) = small_table(rng);
        let bucket = TokenBucket::new(rate.count, Duration::from_micros(rate.period), capacity).unwrap();
        let mut model = model::Limiter::new(capacity, &[Policy::Rates(vec![rate])]);
        let mut now = 1_000;
        for _ in 0..STEPS {
            now = histories::tick(rng, now, clock);
            let key = rng.small(keys);
            if rng.one_in(12) {
                assert!(bucket.reset(key.to_string()));
                model.reset((0, key));
            } else {
                let n = if rng.one_in(3) { 1 + rng.small(8) } else { 1 };
                let admitted = bucket.allow_n(key.to_string(), n.into(), at(now));
                assert_eq!(admitted, model.allow(&[(0, key)], n, now).0.allowed(), "{n} of {key} at {now}");
            }
            assert_eq!((bucket.len(), bucket.stats().evicted), (model.len(), model.evicted()), "at {now}");
        }
    });
}

#[test]
fn a_fixed_window_answers_as_the_model_on_any_trace() {
    each_trace(|rng, clock| {
        let (limit, window) = (1 + rng.small(4), 1 + rng.below(40));
        let (capacity, keys) = small_table(rng);
        let windows = FixedWindow::new(limit, Duration::from_micros(window), capacity).unwrap();
        let mut model = model::FixedWindows::new(limit, window, capacity);
        let mut now = 1_000;
        for _ in 0..STEPS {
            now = histories::tick(rng, now, clock);
            let key = rng.small(keys);
            if rng.one_in(12) {
                windows.reset(key.to_string()).unwrap();
                model.reset(key);
            } else {
                let answer = Answer::from(&windows.consume(key.to_string(), at(now)));
                assert_eq!(answer, model.consume(key, now), "{key} at {now}, model on the right");
            }
            assert_eq!((windows.len(), windows.stats().evicted), (model.len(), model.evicted), "at {now}");
        }
    });
}
