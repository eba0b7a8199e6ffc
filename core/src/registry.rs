//! The rules that a limiter has met, by name.
//!
//! Invariant: rules of one name agree in everything that makes a budget, or the call that shows the
//! conflict is refused before anything is counted.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use crate::error::Error;
use crate::key::Key;
use crate::rule::Rule;
use crate::stats::RuleCounters;

const MAX_RULES: usize = 1024;

/// A rule that a limiter has met, with what the limiter keeps for it.
pub(crate) struct Registered<T> {
    pub(crate) rule: Rule,
    pub(crate) state: T,
    pub(crate) counters: RuleCounters,
}

/// The places of the rules of a call's keys, in call order.
pub(crate) type Positions = SmallVec<[usize; 4]>;

pub(crate) struct Rules<T> {
    by_name: HashMap<Arc<str>, usize>,
    list: Vec<Arc<Registered<T>>>,
}

impl<T> Rules<T> {
    pub(crate) fn get(&self, position: usize) -> &Arc<Registered<T>> {
        &self.list[position]
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Registered<T>>> {
        self.list.iter()
    }

    /// Where a rule stands; none if none of its name was met.
    pub(crate) fn position(&self, rule: &Rule) -> Option<Result<usize, Error>> {
        let position = *self.by_name.get(rule.name())?;
        let known = &self.list[position].rule;
        Some(if known.is_same_object(rule) || known == rule { Ok(position) } else { Err(conflict(rule)) })
    }

    fn positions(&self, keys: &[&Key]) -> Option<Result<Positions, Error>> {
        keys.iter().map(|key| self.position(key.rule())).collect()
    }

    fn add(&mut self, rule: &Rule, make: impl Fn(&Self, &Rule) -> T) -> Result<(), Error> {
        if let Some(known) = self.position(rule) {
            return known.map(drop);
        }
        if self.list.len() == MAX_RULES {
            return Err(Error::config(format!("a limiter knows at most {MAX_RULES} rules, rule=`{}`", rule.name())));
        }
        let state = make(self, rule);
        self.by_name.insert(Arc::clone(rule.shared_name()), self.list.len());
        self.list.push(Arc::new(Registered { rule: rule.clone(), state, counters: RuleCounters::default() }));
        Ok(())
    }
}

pub(crate) struct Registry<T>(RwLock<Rules<T>>);

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self(RwLock::new(Rules { by_name: HashMap::new(), list: Vec::new() }))
    }
}

impl<T> Registry<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Rules<T>> {
        self.0.read()
    }

    /// The rules of these keys; `make` prepares those that are new.
    ///
    /// # Errors
    /// A rule has the name of another one and does not agree with it, or there are too many rules.
    pub(crate) fn of(
        &self,
        keys: &[&Key],
        make: impl Fn(&Rules<T>, &Rule) -> T,
    ) -> Result<(RwLockReadGuard<'_, Rules<T>>, Positions), Error> {
        let rules = self.0.read();
        if let Some(found) = rules.positions(keys) {
            return Ok((rules, found?));
        }
        drop(rules);
        let mut rules = self.0.write();
        keys.iter().try_for_each(|key| rules.add(key.rule(), &make))?;
        let rules = RwLockWriteGuard::downgrade(rules);
        let found = rules.positions(keys).expect("every rule was added above")?;
        Ok((rules, found))
    }
}

/// Counts a decision: an admitted call once per rule, a denied one at the rule that denied.
pub(crate) fn count<'a, T: 'a>(rules: impl Iterator<Item = &'a Registered<T>> + Clone, decision: &crate::Decision) {
    match (decision.reason, &decision.rule) {
        (Some(reason), rule) => {
            let at = |known: &&Registered<T>| rule.as_deref().is_none_or(|rule| rule == known.rule.name());
            if let Some(denying) = rules.clone().find(at) {
                denying.counters.denied(reason);
            }
        }
        (None, _) => {
            for (i, known) in rules.clone().enumerate() {
                if !rules.clone().take(i).any(|other| other.rule.name() == known.rule.name()) {
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
