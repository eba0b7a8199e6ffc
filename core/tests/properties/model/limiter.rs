//! The engine of the model: test every key, then write all or nothing.

use std::cmp::Ordering;

use doorkeep::{Cancelled, Outcome, Reason};

use super::strikes::{Standing, Table};
use super::windows::{Charge, Group, Windows};
use super::{Answer, Key, Policy, Rate, rule_name};

#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    rules: Vec<Policy>,
    windows: Windows,
    /// One for each rule of strikes.
    strikes: Vec<Option<Table>>,
    ids: u64,
}

/// What an admitted call took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ticket {
    charges: Vec<Charge>,
    strikes: Vec<(Key, u64)>,
}

/// One check of a call: may it be counted, and what is left where nothing was.
struct Check {
    rule: usize,
    denial: Option<(Reason, Option<u64>)>,
    remaining: u32,
    reset_after: u64,
}

impl Limiter {
    pub(crate) fn new(capacity: usize, rules: &[Policy]) -> Self {
        let table = |policy: &Policy| match policy {
            Policy::Rates(_) => None,
            Policy::Strikes(strikes) => Some(Table::new(*strikes, capacity)),
        };
        let strikes = rules.iter().map(table).collect();
        Self { rules: rules.to_vec(), windows: Windows::new(capacity), strikes, ids: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.windows.len() + self.strikes.iter().flatten().map(Table::len).sum::<usize>()
    }

    pub(crate) fn live_windows(&self, now: u64) -> usize {
        self.windows.live(now)
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.windows.evicted + self.strikes.iter().flatten().map(|table| table.evicted).sum::<u64>()
    }

    pub(crate) fn peek(&self, keys: &[Key], cost: u32, now: u64) -> Answer {
        answer(&self.checks(&distinct(keys), cost, now), Vec::new())
    }

    pub(crate) fn allow(&mut self, keys: &[Key], cost: u32, now: u64) -> (Answer, Ticket) {
        let keys = distinct(keys);
        let checks = self.checks(&keys, cost, now);
        let refused = answer(&checks, Vec::new());
        if cost == 0 || refused.retry_after.is_none() {
            return (refused, Ticket::default());
        }
        if !refused.allowed() {
            self.heal(&keys, now);
            return (refused, Ticket::default());
        }
        self.make_room(&keys, now);
        let (ticket, engaged) = self.commit(&keys, cost, now);
        let after = self.checks(&keys, 0, now);
        let after = after.into_iter().map(|check| Check { denial: None, ..check }).collect::<Vec<_>>();
        (answer(&after, engaged), ticket)
    }

    pub(crate) fn give_back(&mut self, ticket: &Ticket, now: u64) -> Vec<Cancelled> {
        for charge in &ticket.charges {
            self.windows.give_back(charge, now);
        }
        let strikes = ticket.strikes.iter();
        strikes.filter_map(|((rule, key), id)| Some(self.strikes[*rule].as_mut()?.cancel(*key, *id, now))).collect()
    }

    pub(crate) fn refund(&mut self, (rule, key): Key, now: u64) {
        if let Some(table) = &mut self.strikes[rule] {
            table.refund(key, now);
        }
    }

    pub(crate) fn reset(&mut self, (rule, key): Key) {
        self.windows.reset(rule, key);
        if let Some(table) = &mut self.strikes[rule] {
            table.reset(key);
        }
    }

    fn checks(&self, keys: &[Key], cost: u32, now: u64) -> Vec<Check> {
        let mut checks = Vec::new();
        for &(rule, key) in keys {
            match &self.rules[rule] {
                Policy::Rates(rates) => {
                    for (group, rate) in groups(rule, rates) {
                        let view = self.windows.view(group, key, rate, now);
                        let denial = view.denial(cost, now).map(|wait| (Reason::Limited, wait));
                        let (remaining, reset_after) = (view.remaining(now), view.reset_after(now));
                        checks.push(Check { rule, denial, remaining, reset_after });
                    }
                }
                Policy::Strikes(policy) => {
                    let table = self.strikes[rule].as_ref().expect("a rule of strikes has a table");
                    let check = |denial: Option<(Reason, u64)>, remaining, reset_after| {
                        let denial = denial.map(|(reason, wait)| (reason, Some(wait)));
                        Check { rule, denial, remaining, reset_after }
                    };
                    let reset_after = |last: u64| last + policy.window - now;
                    checks.push(match table.standing(key, now) {
                        Standing::Locked { last } => {
                            check(Some((Reason::Locked, reset_after(last))), 0, reset_after(last))
                        }
                        Standing::Counting { counted, last } => {
                            check(None, policy.threshold - counted, reset_after(last))
                        }
                        Standing::Nothing => match table.saturated(&named(keys, rule), now).filter(|_| !table.has(key))
                        {
                            Some(wait) => check(Some((Reason::Saturated, wait)), 0, 0),
                            None => check(None, policy.threshold, 0),
                        },
                    });
                }
            }
        }
        checks
    }

    fn make_room(&mut self, keys: &[Key], now: u64) {
        let mut windows: Vec<(Group, u32)> = Vec::new();
        for &(rule, key) in keys {
            if let Policy::Rates(rates) = &self.rules[rule] {
                windows.extend(groups(rule, rates).map(|(group, _)| (group, key)));
            }
            if let Some(table) = &mut self.strikes[rule] {
                table.make_room(&named(keys, rule), now);
            }
        }
        self.windows.make_room(&windows, now);
    }

    fn commit(&mut self, keys: &[Key], cost: u32, now: u64) -> (Ticket, Vec<String>) {
        self.ids += 1;
        let (mut ticket, mut engaged) = (Ticket::default(), Vec::new());
        for &(rule, key) in keys {
            if let Policy::Rates(rates) = &self.rules[rule] {
                for (group, rate) in groups(rule, rates) {
                    ticket.charges.push(self.windows.commit(group, key, rate, cost, now));
                }
            }
            if let Some(table) = &mut self.strikes[rule] {
                ticket.strikes.push(((rule, key), self.ids));
                if table.commit(key, self.ids, now) && !engaged.contains(&rule_name(rule)) {
                    engaged.push(rule_name(rule));
                }
            }
        }
        (ticket, engaged)
    }

    fn heal(&mut self, keys: &[Key], now: u64) {
        for &(rule, key) in keys {
            if let Policy::Rates(rates) = &self.rules[rule] {
                groups(rule, rates).for_each(|(group, rate)| self.windows.heal(group, key, rate, now));
            }
            if let Some(table) = &mut self.strikes[rule] {
                table.heal(key, now);
            }
        }
    }
}

fn groups(rule: usize, rates: &[Rate]) -> impl Iterator<Item = (Group, Rate)> {
    rates.iter().enumerate().map(move |(i, rate)| ((rule, i), *rate))
}

fn named(keys: &[Key], rule: usize) -> Vec<u32> {
    keys.iter().filter(|key| key.0 == rule).map(|key| key.1).collect()
}

fn distinct(keys: &[Key]) -> Vec<Key> {
    let mut once = Vec::new();
    for key in keys {
        if !once.contains(key) {
            once.push(*key);
        }
    }
    once
}

/// The longest wait speaks for the call; of equals the first. Never is longest.
fn answer(checks: &[Check], engaged: Vec<String>) -> Answer {
    let mut denial: Option<(usize, Reason, Option<u64>)> = None;
    for check in checks {
        let Some((reason, wait)) = check.denial else { continue };
        let longer = denial.is_none_or(|(.., longest)| match (longest, wait) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(longest), Some(wait)) => wait.cmp(&longest) == Ordering::Greater,
        });
        if longer {
            denial = Some((check.rule, reason, wait));
        }
    }
    let outcome = match (&denial, engaged.is_empty()) {
        (Some(_), _) => Outcome::Denied,
        (None, true) => Outcome::Allowed,
        (None, false) => Outcome::AllowedLast,
    };
    Answer {
        outcome,
        reason: denial.map(|denial| denial.1),
        rule: denial.map(|denial| rule_name(denial.0)),
        retry_after: denial.map_or(Some(0), |denial| denial.2),
        remaining: checks.iter().map(|check| check.remaining).min().expect("a call has keys"),
        reset_after: checks.iter().map(|check| check.reset_after).max().expect("a call has keys"),
        engaged,
    }
}
