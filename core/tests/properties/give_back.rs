//! Giving back: exact when nothing came in between, never richer than the history without the attempt.
//!
//! The second law is told in calls of cost 1: what was admitted, the attempts that were given back
//! left out, is at no moment more than without them.

use proptest::prelude::*;

use crate::histories::{self, Clock};
use crate::model::{Policy, Rate, Strikes};
use crate::pair::{Pair, PairAttempt, at};
use crate::rng::Rng;

const KEY: [(usize, u32); 1] = [(0, 1)];

/// One step of a history, and how far the clock moves before it.
#[derive(Clone, Debug)]
enum Step {
    Allow,
    /// An attempt that will be given back, here left out of the other history.
    Attempt {
        cost: u32,
    },
    GiveBack {
        which: prop::sample::Index,
    },
    Reset,
    /// The clock steps back by so much that the next call, made at once, heals the windows.
    Back,
}

fn steps(longest: u64) -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        4 => Just(Step::Allow),
        3 => (1..6_u32).prop_map(|cost| Step::Attempt { cost }),
        3 => any::<prop::sample::Index>().prop_map(|which| Step::GiveBack { which }),
        1 => Just(Step::Reset),
        1 => Just(Step::Back),
    ];
    let pause = prop_oneof![3 => Just(0), 3 => 0..4_u64, 2 => 0..longest / 2, 1 => 0..3 * longest];
    prop::collection::vec((pause, step), 1..60)
}

fn small_rates() -> impl Strategy<Value = Vec<Rate>> {
    let rate = (1..8_u32, prop_oneof![1..60_u64, 1000..100_000_u64]).prop_map(|(count, period)| Rate { count, period });
    prop::collection::vec(rate, 1..3).prop_map(|mut rates| {
        rates.sort_by_key(|rate| (rate.period, rate.count));
        rates.dedup();
        rates
    })
}

/// Runs a history with its attempts and without them, and compares what passed.
fn is_never_richer(rates: Vec<Rate>, steps: &[(u64, Step)]) -> Result<(), TestCaseError> {
    let back = 10 * rates.iter().map(|rate| rate.period).max().unwrap();
    let windows = rates.len();
    let policies = [Policy::Rates(rates)];
    let (mut with, mut without) = (Pair::new(8, &policies), Pair::new(8, &policies));
    let (mut now, mut passed): (u64, [u32; 2]) = (1 << 40, [0; 2]);
    let mut open: Vec<PairAttempt> = Vec::new();
    for (pause, step) in steps {
        now += pause;
        // A window that was forgotten before the step is not there to be healed after it.
        let both_live = [&with, &without].iter().all(|pair| pair.model.live_windows(now) == windows);
        if matches!(step, Step::Back) && both_live {
            now -= back;
        }
        match step {
            Step::Allow | Step::Back => {
                for (pair, passed) in [&mut with, &mut without].into_iter().zip(&mut passed) {
                    *passed += u32::from(pair.allow(&KEY, 1, now).allowed());
                }
            }
            Step::Attempt { cost } => open.push(with.attempt(&KEY, *cost, now).1),
            Step::GiveBack { which } if !open.is_empty() => {
                let attempt = open.swap_remove(which.index(open.len()));
                with.cancel(&attempt, now);
                with.cancel(&attempt, now);
            }
            Step::GiveBack { .. } => {}
            Step::Reset => {
                with.reset(KEY[0]);
                without.reset(KEY[0]);
            }
        }
        prop_assert!(passed[0] <= passed[1], "{} passed with, {} without, at {}", passed[0], passed[1], now);
        let could = [&with, &without].map(|pair| pair.peek(&KEY, 0, now).remaining);
        let (richest, bound) = (passed[0] + could[0], passed[1] + could[1]);
        prop_assert!(richest <= bound, "{} could have passed with, {} without, at {}", richest, bound, now);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_with_a_give_back_is_richer_than_without_the_attempt(
        rates in small_rates(), steps in steps(200), slow in any::<bool>(),
    ) {
        let stretch = if slow { 500 } else { 1 };
        let steps: Vec<_> = steps.into_iter().map(|(pause, step)| (pause * stretch, step)).collect();
        is_never_richer(rates, &steps)?;
    }

    #[test]
    fn an_attempt_given_back_before_anything_else_came_leaves_no_trace(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let policy = histories::rates(rng, 3, histories::awkward_rate);
        let Policy::Rates(rates) = &policy else { unreachable!("rates are asked for") };
        let (most, period) = (rates.iter().map(|rate| rate.count).min().unwrap(), rates[0].period);
        let pairs = &mut [(); 2].map(|()| Pair::new(8, std::slice::from_ref(&policy)));
        // Six times two of the longest periods stay below 2^52.
        let mut now = rng.of_any_size(48);
        for _ in 0..6 {
            let cost = (most / [1, 2, 5][rng.index(3)]).max(1);
            let attempt = pairs[0].attempt(&KEY, cost, now).1;
            now += [0, 1, period / 3, 2 * period][rng.index(4)];
            pairs[0].cancel(&attempt, now);
            for cost in [0, 1, most] {
                prop_assert_eq!(pairs[0].peek(&KEY, cost, now), pairs[1].peek(&KEY, cost, now));
            }
            let kept = (most / 7).max(1);
            prop_assert_eq!(pairs[0].allow(&KEY, kept, now), pairs[1].allow(&KEY, kept, now));
        }
    }

    /// Cancels in any order leave as many strikes as were not cancelled, and only the engager lifts.
    #[test]
    fn cancelled_strikes_are_exactly_taken_back(threshold in 1..12_u32, order in any::<u64>()) {
        let rng = &mut Rng::new(order);
        let mut pair = Pair::new(2, &[Policy::Strikes(Strikes { threshold, window: 1000 })]);
        let mut open: Vec<(bool, PairAttempt)> = Vec::new();
        for now in 0..u64::from(threshold) {
            let (answer, attempt) = pair.attempt(&KEY, 1, now);
            open.push((!answer.engaged.is_empty(), attempt));
        }
        let mut locked = true;
        while !open.is_empty() {
            let (engager, attempt) = open.swap_remove(rng.index(open.len()));
            pair.cancel(&attempt, 500);
            pair.cancel(&attempt, 501);
            locked &= !engager;
            let left = u32::try_from(open.len()).unwrap();
            prop_assert_eq!(pair.peek(&KEY, 1, 502).allowed(), !locked);
            prop_assert_eq!(pair.peek(&KEY, 1, 502).remaining, if locked { 0 } else { threshold - left });
        }
        prop_assert_eq!(pair.limiter.len(), 0);
    }

    /// Several keys, both kinds, tables that evict, resets and heals: settling late touches nothing that came later.
    #[test]
    fn a_late_give_back_touches_nothing_that_came_after_a_reset(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let rules = histories::small_rules(rng);
        let mut pair = Pair::new(60, &rules);
        let keys: Vec<(usize, u32)> = (0..rules.len()).map(|rule| (rule, 1)).collect();
        let (answer, attempt) = pair.attempt(&keys, 1, 1_000);
        prop_assert!(answer.allowed());
        keys.iter().for_each(|key| pair.reset(*key));
        let mut now = 1_000;
        for _ in 0..rng.below(6) {
            now = histories::tick(rng, now, Clock::Forward);
            pair.allow(&keys, 1, now);
        }
        let before = keys.iter().map(|key| pair.peek(&[*key], 1, now)).collect::<Vec<_>>();
        prop_assert!(attempt.settle(now));
        let after = keys.iter().map(|key| pair.peek(&[*key], 1, now)).collect::<Vec<_>>();
        prop_assert_eq!(before, after);
    }
}

impl PairAttempt {
    /// Cancels in the library alone: by the law nothing may come of it.
    fn settle(&self, now: u64) -> bool {
        self.attempt().cancel(at(now))
    }
}
