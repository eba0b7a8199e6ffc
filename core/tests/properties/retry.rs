//! The wait is exact: denied at now + r - 1 µs with 1 µs to go, admitted at now + r, if nothing else comes.

use proptest::prelude::*;

use crate::histories::{self, Clock};
use crate::model::{Answer, Key, Policy, Rate, Strikes};
use crate::pair::{Pair, at};
use crate::rng::Rng;

/// Beyond it, a wait could end after the last moment that a timestamp can tell.
const LATEST: u64 = (1 << 52) - 4 * histories::MAX_PERIOD;

/// Asks again just before and at the promised moment; the second counts.
fn holds_to_the_microsecond(pair: &mut Pair, keys: &[Key], cost: u32, now: u64, denied: &Answer) {
    let Some(wait) = denied.retry_after else { return };
    let early = pair.allow(keys, cost, now + wait - 1);
    assert_eq!((early.allowed(), early.retry_after), (false, Some(1)), "1 µs early");
    assert!(pair.allow(keys, cost, now + wait).allowed(), "at the promised moment");
}

/// One key under awkward rates: a few calls of random cost, then calls until one is denied.
fn rates_are_exact(seed: u64) {
    let rng = &mut Rng::new(seed);
    let policy = histories::rates(rng, 3, histories::awkward_rate);
    let Policy::Rates(rates) = &policy else { unreachable!("rates are asked for") };
    let most = rates.iter().map(|rate| rate.count).min().unwrap();
    let longest = rates.iter().map(|rate| rate.period).max().unwrap();
    let mut pair = Pair::new(16, std::slice::from_ref(&policy));
    let (keys, mut now) = ([(0, 1)], rng.of_any_size(51));
    for _ in 0..40 {
        if now > LATEST {
            return;
        }
        let share = [1, 2, 3, 7][rng.index(4)];
        let cost = (most / share + rng.small(3)).max(1);
        let answer = pair.allow(&keys, cost, now);
        assert_eq!(answer.retry_after.is_none(), cost > most, "never is for what no window holds");
        if let (false, Some(wait)) = (answer.allowed(), answer.retry_after) {
            holds_to_the_microsecond(&mut pair, &keys, cost, now, &answer);
            now += wait;
        }
        now += if rng.one_in(3) { rng.below(longest) / 3 } else { rng.of_any_size(40) };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_denied_call_under_awkward_rates_is_told_the_exact_wait(seed in any::<u64>()) {
        rates_are_exact(seed);
    }

    #[test]
    fn a_lockout_ends_exactly_its_window_after_the_attempt_that_engaged_it(
        threshold in 1..=1024_u32,
        window in prop_oneof![1..100_u64, 1..=histories::MAX_PERIOD],
        start in 0..(1_u64 << 50),
        gap in 0..3_u64,
    ) {
        let mut pair = Pair::new(4, &[Policy::Strikes(Strikes { threshold, window })]);
        let gap = gap.min(window - 1);
        let times = (0..u64::from(threshold)).map(|i| start + i * gap);
        let outcomes: Vec<Answer> = times.map(|now| pair.allow(&[(0, 1)], 1, now)).collect();
        prop_assert!(outcomes.iter().all(Answer::allowed));
        let now = start + u64::from(threshold - 1) * gap + window / 2;
        let denied = pair.allow(&[(0, 1)], 1, now);
        prop_assert_eq!(denied.retry_after, Some(window - window / 2));
        holds_to_the_microsecond(&mut pair, &[(0, 1)], 1, now, &denied);
    }

    /// Whatever came before, with several keys of both kinds, full tables and a clock that steps back.
    #[test]
    fn every_denial_of_a_random_history_is_told_the_exact_wait(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let rules = histories::small_rules(rng);
        let pair = &mut Pair::new(9 + rng.index(4), &rules);
        let mut now = 1_000;
        for _ in 0..120 {
            now = histories::tick(rng, now, Clock::Unsteady);
            let keys: Vec<Key> = (0..=rng.index(3)).map(|_| (rng.index(rules.len()), rng.small(12))).collect();
            let cost = 1 + if rng.one_in(4) { rng.small(7) } else { 0 };
            let answer = pair.allow(&keys, cost, now);
            let Some(wait) = answer.retry_after.filter(|wait| *wait > 0) else { continue };
            prop_assert_eq!(pair.peek(&keys, cost, now + wait - 1).retry_after, Some(1));
            prop_assert!(pair.peek(&keys, cost, now + wait).allowed());
        }
    }
}

#[test]
fn a_saturated_table_tells_when_its_first_lockout_ends() {
    let mut pair = Pair::new(3, &[Policy::Strikes(Strikes { threshold: 1, window: 100 })]);
    for (key, now) in [(1, 10), (2, 20), (3, 30)] {
        assert!(pair.allow(&[(0, key)], 1, now).allowed());
    }
    let denied = pair.allow(&[(0, 4)], 1, 40);
    assert_eq!((denied.reason, denied.retry_after), (Some(doorkeep::Reason::Saturated), Some(70)));
    // Two new keys need two places, so the second end counts.
    let two = pair.allow(&[(0, 4), (0, 5)], 1, 40);
    assert_eq!((two.reason, two.retry_after), (Some(doorkeep::Reason::Saturated), Some(80)));
    holds_to_the_microsecond(&mut pair, &[(0, 4), (0, 5)], 1, 40, &two);
}

#[test]
fn the_bounds_of_time_and_rate_are_decided_exactly() {
    let rate = Rate { count: 1 << 26, period: 1 << 48 };
    let mut pair = Pair::new(4, &[Policy::Rates(vec![rate])]);
    let end = 1 << 52;
    assert!(pair.allow(&[(0, 1)], rate.count, end - rate.period).allowed());
    let denied = pair.allow(&[(0, 1)], rate.count, end - rate.period);
    assert_eq!(denied.retry_after, Some(rate.period));
    assert!(pair.allow(&[(0, 1)], rate.count, end).allowed());
    assert_eq!(at(end), doorkeep::Timestamp::MAX);
}
