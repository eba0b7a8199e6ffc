//! The rules that a limiter has met, by name.
//!
//! Only ever grows, so a rule is found without a lock, and a fork finds none held. Invariant: rules of one name agree in everything
//! that makes a budget, or the call that shows the conflict is refused before anything is counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::error::Error;
use crate::key::Key;
use crate::rule::Rule;
use crate::stats::RuleCounters;

const CHUNK: usize = 32;
const CHUNKS: usize = 32;
const MAX_RULES: usize = CHUNK * CHUNKS;

/// A rule that a limiter has met, with what the limiter keeps for it.
pub(crate) struct Registered<T> {
    pub(crate) rule: Rule,
    /// The order in which rules were met.
    pub(crate) position: usize,
    pub(crate) state: T,
    pub(crate) counters: RuleCounters,
}

/// The rules of a call's keys, in call order.
pub(crate) type Found<'a, T> = SmallVec<[&'a Arc<Registered<T>>; 4]>;

type Chunk<T> = Box<[OnceLock<Arc<Registered<T>>>; CHUNK]>;

pub(crate) struct Registry<T> {
    /// Names this registry to the rules that remember their place in it.
    id: u64,
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
    /// Held while a rule is added.
    adding: Mutex<()>,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(1);
        Self {
            id: MADE.fetch_add(1, Ordering::Relaxed),
            chunks: std::array::from_fn(|_| OnceLock::new()),
            adding: Mutex::default(),
        }
    }
}

impl<T> Registry<T> {
    /// Adds the rules of these keys to `found`; `make` prepares those that are new.
    ///
    /// # Errors
    /// A rule has the name of another one and does not agree with it, or there are too many rules.
    pub(crate) fn find<'a>(
        &'a self,
        keys: &[&Key],
        found: &mut Found<'a, T>,
        make: impl Fn(&'a Self, &Rule) -> T,
    ) -> Result<(), Error> {
        for key in keys {
            found.push(match key.rule().place_in(self.id).and_then(|position| self.get(position)) {
                Some(known) => known,
                None => self.meet(key.rule(), &make)?,
            });
        }
        Ok(())
    }

    /// A rule that was met before.
    pub(crate) fn known(&self, rule: &Rule) -> Option<&Arc<Registered<T>>> {
        self.named(rule.name()).filter(|known| known.rule == *rule)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Registered<T>>> {
        (0..MAX_RULES).map_while(|position| self.get(position))
    }

    fn get(&self, position: usize) -> Option<&Arc<Registered<T>>> {
        self.chunks[position / CHUNK].get()?[position % CHUNK].get()
    }

    fn named(&self, name: &str) -> Option<&Arc<Registered<T>>> {
        self.iter().find(|known| known.rule.name() == name)
    }

    fn meet<'a>(&'a self, rule: &Rule, make: impl Fn(&'a Self, &Rule) -> T) -> Result<&'a Arc<Registered<T>>, Error> {
        let known = match self.named(rule.name()) {
            Some(known) => known,
            None => {
                let _adding = self.adding.lock();
                match self.named(rule.name()) {
                    Some(known) => known,
                    None => self.add(rule, make)?,
                }
            }
        };
        if known.rule != *rule {
            return Err(conflict(rule));
        }
        rule.remember_place(self.id, known.position);
        Ok(known)
    }

    /// Adds a rule behind all others.
    fn add<'a>(&'a self, rule: &Rule, make: impl Fn(&'a Self, &Rule) -> T) -> Result<&'a Arc<Registered<T>>, Error> {
        let position = self.iter().count();
        if position == MAX_RULES {
            let name = rule.name();
            return Err(Error::config(format!("a limiter knows at most {MAX_RULES} rules, rule=`{name}`")));
        }
        let state = make(self, rule);
        let counters = RuleCounters::default();
        let chunk = self.chunks[position / CHUNK].get_or_init(|| Box::new(std::array::from_fn(|_| OnceLock::new())));
        Ok(chunk[position % CHUNK]
            .get_or_init(|| Arc::new(Registered { rule: rule.clone(), position, state, counters })))
    }
}

/// Counts a decision: an admitted call once per rule, a denied one at the rule that denied.
pub(crate) fn count<T>(rules: &[&Arc<Registered<T>>], decision: &crate::Decision) {
    match (decision.reason, &decision.rule) {
        (Some(reason), rule) => {
            let denies = |known: &&&Arc<Registered<T>>| rule.as_deref().is_none_or(|rule| rule == known.rule.name());
            if let Some(denying) = rules.iter().find(denies) {
                denying.counters.denied(reason);
            }
        }
        (None, _) => {
            for (i, known) in rules.iter().enumerate() {
                if !rules[..i].iter().any(|other| other.position == known.position) {
                    known.counters.allowed();
                }
            }
        }
    }
}

fn conflict(rule: &Rule) -> Error {
    let name = rule.name();
    Error::config(format!("rules of one name must agree in kind, policy, prefix length and secret, rule=`{name}`"))
}
