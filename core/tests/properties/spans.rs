//! How many pass in any half-open span: never more than `max_in`, and a greedy caller gets exactly that.

use std::time::Duration;

use doorkeep::FixedWindow;
use proptest::prelude::*;

use crate::histories;
use crate::model::{Policy, Rate, Strikes};
use crate::pair::{Pair, at, rule};
use crate::rng::Rng;

/// The bound in words of the semantics, not of the code.
fn bound(policy: &Policy, span: u64) -> u128 {
    let span = u128::from(span);
    match policy {
        Policy::Rates(rates) => {
            let of = |rate: &Rate| {
                let count = u128::from(rate.count);
                (span * count).div_ceil(rate.period.into()) + count - 1
            };
            rates.iter().map(of).min().unwrap()
        }
        Policy::Strikes(strikes) => u128::from(strikes.threshold) * span.div_ceil(strikes.window.into()),
    }
}

/// Every span that begins and ends with an admitted call; no other can hold more for its length.
fn every_span_is_bounded(admitted: &[u64], bound: impl Fn(u64) -> u128) {
    for (i, first) in admitted.iter().enumerate() {
        for (j, last) in admitted.iter().enumerate().skip(i) {
            let (passed, span) = ((j - i + 1) as u128, last - first + 1);
            assert!(passed <= bound(span), "{passed} passed in {span} µs from {first}");
        }
    }
}

fn arrivals(rng: &mut Rng, scale: u64) -> Vec<u64> {
    let mut now = rng.of_any_size(50);
    let mut next = || {
        now += [0, 1, rng.below(scale / 8 + 1), rng.below(scale / 2 + 1), scale][rng.index(5)];
        now
    };
    (0..250).map(|_| next()).collect()
}

/// Polls whenever a wait is over, from `start` on to the end of the span.
fn greedy(pair: &mut Pair, start: u64, span: u64) -> u128 {
    let (mut now, mut passed) = (start, 0);
    while now < start + span {
        let answer = pair.allow(&[(0, 1)], 1, now);
        passed += u128::from(answer.allowed());
        now += answer.retry_after.unwrap();
    }
    passed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_span_admits_more_than_max_in(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let policy = match rng.below(3) {
            0 => histories::small_strikes(rng),
            1 => histories::rates(rng, 3, histories::small_rate),
            _ => histories::rates(rng, 3, |rng| Rate { count: 1 + rng.small(9), period: 1 + rng.of_any_size(42) }),
        };
        let scale = match &policy {
            Policy::Rates(rates) => rates[0].period,
            Policy::Strikes(strikes) => strikes.window,
        };
        let mut pair = Pair::new(16, std::slice::from_ref(&policy));
        let arrivals = arrivals(rng, scale);
        let admitted: Vec<u64> = arrivals.into_iter().filter(|now| pair.allow(&[(0, 1)], 1, *now).allowed()).collect();
        every_span_is_bounded(&admitted, |span| bound(&policy, span));
        let max_in = |span: u64| u128::from(rule("rule", &policy).max_in(Duration::from_micros(span)));
        for span in [1, scale, 3 * scale - 1, 7 * scale] {
            prop_assert_eq!(max_in(span), bound(&policy, span));
        }
    }

    #[test]
    fn a_greedy_caller_gets_exactly_max_in_of_whole_periods(
        count in 1..40_u32, extra in 0..(1_u64 << 40), periods in 1..4_u64, start in 0..(1_u64 << 50),
    ) {
        // An interval of at least 1 µs: what falls into one microsecond cannot be told apart.
        let policy = Policy::Rates(vec![Rate { count, period: u64::from(count) + extra }]);
        let span = periods * (u64::from(count) + extra);
        let passed = greedy(&mut Pair::new(4, std::slice::from_ref(&policy)), start, span);
        prop_assert_eq!(passed, bound(&policy, span));
    }

    #[test]
    fn a_greedy_caller_gets_exactly_max_in_of_any_span_if_the_interval_is_whole(
        count in 1..40_u32, interval in 1..(1_u64 << 30), span in 1..200_u64, part in 0..(1_u64 << 30),
    ) {
        let policy = Policy::Rates(vec![Rate { count, period: u64::from(count) * interval }]);
        let span = span * interval + part % interval;
        prop_assert_eq!(greedy(&mut Pair::new(4, std::slice::from_ref(&policy)), 7, span), bound(&policy, span));
    }

    #[test]
    fn a_greedy_caller_gets_exactly_max_in_of_strikes(threshold in 1..20_u32, window in 1..(1_u64 << 40), span in 1..(1_u64 << 42)) {
        let policy = Policy::Strikes(Strikes { threshold, window });
        let span = span % (9 * window) + 1;
        prop_assert_eq!(greedy(&mut Pair::new(4, std::slice::from_ref(&policy)), 7, span), bound(&policy, span));
    }

    #[test]
    fn fixed_windows_admit_at_most_one_limit_less_one_more_than_their_windows(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let (limit, window) = (1 + rng.small(8), 1 + rng.of_any_size(40));
        let windows = FixedWindow::new(limit, Duration::from_micros(window), 4).unwrap();
        let arrivals = arrivals(rng, window);
        let admitted: Vec<u64> = arrivals.into_iter().filter(|now| windows.consume("k", at(*now)).allowed()).collect();
        let limit = u128::from(limit);
        every_span_is_bounded(&admitted, |span| limit * u128::from(span.div_ceil(window)) + limit - 1);
    }
}

#[test]
fn seven_a_minute_admit_seven_thousand_and_seven_in_a_thousand_minutes_both_ends_included() {
    let mut pair = Pair::new(4, &[Policy::Rates(vec![Rate { count: 7, period: 60_000_000 }])]);
    assert_eq!(greedy(&mut pair, 5, 60_000_000_000), 7 * 1000 + 6);
    assert!(pair.allow(&[(0, 1)], 1, 5 + 60_000_000_000).allowed(), "the one at the very end");
}
