//! Floods of distinct keys: every table keeps its capacity, a lockout and a spent window stand.

use std::time::Duration;

use doorkeep::{AttemptLimiter, FixedWindow, Key, Limiter, Outcome, Strikes, Timestamp, TokenBucket};

use crate::model::{Policy, Rate};
use crate::pair::{at, digest, rule};

const FLOOD: u32 = 2_000_000;
const CAPACITY: usize = 1_000;
const MINUTE: Duration = Duration::from_secs(60);

/// A flood whose every hit comes a little later, with a look at the size now and then.
fn flood(hit: impl Fn(&[u8], u32, Timestamp), len: impl Fn() -> usize) {
    for i in 0..FLOOD {
        hit(&i.to_le_bytes(), i, at(1_000 + u64::from(i / 1_000)));
        if i % 4096 == 0 {
            assert!(len() <= CAPACITY, "{} after {i} keys", len());
        }
    }
    assert_eq!(len(), CAPACITY, "a flood fills the table and no more");
}

#[test]
fn an_attempt_limiter_keeps_its_cap_and_a_lockout_under_two_million_keys() {
    let strikes = Strikes { threshold: 2, lockout_window: MINUTE, max_tracked_keys: CAPACITY };
    let limiter = AttemptLimiter::new(strikes).unwrap();
    assert_eq!(limiter.attempt("victim", at(1)), Outcome::Allowed);
    assert_eq!(limiter.attempt("victim", at(1)), Outcome::AllowedLast);
    flood(|key, _, now| assert_eq!(limiter.attempt(key, now), Outcome::Allowed), || limiter.len());
    assert_eq!(limiter.retry_after("victim", at(1_000_000)).unwrap(), Some(MINUTE - Duration::from_micros(999_999)));
    assert_eq!(limiter.stats().evicted, u64::from(FLOOD) + 1 - CAPACITY as u64);
}

#[test]
fn a_limiter_keeps_its_cap_and_a_spent_window_under_two_million_keys() {
    let limiter = Limiter::new(CAPACITY).unwrap();
    let rates = |rates: &[Rate]| Policy::Rates(rates.to_vec());
    let victim = rule("victim", &rates(&[Rate { count: 5, period: 60_000_000 }]));
    // A window of the flood is nearest to full at once, or stays spent for a day: either way it evicts its own.
    let flooded = rule("flood", &rates(&[Rate { count: 1000, period: 86_400_000_000 }]));
    let victim = [Key::from_digest(victim, digest(0), false)];
    assert!(limiter.decide(&victim, 5, at(1_000)).unwrap().allowed());
    let hit = |_: &[u8], i: u32, now| {
        let key = [Key::from_digest(flooded.clone(), digest(i), false)];
        assert!(limiter.decide(&key, 1, now).unwrap().allowed());
    };
    flood(hit, || limiter.len());
    assert!(!limiter.decide(&victim, 1, at(1_000_000)).unwrap().allowed());
}

#[test]
fn a_token_bucket_keeps_its_cap_and_an_empty_bucket_under_two_million_keys() {
    let bucket = TokenBucket::new(10, MINUTE, CAPACITY).unwrap();
    assert!(bucket.allow_n("victim", 10, at(10_000)));
    flood(|key, _, now| assert!(bucket.allow(key, now)), || bucket.len());
    assert!(!bucket.allow("victim", at(10_000)));
}

#[test]
fn a_fixed_window_keeps_its_cap_and_a_spent_window_under_two_million_keys() {
    let windows = FixedWindow::new(2, MINUTE, CAPACITY).unwrap();
    assert!(windows.consume("victim", at(1)).allowed() && windows.consume("victim", at(1)).allowed());
    flood(|key, _, now| assert!(windows.consume(key, now).allowed()), || windows.len());
    assert!(!windows.consume("victim", at(1_000_000)).allowed());
}

#[test]
fn a_sharded_table_keeps_its_cap_too() {
    let capacity = 65_536 + 7;
    let bucket = TokenBucket::new(1, MINUTE, capacity).unwrap();
    for i in 0..200_000_u32 {
        assert!(bucket.allow(i.to_le_bytes(), at(1_000)));
    }
    assert!(capacity - 64 <= bucket.len() && bucket.len() <= capacity, "{}", bucket.len());
}

#[test]
fn a_table_full_of_lockouts_turns_new_keys_away_and_keeps_every_lockout() {
    let strikes = Strikes { threshold: 1, lockout_window: MINUTE, max_tracked_keys: 100 };
    let limiter = AttemptLimiter::new(strikes).unwrap();
    for i in 0..100_u64 {
        assert_eq!(limiter.attempt(i.to_string(), at(i)), Outcome::AllowedLast);
    }
    for i in 100..20_000_u64 {
        assert_eq!(limiter.attempt(i.to_string(), at(200)), Outcome::Denied);
    }
    assert!((0..100_u64).all(|i| limiter.locked(i.to_string(), at(60_000_000 - 1)).unwrap()));
    assert_eq!((limiter.len(), limiter.stats().evicted), (100, 0));
    assert_eq!(limiter.attempt("late", at(60_000_000)), Outcome::AllowedLast);
}
