//! What one copy of the package owns: its slots, its rules and its bridge. Never shared between threads.

use std::cell::RefCell;
use std::collections::HashMap;

use doorkeep::Rule;
use napi::sys;

use crate::bridge::Bridge;
use crate::failure::{Failure, Result};
use crate::slots::Slots;

/// The state of one copy of the package in one environment.
pub(crate) struct Realm {
    pub(crate) slots: Slots,
    pub(crate) bridge: Bridge,
    rules: RefCell<Rules>,
}

/// Rules by content, so that a key names its rule with a number and needs no finalizer. A rule is kept while the
/// environment lives: a program has a handful, and making an equal one again adds nothing.
#[derive(Default)]
struct Rules {
    by_number: Vec<Rule>,
    numbers: HashMap<(Rule, Vec<String>), u32>,
}

impl Realm {
    /// Makes a realm, and its memory as a JavaScript value.
    pub(crate) fn new(env: sys::napi_env) -> Result<(Self, sys::napi_value)> {
        let (slots, memory) = Slots::new(env)?;
        Ok((Self { slots, bridge: Bridge::default(), rules: RefCell::default() }, memory))
    }

    /// Returns the number of a rule. `by` is part of the content: it decides which keys count as addresses.
    pub(crate) fn number(&self, rule: &Rule) -> Result<u32> {
        let mut rules = self.rules.borrow_mut();
        let content = (rule.clone(), rule.by().to_vec());
        if let Some(&number) = rules.numbers.get(&content) {
            return Ok(number);
        }
        let number = u32::try_from(rules.by_number.len()).map_err(|_| Failure::Internal("too many rules"))?;
        rules.by_number.push(rule.clone());
        rules.numbers.insert(content, number);
        Ok(number)
    }

    /// Returns the number of any rule of this name, for decisions about other keys than those at hand.
    pub(crate) fn named(&self, name: &str) -> Option<u32> {
        let index = self.rules.borrow().by_number.iter().position(|rule| rule.name() == name)?;
        u32::try_from(index).ok()
    }

    /// Returns the rule of a number that `number` returned.
    pub(crate) fn rule(&self, number: u32) -> Result<Rule> {
        let rules = self.rules.borrow();
        let rule = usize::try_from(number).ok().and_then(|index| rules.by_number.get(index));
        rule.cloned().ok_or(Failure::Internal("a key names a rule that does not exist"))
    }
}
