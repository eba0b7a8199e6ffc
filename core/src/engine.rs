//! Tests all checks of a call, and commits all of them only if every one allows.
//!
//! Knows policies and tables, no clock and no lock order. Invariant: one denial anywhere and
//! nothing is written anywhere, healing aside. Specified by `tests/vectors/limiter.json`.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::decision::{Decision, Outcome, Reason, Summary, Wait};
use crate::error::Error;
use crate::id::AttemptId;
use crate::key::{Digest, Key};
use crate::policy::strikes::Verdict;
use crate::registry;
use crate::store::memory::{Locked, Memory, RuleState, Rules};
use crate::table::{self, Checked, Group, Slot};
use crate::time::Timestamp;

const MAX_KEYS: usize = 16;

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
    pub(crate) from: From,
}

#[derive(Debug)]
pub(crate) enum From {
    Window { group: Group, charge: table::Charge },
    Strikes { id: AttemptId },
}

/// One key under one policy, tested.
enum Check<'a> {
    Window { rule: &'a Arc<str>, key: usize, table: usize, window: Checked, tested: Result<(), Wait> },
    Strikes { rule: &'a Arc<str>, key: usize, table: usize, slot: Option<Slot>, verdict: Verdict },
}

/// Decides a call. With `taken`, remembers there what an admitted call took.
pub(crate) fn decide(
    memory: &Memory,
    keys: &[Key],
    call: Call,
    taken: Option<&mut Vec<Taken>>,
) -> Result<Decision, Error> {
    let keys = distinct(keys)?;
    let (rules, positions) = memory.rules_of(&keys)?;
    check_capacity(memory, &rules, &positions)?;
    let decision = {
        let mut tables = Locked::new(memory, &rules, &keys, &positions);
        let mut run = Run { call, tables: &mut tables, checks: SmallVec::new(), summary: Summary::new() };
        run.test(memory, &rules, &keys, &positions);
        run.finish(&keys, taken)
    };
    if !call.peek && call.cost > 0 {
        registry::count(positions.iter().map(|position| &**rules.get(*position)), &decision);
    }
    Ok(decision)
}

/// The keys of a call, each once: a key named twice is one attempt.
pub(crate) fn distinct(keys: &[Key]) -> Result<SmallVec<[&Key; 4]>, Error> {
    check_count(keys)?;
    let mut once: SmallVec<[&Key; 4]> = SmallVec::new();
    for key in keys {
        // Rules that do not agree stay, so that the conflict is found and not silently merged.
        if !once.iter().any(|known| known.counts_as(key)) {
            once.push(key);
        }
    }
    Ok(once)
}

pub(crate) fn check_count(keys: &[Key]) -> Result<(), Error> {
    if (1..=MAX_KEYS).contains(&keys.len()) {
        return Ok(());
    }
    Err(Error::config(format!("a call takes 1 to {MAX_KEYS} keys, keys={}", keys.len())))
}

/// A call that can never find room is a mistake in the configuration, not a denial.
fn check_capacity(memory: &Memory, rules: &Rules, positions: &[usize]) -> Result<(), Error> {
    let windows: usize = positions.iter().map(|position| rules.get(*position).state.groups().len()).sum();
    let strikes = positions
        .iter()
        .filter(|position| matches!(rules.get(**position).state, RuleState::Strikes(_)))
        .map(|position| positions.iter().filter(|other| *other == position).count());
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
    fn test(&mut self, memory: &Memory, rules: &'a Rules, keys: &[&Key], positions: &[usize]) {
        for (at, (key, position)) in keys.iter().zip(positions).enumerate() {
            let registered = rules.get(*position);
            let rule = registered.rule.shared_name();
            match registered.state {
                RuleState::Windows { .. } => {
                    let table = self.tables.windows_at(memory.shards.index_of(&key.digest()));
                    for group in registered.state.groups() {
                        let check = self.test_window(rule, at, table, key.digest(), group);
                        self.checks.push(check);
                    }
                }
                RuleState::Strikes(_) => {
                    let table = self.tables.strikes_at(*position);
                    let strikes = self.tables.strikes(table);
                    let slot = strikes.find(&key.digest());
                    let verdict = strikes.test(slot, self.call.id, self.call.now);
                    self.checks.push(Check::Strikes { rule, key: at, table, slot, verdict });
                }
            }
        }
        for i in 0..self.checks.len() {
            self.judge(i);
        }
    }

    fn test_window(&mut self, rule: &'a Arc<str>, at: usize, table: usize, key: Digest, group: Group) -> Check<'a> {
        let Call { cost, now, .. } = self.call;
        let windows = self.tables.windows(table);
        let slot = windows.find(&key, group);
        let view = windows.load(slot, group, now);
        let tested = windows.gcra(group).test(view.full_at, now, cost);
        let after = tested.unwrap_or(view.full_at);
        Check::Window {
            rule,
            key: at,
            table,
            window: Checked { key, group, slot, view, after },
            tested: tested.map(drop),
        }
    }

    fn judge(&mut self, i: usize) {
        match &self.checks[i] {
            Check::Window { rule, tested: Err(wait), .. } => self.summary.deny(rule, Reason::Limited, *wait),
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
                    let charge = windows.commit(window, cost, now);
                    let gcra = windows.gcra(window.group);
                    self.summary.left(gcra.remaining(window.after, now), window.after.reset_after(now));
                    (*key, From::Window { group: window.group, charge })
                }
                Check::Strikes { rule, key, table, slot, verdict } => {
                    let strikes = self.tables.strikes(*table);
                    let digest = keys[*key].digest();
                    let (slot, engages) = match verdict {
                        Verdict::Repeated { engager } => (*slot, *engager),
                        _ => {
                            let (slot, outcome) = strikes.commit(*slot, digest, id, now);
                            (Some(slot), outcome == Outcome::AllowedLast)
                        }
                    };
                    if engages {
                        self.summary.engaged(rule);
                    }
                    let (remaining, reset_after) = strikes.left(slot, now);
                    self.summary.left(remaining, reset_after);
                    (*key, From::Strikes { id })
                }
            };
            if let Some(taken) = taken.as_deref_mut() {
                taken.push(Taken { key: keys[key].clone(), from });
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

    fn new_and_held_strikes(&self, of: usize) -> (usize, SmallVec<[Slot; 4]>) {
        new_and_held(self.checks.iter().filter_map(|check| match check {
            Check::Strikes { table, slot, .. } if *table == of => Some(*slot),
            _ => None,
        }))
    }

    fn new_and_held_windows(&self, of: usize) -> (usize, SmallVec<[Slot; 4]>) {
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
