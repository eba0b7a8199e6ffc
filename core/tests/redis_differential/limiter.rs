//! Several keys of several kinds in one call; attempts extended, settled and cancelled.

use doorkeep::redis::{Attempt as Remote, Limiter as Shared};
use doorkeep::{Attempt, Key, Limiter, Rule, Settlement};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

use crate::bench::{Bench, Place, alike, at, everywhere, holds, wait};
use crate::traces::{Clock, Policy, Tick, cost, policy, tick};

const ROOMY: usize = 100_000;
const ADDRESS: u8 = 2;

/// Rule and value of a key; the last value is an address.
type Named = (Index, u8);

#[derive(Clone, Debug)]
enum Call {
    Allow(Vec<Named>, u32),
    Peek(Vec<Named>, u32),
    Attempt(Vec<Named>, u32),
    Extend(Index, Vec<Named>, u32),
    /// Rules to forgive and to give back, by bits.
    Success(Index, u8, u8),
    Failure(Index),
    Cancel(Index),
    Release(Index),
    Reset(Vec<Named>),
}

fn call() -> impl Strategy<Value = Call> {
    let keys = || prop::collection::vec((any::<Index>(), 0..=ADDRESS), 1..4);
    prop_oneof![
        6 => (keys(), cost()).prop_map(|(keys, cost)| Call::Allow(keys, cost)),
        2 => (keys(), cost()).prop_map(|(keys, cost)| Call::Peek(keys, cost)),
        6 => (keys(), cost()).prop_map(|(keys, cost)| Call::Attempt(keys, cost)),
        2 => (any::<Index>(), keys(), cost()).prop_map(|(attempt, keys, cost)| Call::Extend(attempt, keys, cost)),
        3 => (any::<Index>(), 0..8_u8, 0..8_u8).prop_map(|(attempt, f, g)| Call::Success(attempt, f, g & !f)),
        1 => any::<Index>().prop_map(Call::Failure),
        4 => any::<Index>().prop_map(Call::Cancel),
        3 => any::<Index>().prop_map(Call::Release),
        1 => keys().prop_map(Call::Reset),
    ]
}

struct Pair<'a> {
    here: Limiter,
    there: Shared,
    rules: &'a [Rule],
    attempts: Vec<(Attempt, Remote)>,
}

impl Pair<'_> {
    fn keys(&self, named: &[Named]) -> Vec<Key> {
        let key = |rule: &Rule, value| match value {
            ADDRESS => rule.ip_key("203.0.113.9"),
            value => rule.key(&[&[b'a' + value]]),
        };
        named.iter().map(|(rule, value)| key(rule.get(self.rules), *value).unwrap()).collect()
    }

    fn step(&mut self, call: &Call, now: u64) -> Result<(), TestCaseError> {
        let then = at(now);
        match call {
            Call::Allow(named, cost) => {
                let keys = self.keys(named);
                let there = wait(self.there.decide(&keys, *cost, Some(then)));
                alike(self.here.decide(&keys, *cost, then), there, call, now)
            }
            Call::Peek(named, cost) => {
                let keys = self.keys(named);
                let there = wait(self.there.peek(&keys, *cost, Some(then)));
                alike(self.here.peek(&keys, *cost, then), there, call, now)
            }
            Call::Attempt(named, cost) => {
                let keys = self.keys(named);
                let here = self.here.attempt(&keys, *cost, then).unwrap();
                let there = wait(self.there.attempt(&keys, *cost, Some(then))).unwrap();
                alike(Ok(here.decision()), Ok(there.decision()), call, now)?;
                self.attempts.push((here, there));
                Ok(())
            }
            Call::Reset(named) => {
                let keys = self.keys(named);
                alike(self.here.reset(&keys), wait(self.there.reset(&keys)), call, now)
            }
            _ if self.attempts.is_empty() => Ok(()),
            Call::Extend(which, named, cost) => {
                let (keys, (here, there)) = (self.keys(named), which.get(&self.attempts));
                alike(here.extend(&keys, *cost, then), wait(there.extend(&keys, *cost, Some(then))), call, now)
            }
            Call::Success(which, forgiven, returned) => {
                let (here, there) = which.get(&self.attempts);
                let names = |bits: &u8| -> Vec<&str> {
                    let named = self.rules.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
                    named.map(|(_, rule)| rule.name()).collect()
                };
                let (forgive, give_back) = (names(forgiven), names(returned));
                let settlement = Settlement { forgive: &forgive, give_back: &give_back, forgive_address: &[] };
                alike(here.success(&settlement, then), wait(there.success(&settlement, Some(then))), call, now)
            }
            Call::Failure(which) => {
                let (here, there) = which.get(&self.attempts);
                alike(Ok(here.failure()), Ok(there.failure()), call, now)
            }
            Call::Cancel(which) => {
                let (here, there) = which.get(&self.attempts);
                alike(Ok(here.cancel(then)), Ok(wait(there.cancel(Some(then)))), call, now)
            }
            Call::Release(which) => {
                let (here, there) = which.get(&self.attempts);
                alike(Ok(here.release(then)), Ok(wait(there.release(Some(then)))), call, now)
            }
        }
    }
}

fn replay(bench: &Bench, policies: &[Policy], steps: &[(Tick, Call)]) -> Result<(), TestCaseError> {
    let rules: Vec<Rule> = policies.iter().enumerate().map(|(i, policy)| policy.rule(&format!("rule-{i}"))).collect();
    let longest = policies.iter().map(Policy::longest).max().unwrap();
    let (here, there) = (Limiter::new(ROOMY).unwrap(), Shared::new(&bench.store, None, ROOMY).unwrap());
    let mut pair = Pair { here, there, rules: &rules, attempts: Vec::new() };
    let mut clock = Clock::new(longest);
    for (tick, call) in steps {
        pair.step(call, clock.tick(*tick))?;
        bench.check_ends(longest, clock.reach)?;
    }
    let (here, there) = (pair.here.stats(), pair.there.stats());
    prop_assert_eq!((here.allowed, here.denied), (there.allowed, there.denied), "counters, memory on the left");
    prop_assert!(there.store_failed.is_empty());
    Ok(())
}

fn a_limiter(place: Place) {
    let traces = (prop::collection::vec(policy(), 1..4), prop::collection::vec((tick(), call()), 1..60));
    holds(place, 800, traces, |bench, (policies, steps)| replay(bench, &policies, &steps));
}

everywhere!(
    a_limiter,
    a_limiter_over_redis_answers_as_in_memory,
    a_limiter_over_valkey_answers_as_in_memory,
    a_limiter_under_lua_5_4_answers_as_in_memory
);
