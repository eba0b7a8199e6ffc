//! A [`Limiter`] under test: every attempt asks it with one key for each rule.

use std::collections::VecDeque;

use doorkeep::{Attempt, Decision, Digest, Key, Limiter, Settlement};

use crate::error::{Error, shown};
use crate::policy::{By, Rules};
use crate::rng::mix;
use crate::subject::{Answer, Request, Subject};
use crate::subjects::{SEED, at, key_parts};

pub(crate) struct RuleSet {
    limiter: Limiter,
    /// One for each rule, aimed anew at every attempt: making keys would cost more than the decision.
    keys: Vec<Key>,
    by: Vec<By>,
    policy: Rules,
    settles: bool,
    /// Admitted attempts with the right credential, whose check is under way.
    pending: VecDeque<Attempt>,
}

impl RuleSet {
    /// A fresh limiter.
    ///
    /// # Errors
    /// A rule does not say what it is keyed by, two rules of one name do not agree, or what a success does to the rules
    /// is refused by the limiter.
    pub(crate) fn new(policy: &Rules) -> Result<Self, Error> {
        let by: Vec<By> = policy.rules.iter().map(|rule| By::of(rule.by())).collect();
        if let Some(at) = by.iter().position(|by| !by.account && !by.address) {
            let name = policy.rules[at].name();
            return Err(Error::config(format!("a rule must say by what it is keyed, set by, rule=`{name}`")));
        }
        let keys: Result<Vec<Key>, Error> = policy
            .rules
            .iter()
            .zip(&by)
            .map(|(rule, by)| {
                // A rule remembers its place in the limiter that met it last. Each subject has rules of its own, so that
                // replicas do not make each other forget.
                let rule = rule.clone().with_ipv6_prefix(rule.ipv6_prefix())?;
                Ok(Key::from_digest(rule, Digest::default(), by.address && !by.account))
            })
            .collect();
        let settles = ![&policy.forgive, &policy.give_back, &policy.forgive_address].iter().all(|list| list.is_empty());
        let mut subject = Self {
            limiter: Limiter::new(policy.capacity)?.with_seed(SEED),
            keys: keys?,
            by,
            policy: policy.clone(),
            settles,
            pending: VecDeque::new(),
        };
        subject.rehearse()?;
        Ok(subject)
    }

    /// Makes one attempt and settles it, so that a policy that cannot be asked is refused before the run.
    fn rehearse(&mut self) -> Result<(), Error> {
        let Rules { rules, forgive, give_back, forgive_address, .. } = &self.policy;
        let mut named = [forgive, give_back, forgive_address].into_iter().flatten();
        if let Some(name) = named.find(|name| rules.iter().all(|rule| rule.name() != name.as_str())) {
            return Err(Error::config(format!("the policy has no such rule, rule=`{}`", shown(name))));
        }
        let attempt = self.limiter.attempt(&self.keys, 1, at(0))?;
        self.settle(&attempt, 0)?;
        self.limiter.reset(&self.keys)?;
        Ok(())
    }

    fn aim(&mut self, request: &Request) {
        for (key, by) in self.keys.iter_mut().zip(&self.by) {
            let prefix = key.rule().ipv6_prefix();
            key.set_digest(scatter(key_parts(*by, request, prefix)));
        }
    }

    fn settle(&self, attempt: &Attempt, now: u64) -> Result<bool, Error> {
        let [forgive, give_back, forgive_address] =
            [&self.policy.forgive, &self.policy.give_back, &self.policy.forgive_address]
                .map(|rules| rules.iter().map(String::as_str).collect::<Vec<_>>());
        let settlement = Settlement { forgive: &forgive, give_back: &give_back, forgive_address: &forgive_address };
        Ok(attempt.success(&settlement, at(now))?)
    }

    fn read(&self, decision: &Decision) -> Answer {
        let of_rule = |rule: &str| self.keys.iter().zip(&self.by).find(|(key, _)| key.rule().name() == rule);
        let denying = decision.rule.as_deref().and_then(of_rule).map(|(_, by)| *by);
        Answer {
            denied: decision.reason,
            wait: decision.retry_after.map(|wait| u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)),
            by_address: denying.is_some_and(|by| by.address),
            by_account: denying.is_some_and(|by| by.account),
            engaged: !decision.engaged.is_empty(),
            degraded: false,
        }
    }
}

impl Subject for RuleSet {
    fn arrive(&mut self, request: &Request, now: u64) -> Answer {
        self.aim(request);
        if !(request.correct && self.settles) {
            let decision = self.limiter.decide(&self.keys, 1, at(now)).expect("the rehearsal asked the same");
            return self.read(&decision);
        }
        let attempt = self.limiter.attempt(&self.keys, 1, at(now)).expect("the rehearsal asked the same");
        let answer = self.read(&attempt.decision());
        if answer.allowed() {
            self.pending.push_back(attempt);
        }
        answer
    }

    fn verified(&mut self, request: &Request, now: u64) {
        if request.correct
            && let Some(attempt) = self.pending.pop_front()
        {
            self.settle(&attempt, now).expect("the rehearsal settled the same");
        }
    }

    fn peek(&mut self, request: &Request, now: u64) -> Answer {
        self.aim(request);
        let decision = self.limiter.peek(&self.keys, 1, at(now)).expect("the rehearsal asked the same");
        self.read(&decision)
    }

    fn table(&self) -> (u64, u64) {
        let stats = self.limiter.stats();
        (stats.tracked_keys, stats.evicted)
    }
}

/// A digest that no other key has: cheaper than SHA-256, and nobody crafts the numbers behind it.
#[allow(clippy::cast_possible_truncation, reason = "the halves of a word")]
fn scatter((account, address): (u64, u128)) -> Digest {
    let address = mix((address >> 64) as u64).wrapping_mul(3) ^ mix(address as u64);
    let (low, high) = (mix(account ^ address.rotate_left(32)), mix(mix(account).wrapping_add(address)));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    Digest::from_bytes(bytes)
}
