//! gcra windows in a vector. A state is `tat`, the moment of fullness in units of 1/count µs, so the
//! emission interval is `period` of them and everything is a whole number.

use std::collections::HashMap;

use super::Rate;

/// One rate of one rule: the rule's index, the rate's index.
pub(crate) type Group = (usize, usize);

#[derive(Clone, Debug)]
struct Window {
    group: Group,
    key: u32,
    rate: Rate,
    tat: u128,
    born: u64,
    serial: u64,
}

impl Window {
    fn expired(&self, now: u64) -> bool {
        self.tat <= u128::from(now) * u128::from(self.rate.count)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Charge {
    group: Group,
    key: u32,
    rate: Rate,
    born: u64,
    serial: u64,
    before: Option<u128>,
    taken_at: u64,
    cost: u32,
}

/// A window as a call sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) rate: Rate,
    pub(crate) tat: u128,
    pub(crate) healed: bool,
}

impl View {
    /// None when `cost` passes now, else the wait; none inside for never.
    pub(crate) fn denial(&self, cost: u32, now: u64) -> Option<Option<u64>> {
        if cost > self.rate.count {
            return Some(None);
        }
        let new = self.tat + u128::from(cost) * u128::from(self.rate.period);
        let new = micros(new.div_ceil(self.rate.count.into()));
        (new > now + self.rate.period).then(|| Some(new - self.rate.period - now))
    }

    /// The largest cost that passes, by bisection over [`View::denial`].
    pub(crate) fn remaining(&self, now: u64) -> u32 {
        let (mut passes, mut fails) = (0, self.rate.count + 1);
        while fails - passes > 1 {
            let middle = passes + (fails - passes) / 2;
            if self.denial(middle, now).is_none() { passes = middle } else { fails = middle }
        }
        passes
    }

    pub(crate) fn reset_after(&self, now: u64) -> u64 {
        micros(self.tat.div_ceil(self.rate.count.into())) - now
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Windows {
    capacity: usize,
    all: Vec<Window>,
    ids: u64,
    pub(crate) evicted: u64,
}

impl Windows {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, all: Vec::new(), ids: 0, evicted: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn live(&self, now: u64) -> usize {
        self.all.iter().filter(|window| !window.expired(now)).count()
    }

    fn find(&self, group: Group, key: u32) -> Option<usize> {
        self.all.iter().position(|window| window.group == group && window.key == key)
    }

    pub(crate) fn view(&self, group: Group, key: u32, rate: Rate, now: u64) -> View {
        let count = u128::from(rate.count);
        let full = View { rate, tat: u128::from(now) * count, healed: false };
        match self.find(group, key).map(|at| self.all[at].tat) {
            Some(tat) if micros(tat / count) > now + 2 * rate.period => {
                View { rate, tat: u128::from(now + rate.period) * count, healed: true }
            }
            Some(tat) if tat > full.tat => View { tat, ..full },
            _ => full,
        }
    }

    /// A healed window is born anew: no charge from before is given back.
    pub(crate) fn heal(&mut self, group: Group, key: u32, rate: Rate, now: u64) {
        let view = self.view(group, key, rate, now);
        if let Some(at) = self.find(group, key).filter(|_| view.healed) {
            let id = self.id();
            let window = &mut self.all[at];
            (window.tat, window.born, window.serial) = (view.tat, id, id);
        }
    }

    /// Makes room for the named windows that are not there; the named ones stay.
    pub(crate) fn make_room(&mut self, named: &[(Group, u32)], now: u64) {
        let new = named.iter().filter(|(group, key)| self.find(*group, *key).is_none()).count();
        while self.all.len() + new > self.capacity {
            let free = || (0..self.all.len()).filter(|at| !named.contains(&(self.all[*at].group, self.all[*at].key)));
            let expired: Vec<usize> = free().filter(|at| self.all[*at].expired(now)).collect();
            let mut sizes: HashMap<Group, usize> = HashMap::new();
            self.all.iter().for_each(|window| *sizes.entry(window.group).or_default() += 1);
            let largest = free().map(|at| sizes[&self.all[at].group]).max().expect("the call fits into the capacity");
            let live: Vec<usize> = free().filter(|at| sizes[&self.all[*at].group] == largest).collect();
            self.evicted += u64::from(expired.is_empty());
            let candidates = if expired.is_empty() { live } else { expired };
            let first = candidates.into_iter().min_by(|a, b| {
                let (a, b) = (&self.all[*a], &self.all[*b]);
                let order = (a.tat * u128::from(b.rate.count)).cmp(&(b.tat * u128::from(a.rate.count)));
                order.then(a.born.cmp(&b.born))
            });
            self.all.remove(first.expect("something is free"));
        }
    }

    pub(crate) fn commit(&mut self, group: Group, key: u32, rate: Rate, cost: u32, now: u64) -> Charge {
        let view = self.view(group, key, rate, now);
        let serial = self.id();
        let tat = view.tat + u128::from(cost) * u128::from(rate.period);
        let at = self.find(group, key);
        let live = at.filter(|at| !self.all[*at].expired(now));
        let before = live.map(|_| view.tat);
        let born = live.map_or(serial, |at| self.all[at].born);
        let window = Window { group, key, rate, tat, born, serial };
        match at {
            Some(at) => self.all[at] = window,
            None => self.all.push(window),
        }
        Charge { group, key, rate, born, serial, before, taken_at: now, cost }
    }

    pub(crate) fn give_back(&mut self, charge: &Charge, now: u64) {
        let Some(at) = self.find(charge.group, charge.key) else { return };
        if self.all[at].expired(now) || self.all[at].born != charge.born {
            return;
        }
        let count = u128::from(charge.rate.count);
        let tat = if self.all[at].serial == charge.serial {
            charge.before.unwrap_or(0)
        } else {
            let elapsed = u128::from(now.saturating_sub(charge.taken_at)) * count;
            let charged = u128::from(charge.cost) * u128::from(charge.rate.period);
            self.all[at].tat - charged.saturating_sub(elapsed).min(self.all[at].tat)
        };
        (self.all[at].tat, self.all[at].serial) = (tat, self.id());
        if self.all[at].expired(now) {
            self.all.remove(at);
        }
    }

    pub(crate) fn reset(&mut self, rule: usize, key: u32) {
        self.all.retain(|window| window.group.0 != rule || window.key != key);
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }
}

fn micros(whole: u128) -> u64 {
    u64::try_from(whole).expect("at most 2^53")
}
