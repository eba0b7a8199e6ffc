//! Many threads at once: exactly N are admitted, and no mix of keys waits for itself in a circle.
//!
//! Invariant: totals are exact, so every test passes on any schedule; a deadlock is a test that hangs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "threads are what is tested")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use doorkeep::{
    AttemptLimiter, Cancelled, FixedWindow, Key, Limiter, Outcome, Rule, Settlement, Strikes, Timestamp, TokenBucket,
};

const THREADS: u32 = 8;
const CALLS: u32 = 500;
const MINUTE: Duration = Duration::from_secs(60);

fn at(now: u64) -> Timestamp {
    Timestamp::from_micros(now).unwrap()
}

/// How many of THREADS × CALLS parallel calls answer true. The call is given its number.
fn admitted(call: impl Fn(u32) -> bool + Sync) -> u32 {
    let (start, count) = (Barrier::new(THREADS as usize), AtomicU32::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, count, call) = (&start, &count, &call);
            scope.spawn(move || {
                start.wait();
                for i in 0..CALLS {
                    count.fetch_add(u32::from(call(thread * CALLS + i)), Ordering::Relaxed);
                }
            });
        }
    });
    count.into_inner()
}

fn attempts(threshold: u32) -> AttemptLimiter {
    AttemptLimiter::new(Strikes { threshold, lockout_window: MINUTE, max_tracked_keys: 100 }).unwrap()
}

fn rates(name: &str, rates: &str) -> Rule {
    Rule::new(name, rates.parse().unwrap()).unwrap()
}

#[test]
fn of_parallel_attempts_exactly_the_threshold_is_admitted_and_one_engages_the_lockout() {
    let limiter = attempts(5);
    let engaged = AtomicU32::new(0);
    let passed = admitted(|_| {
        let outcome = limiter.attempt("ann", at(1));
        engaged.fetch_add(u32::from(outcome == Outcome::AllowedLast), Ordering::Relaxed);
        outcome.is_allowed()
    });
    assert_eq!((passed, engaged.into_inner()), (5, 1));
    assert_eq!(limiter.stats().denied["attempt-limiter"]["locked"], u64::from(THREADS * CALLS) - 5);
}

#[test]
fn of_parallel_takes_exactly_the_rate_is_admitted() {
    let bucket = TokenBucket::new(137, MINUTE, 100_000).unwrap();
    assert_eq!(admitted(|_| bucket.allow("ann", at(1))), 137);
}

#[test]
fn of_parallel_consumes_exactly_the_limit_is_admitted() {
    let windows = FixedWindow::new(137, MINUTE, 100).unwrap();
    assert_eq!(admitted(|_| windows.consume("ann", at(1)).allowed()), 137);
}

#[test]
fn of_parallel_calls_on_two_rules_exactly_the_smaller_budget_is_admitted() {
    let (ip, account) = (rates("ip", "137/1m,500/1h"), Rule::strikes("account", 40, MINUTE).unwrap());
    let limiter = Limiter::new(100_000).unwrap();
    let keys = [ip.ip_key("203.0.113.9").unwrap(), account.key(&[b"ann"]).unwrap()];
    assert_eq!(admitted(|_| limiter.decide(&keys, 1, at(1)).unwrap().allowed()), 40);
    let left = limiter.peek(&keys[..1], 1, at(1)).unwrap().remaining;
    assert_eq!(left, 137 - 40, "denied calls spent nothing of the other rule");
}

/// Overlapping keys in every order, windows of many shards and two strike tables in one call.
#[test]
fn calls_with_overlapping_keys_in_different_orders_do_not_deadlock_and_count_exactly() {
    let wide = rates("wide", "1000000/1h");
    let rules = [Rule::strikes("first", 1000, MINUTE).unwrap(), Rule::strikes("second", 1000, MINUTE).unwrap()];
    let limiter = Limiter::new(100_000).unwrap();
    let key = |rule: &Rule, value: u32| rule.key(&[&value.to_be_bytes()]).unwrap();
    let keys: Vec<Key> = (0..6).map(|i| key(&wide, i)).chain(rules.iter().map(|rule| key(rule, 0))).collect();
    let (done, watched) = mpsc::channel();
    let calls = {
        let (limiter, keys) = (limiter.clone(), keys.clone());
        move || {
            let passed = admitted(|i| {
                let mut keys = keys.clone();
                keys.rotate_left(i as usize % 8);
                if i % 2 == 0 {
                    keys.reverse();
                }
                // Asking takes the same locks: the more often, the surer two threads meet half-way.
                (0..40).for_each(|_| drop(limiter.peek(&keys[..5], 1, at(1)).unwrap()));
                limiter.decide(&keys[..5], 1, at(1)).unwrap().allowed()
            });
            done.send(passed).unwrap();
        }
    };
    thread::spawn(calls);
    let passed = watched.recv_timeout(Duration::from_secs(60)).expect("calls wait for each other in a circle");
    let counted: u32 = keys[..6].iter().map(|key| 1_000_000 - remaining(&limiter, key)).sum();
    let strikes: u32 = keys[6..].iter().map(|key| 1000 - remaining(&limiter, key)).sum();
    // Every admitted call counted its five keys.
    assert_eq!(counted + strikes, 5 * passed);
    assert!(strikes >= 1000, "at least one strike rule was what stopped them: {strikes}");
}

fn remaining(limiter: &Limiter, key: &Key) -> u32 {
    limiter.peek(std::slice::from_ref(key), 1, at(1)).unwrap().remaining
}

#[test]
fn keys_that_displace_each_other_never_exceed_the_capacity() {
    let limiter = Limiter::new(70_000).unwrap();
    let rule = rates("flood", "3/1m,9/1h");
    admitted(|i| {
        let keys = [i * 40, i * 40 + 1].map(|i| rule.key(&[&i.to_be_bytes()]).unwrap());
        limiter.decide(&keys, 1, at(1)).unwrap().allowed() && limiter.len() <= 70_000
    });
    let small = attempts(3);
    let within = admitted(|i| small.attempt(i.to_be_bytes(), at(1)).is_allowed() && small.len() <= 100);
    assert_eq!(within, THREADS * CALLS);
}

#[test]
fn a_reservation_cancelled_by_all_threads_is_given_back_once() {
    let limiter = attempts(1_000);
    let reserved: Vec<_> = (0..CALLS).map(|_| limiter.reserve("ann", at(1)).1).collect();
    let given_back = admitted(|i| {
        let reservation = reserved[(i % CALLS) as usize].clone();
        limiter.cancel(reservation, at(1)) == Cancelled::GivenBack
    });
    assert_eq!((given_back, limiter.len()), (CALLS, 0));
}

#[test]
fn attempts_that_race_with_their_cancels_leave_nothing_behind() {
    let limiter = attempts(3);
    let windows = Limiter::new(100_000).unwrap();
    let keys = [rates("ip", "3/1m,5/1h").key(&[b"ann"]).unwrap()];
    admitted(|_| {
        let (outcome, reservation) = limiter.reserve("ann", at(1));
        let cancelled = limiter.cancel(reservation, at(1));
        assert_eq!(outcome.is_allowed(), cancelled != Cancelled::Nothing);
        assert_eq!(outcome == Outcome::AllowedLast, cancelled == Cancelled::Lifted);
        let attempt = windows.attempt(&keys, 1, at(1)).unwrap();
        assert_eq!(attempt.cancel(at(1)), attempt.allowed());
        outcome.is_allowed()
    });
    assert_eq!(limiter.len(), 0);
    let left = windows.peek(&keys, 1, at(1)).unwrap();
    assert_eq!((left.remaining, left.reset_after), (3, Duration::ZERO));
}

#[test]
fn an_attempt_settled_by_all_threads_is_settled_once() {
    let limiter = Limiter::new(100).unwrap();
    let keys = [rates("ip", "100/1m").key(&[b"ann"]).unwrap()];
    let attempts: Vec<_> = (0..50).map(|_| limiter.attempt(&keys, 1, at(1)).unwrap()).collect();
    let settled = admitted(|i| {
        let attempt = &attempts[(i % 50) as usize];
        let settlement = Settlement { give_back: &["ip"], ..Settlement::default() };
        if i % 2 == 0 { attempt.cancel(at(1)) } else { attempt.success(&settlement, at(1)).unwrap() }
    });
    assert_eq!((settled, remaining(&limiter, &keys[0])), (50, 100));
}
