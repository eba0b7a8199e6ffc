//! A limiter and its model, asked the same questions.
//!
//! Invariant: every answer of the pair was given by both; a difference panics with both answers.

use std::time::Duration;

use doorkeep::{Attempt, Digest, Key, Limiter, Rate, Rates, Rule, Timestamp};

use crate::model::{self, Answer, Policy, rule_name};

pub(crate) fn at(now: u64) -> Timestamp {
    Timestamp::from_micros(now).unwrap()
}

pub(crate) fn rule(name: &str, policy: &Policy) -> Rule {
    match policy {
        Policy::Rates(rates) => {
            let rates = rates.iter().map(|rate| Rate::new(rate.count, Duration::from_micros(rate.period)).unwrap());
            Rule::new(name, Rates::new(rates).unwrap()).unwrap()
        }
        Policy::Strikes(strikes) => {
            Rule::strikes(name, strikes.threshold, Duration::from_micros(strikes.window)).unwrap()
        }
    }
}

/// Digests made directly: hashing texts is not what these laws are about.
pub(crate) fn digest(value: u32) -> Digest {
    let mut bytes = [0x5a; 16];
    bytes[4..8].copy_from_slice(&value.to_be_bytes());
    Digest::from_bytes(bytes)
}

pub(crate) struct Pair {
    pub(crate) limiter: Limiter,
    pub(crate) model: model::Limiter,
    rules: Vec<Rule>,
}

/// An admitted attempt on both sides.
pub(crate) struct PairAttempt {
    attempt: Attempt,
    ticket: model::Ticket,
}

impl PairAttempt {
    /// The library's side alone.
    pub(crate) fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

impl Pair {
    pub(crate) fn new(capacity: usize, policies: &[Policy]) -> Self {
        let rules = policies.iter().enumerate().map(|(i, policy)| rule(&rule_name(i), policy)).collect();
        Self { limiter: Limiter::new(capacity).unwrap(), model: model::Limiter::new(capacity, policies), rules }
    }

    pub(crate) fn keys(&self, keys: &[model::Key]) -> Vec<Key> {
        keys.iter().map(|(rule, value)| Key::from_digest(self.rules[*rule].clone(), digest(*value), false)).collect()
    }

    pub(crate) fn peek(&self, keys: &[model::Key], cost: u32, now: u64) -> Answer {
        let answer = Answer::from(&self.limiter.peek(&self.keys(keys), cost, at(now)).unwrap());
        assert_eq!(answer, self.model.peek(keys, cost, now), "peek {keys:?} cost {cost} at {now}, model on the right");
        answer
    }

    pub(crate) fn allow(&mut self, keys: &[model::Key], cost: u32, now: u64) -> Answer {
        let answer = Answer::from(&self.limiter.decide(&self.keys(keys), cost, at(now)).unwrap());
        let expected = self.model.allow(keys, cost, now).0;
        assert_eq!(answer, expected, "allow {keys:?} cost {cost} at {now}, model on the right");
        answer
    }

    pub(crate) fn attempt(&mut self, keys: &[model::Key], cost: u32, now: u64) -> (Answer, PairAttempt) {
        let attempt = self.limiter.attempt(&self.keys(keys), cost, at(now)).unwrap();
        let answer = Answer::from(&attempt.decision());
        let (expected, ticket) = self.model.allow(keys, cost, now);
        assert_eq!(answer, expected, "attempt {keys:?} cost {cost} at {now}, model on the right");
        (answer, PairAttempt { attempt, ticket })
    }

    pub(crate) fn cancel(&mut self, attempt: &PairAttempt, now: u64) {
        if attempt.attempt.cancel(at(now)) {
            self.model.give_back(&attempt.ticket, now);
        }
    }

    pub(crate) fn reset(&mut self, key: model::Key) {
        self.limiter.reset(&self.keys(&[key])).unwrap();
        self.model.reset(key);
    }

    pub(crate) fn check_sizes(&self) {
        let stats = self.limiter.stats();
        assert_eq!((self.limiter.len(), stats.evicted), (self.model.len(), self.model.evicted()), "len and evicted");
        assert_eq!(stats.tracked_keys, self.limiter.len() as u64);
    }
}
