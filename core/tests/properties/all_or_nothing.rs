//! One denial anywhere and nothing is counted anywhere, in whatever order the keys are named.

use proptest::prelude::*;

use crate::histories::{self, Clock};
use crate::model::{Answer, Key};
use crate::pair::Pair;
use crate::rng::Rng;

const KEYS: u32 = 5;

/// How every key stands, asked alone.
fn standings(pair: &Pair, rules: usize, now: u64) -> Vec<Answer> {
    let universe = (0..rules).flat_map(|rule| (0..KEYS).map(move |key| (rule, key)));
    universe.map(|key| pair.peek(&[key], 1, now)).collect()
}

fn shuffled(rng: &mut Rng, keys: &[Key]) -> Vec<Key> {
    let mut keys = keys.to_vec();
    for i in (1..keys.len()).rev() {
        keys.swap(i, rng.index(i + 1));
    }
    keys
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_denied_call_changes_nothing_and_an_admitted_one_counts_every_key(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let rules = histories::small_rules(rng);
        let mut pair = Pair::new(100, &rules);
        let mut now = 1_000;
        for _ in 0..60 {
            now = histories::tick(rng, now, Clock::Forward);
            let keys: Vec<Key> = (0..=rng.index(6)).map(|_| (rng.index(rules.len()), rng.small(KEYS))).collect();
            let cost = 1 + if rng.one_in(4) { rng.small(3) } else { 0 };
            let before = standings(&pair, rules.len(), now);
            let denied = !pair.allow(&keys, cost, now).allowed();
            let after = standings(&pair, rules.len(), now);
            for (i, (before, after)) in before.iter().zip(&after).enumerate() {
                let key = (i / KEYS as usize, u32::try_from(i % KEYS as usize).unwrap());
                if denied || !keys.contains(&key) {
                    prop_assert_eq!(before, after, "{:?} of {:?} at {}", key, &keys, now);
                } else {
                    prop_assert!(before.allowed() && after.remaining < before.remaining, "{:?} was not counted", key);
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_keys_changes_neither_the_verdict_nor_the_wait(seed in any::<u64>()) {
        let rng = &mut Rng::new(seed);
        let rules = histories::small_rules(rng);
        let mut pair = Pair::new(12 + rng.index(6), &rules);
        let mut now = 1_000;
        for _ in 0..80 {
            now = histories::tick(rng, now, Clock::Unsteady);
            let keys: Vec<Key> = (0..=rng.index(4)).map(|_| (rng.index(rules.len()), rng.small(9))).collect();
            let (ours, theirs) = (pair.peek(&keys, 1, now), pair.peek(&shuffled(rng, &keys), 1, now));
            prop_assert_eq!((ours.outcome, ours.retry_after), (theirs.outcome, theirs.retry_after));
            prop_assert_eq!((ours.remaining, ours.reset_after), (theirs.remaining, theirs.reset_after));
            pair.allow(&keys, 1, now);
        }
    }
}
