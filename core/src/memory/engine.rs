//! Tests all checks of a call, and commits all of them only if every one allows.
//!
//! Knows policies and tables, no clock and no lock order. Invariant: one denial anywhere and
//! nothing is written anywhere, healing aside. Specified by `tests/vectors/limiter.json`.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::bounds::check_key_count;
use crate::decision::{Decision, Outcome, Reason, Summary, Wait};
use crate::error::Error;
use crate::id::AttemptId;
use crate::key::Key;
use crate::memory::tables::{Found, Locked, Memory, RuleState};
use crate::policy::strikes::Verdict;
use crate::registry;
use crate::table::{self, Checked, Group, Slot};
use crate::time::Timestamp;

/// One call on several keys.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) id: AttemptId,
    pub(crate) cost: u32,
    pub(crate) now: Timestamp,
    /// Only ask: write nothing, count nothing.
    pub(crate) peek: bool,
}

/// What an admitted call took, so that it can be given back.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) key: Key,
    pub(crate) from: Origin,
}

#[derive(Debug)]
pub(crate) enum Origin {
    Window { group: Group, charge: table::Charge },
    Strikes { id: AttemptId },
}

/// One key under one policy, tested.
enum Check<'a> {
    Window { rule: &'a Arc<str>, key: u8, table: u8, window: Checked },
    Strikes { rule: &'a Arc<str>, key: u8, table: u8, slot: Option<Slot>, verdict: Verdict },
}

/// Decides a call. With `taken`, remembers there what an admitted call took.
pub(crate) fn decide(
    memory: &Memory,
    keys: &[Key],
    call: Call,
    taken: Option<&mut Vec<Taken>>,
) -> Result<Decision, Error> {
    // Filled in place: a vector that moves inside a result costs more than the decision.
    let (mut once, mut rules) = (SmallVec::new(), Found::new());
    distinct(keys, &mut once)?;
    memory.rules_of(&once, &mut rules)?;
    let keys: &[&Key] = &once;
    check_capacity(memory, &rules)?;
    let decision = {
        let mut tables = Locked::new(memory, keys, &rules);
        let mut run = Run { call, tables: &mut tables, checks: SmallVec::new(), summary: Summary::new() };
        run.test(memory, keys, &rules);
        run.finish(keys, taken)
    };
    if !call.peek && call.cost > 0 {
        registry::count(&rules, &decision);
    }
    Ok(decision)
}

/// Adds the keys of a call, each once: a key named twice is one attempt.
pub(crate) fn distinct<'a>(keys: &'a [Key], once: &mut SmallVec<[&'a Key; 4]>) -> Result<(), Error> {
    check_key_count(keys.len())?;
    for key in keys {
        // Rules that do not agree stay, so that the conflict is found and not silently merged.
        if !once.iter().any(|known| known.counts_as(key)) {
            once.push(key);
        }
    }
    Ok(())
}

/// A call that can never find room is a mistake in the configuration, not a denial.
fn check_capacity(memory: &Memory, rules: &Found<'_>) -> Result<(), Error> {
    let windows: usize = rules.iter().map(|known| known.state.groups().len()).sum();
    let strikes = rules
        .iter()
        .filter(|known| known.state.strikes().is_some())
        .map(|known| rules.iter().filter(|other| other.position == known.position).count());
    check_windows(strikes.fold(windows, usize::max), memory.capacity())
}

pub(crate) fn check_windows(needed: usize, capacity: usize) -> Result<(), Error> {
    if needed <= capacity {
        return Ok(());
    }
    Err(Error::config(format!("a call needs more windows than the capacity, windows={needed}, capacity={capacity}")))
}

struct Run<'a, 't, 'm> {
    call: Call,
    tables: &'t mut Locked<'m>,
    checks: SmallVec<[Check<'a>; 4]>,
    summary: Summary<'a>,
}

impl<'a> Run<'a, '_, '_> {
    /// Tests every check, in call order, and writes nothing.
    fn test(&mut self, memory: &Memory, keys: &[&Key], rules: &Found<'a>) {
        let Call { cost, now, .. } = self.call;
        // At most 16 keys, so their places fit a byte.
        for ((at, key), known) in (0_u8..).zip(keys).zip(rules) {
            let (rule, digest) = (known.rule.shared_name(), key.digest());
            match known.state {
                RuleState::Windows { .. } => {
                    let table = self.tables.windows_at(memory.shards.index_of(&digest));
                    for group in known.state.groups() {
                        let window = self.tables.windows(table).check(&digest, group, now, cost);
                        self.checks.push(Check::Window { rule, key: at, table, window });
                    }
                }
                RuleState::Strikes(_) => {
                    let table = self.tables.strikes_at(known.position);
                    let strikes = self.tables.strikes(table);
                    let slot = strikes.find(&digest);
                    // In memory no reply is lost, so no attempt comes twice.
                    let verdict = strikes.test(slot, None, now);
                    self.checks.push(Check::Strikes { rule, key: at, table, slot, verdict });
                }
            }
        }
        for i in 0..self.checks.len() {
            self.judge(i);
        }
    }

    fn judge(&mut self, i: usize) {
        match &self.checks[i] {
            Check::Window { rule, window: Checked { tested: Err(wait), .. }, .. } => {
                self.summary.deny(rule, Reason::Limited, *wait);
            }
            Check::Strikes { rule, verdict: Verdict::Locked { wait }, .. } => {
                self.summary.deny(rule, Reason::Locked, Wait::Micros(*wait));
            }
            Check::Strikes { rule, table, slot: None, .. } => {
                let (rule, table) = (*rule, *table);
                let (new, held) = self.new_and_held_strikes(table);
                if let Some(wait) = self.tables.strikes(table).saturated(new, &held, self.call.now) {
                    self.summary.deny(rule, Reason::Saturated, Wait::Micros(wait));
                    // A key that finds no room has nothing left, though it has no strikes either.
                    self.summary.left(0, 0);
                }
            }
            _ => {}
        }
    }

    fn finish(mut self, keys: &[&Key], taken: Option<&mut Vec<Taken>>) -> Decision {
        let writes = !self.call.peek && self.call.cost > 0;
        if writes && !self.summary.is_denied() {
            self.make_room();
            self.commit(keys, taken);
        } else {
            if writes && !self.summary.is_never() {
                self.heal();
            }
            self.sum_up();
        }
        self.summary.into_decision()
    }

    /// Makes room for everything that is new before anything is written.
    fn make_room(&mut self) {
        for i in 0..self.checks.len() {
            match self.checks[i] {
                Check::Window { table, window: Checked { slot: None, .. }, .. } => {
                    let (new, held) = self.new_and_held_windows(table);
                    self.tables.windows(table).make_room(new, &held, self.call.now);
                }
                Check::Strikes { table, slot: None, .. } => {
                    let (new, held) = self.new_and_held_strikes(table);
                    self.tables.strikes(table).make_room(new, &held, self.call.now);
                }
                _ => {}
            }
        }
    }

    fn commit(&mut self, keys: &[&Key], mut taken: Option<&mut Vec<Taken>>) {
        let Call { id, cost, now, .. } = self.call;
        for check in &self.checks {
            let (key, from) = match check {
                Check::Window { key, table, window, .. } => {
                    let windows = self.tables.windows(*table);
                    let charge = windows.commit(&keys[usize::from(*key)].digest(), window, cost, now);
                    let (gcra, after) = (windows.gcra(window.group), window.after());
                    self.summary.left(gcra.remaining(after, now), after.reset_after(now));
                    (*key, Origin::Window { group: window.group, charge })
                }
                Check::Strikes { rule, key, table, slot, .. } => {
                    let strikes = self.tables.strikes(*table);
                    let digest = keys[usize::from(*key)].digest();
                    let (slot, outcome) = strikes.commit(*slot, digest, id, now);
                    if outcome == Outcome::AllowedLast {
                        self.summary.engaged(rule);
                    }
                    let (remaining, reset_after) = strikes.left(Some(slot), now);
                    self.summary.left(remaining, reset_after);
                    (*key, Origin::Strikes { id })
                }
            };
            if let Some(taken) = taken.as_deref_mut() {
                taken.push(Taken { key: keys[usize::from(key)].clone(), from });
            }
        }
    }

    fn heal(&mut self) {
        for check in &self.checks {
            match check {
                Check::Window { table, window, .. } => self.tables.windows(*table).heal(window),
                Check::Strikes { table, slot, .. } => self.tables.strikes(*table).heal(*slot, self.call.now),
            }
        }
    }

    /// What is left where nothing was counted.
    fn sum_up(&mut self) {
        let now = self.call.now;
        for check in &self.checks {
            let (remaining, reset_after) = match check {
                Check::Window { table, window, .. } => {
                    let gcra = self.tables.windows(*table).gcra(window.group);
                    (gcra.remaining(window.view.full_at, now), window.view.full_at.reset_after(now))
                }
                Check::Strikes { table, slot, .. } => self.tables.strikes(*table).left(*slot, now),
            };
            self.summary.left(remaining, reset_after);
        }
    }

    fn new_and_held_strikes(&self, of: u8) -> (usize, SmallVec<[Slot; 4]>) {
        new_and_held(self.checks.iter().filter_map(|check| match check {
            Check::Strikes { table, slot, .. } if *table == of => Some(*slot),
            _ => None,
        }))
    }

    fn new_and_held_windows(&self, of: u8) -> (usize, SmallVec<[Slot; 4]>) {
        new_and_held(self.checks.iter().filter_map(|check| match check {
            Check::Window { table, window, .. } if *table == of => Some(window.slot),
            _ => None,
        }))
    }
}

/// How many of these are not in the table, and the slots of those that are.
fn new_and_held(slots: impl Iterator<Item = Option<Slot>>) -> (usize, SmallVec<[Slot; 4]>) {
    let mut new = 0;
    let mut held = SmallVec::new();
    for slot in slots {
        match slot {
            Some(slot) => held.push(slot),
            None => new += 1,
        }
    }
    (new, held)
}
