//! State in this process: locks around the tables, and the rules that a limiter has met.
//!
//! Invariant: a call takes its locks in one order (rules, window shards ascending, strike tables
//! ascending), so calls with any mix of keys cannot wait for each other in a circle.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::error::Error;
use crate::key::{Digest, Key};
use crate::policy::gcra::Gcra;
use crate::policy::strikes;
use crate::registry::{self, Registered, Registry};
use crate::rule::{Policy, Rule};
use crate::stats::Stats;
use crate::table::{Group, KeyedHash, StrikeTable, WindowTable};

/// Below this capacity one shard keeps the eviction order exact over the whole table.
const SHARDED_FROM: usize = 65_536;
const SHARDS: usize = 64;

/// Window tables, sharded by a secret hash of the key.
pub(crate) struct Shards {
    tables: Box<[Mutex<WindowTable>]>,
    hash: KeyedHash,
}

impl Shards {
    pub(crate) fn new(capacity: usize) -> Self {
        Self::with_hash(capacity, KeyedHash::new())
    }

    pub(crate) fn with_hash(capacity: usize, hash: KeyedHash) -> Self {
        let shards = if capacity < SHARDED_FROM { 1 } else { SHARDS };
        // The remainder goes to the first shards, so that the capacities add up.
        let share = |shard: usize| capacity / shards + usize::from(shard < capacity % shards);
        let tables = (0..shards).map(|shard| Mutex::new(WindowTable::new(share(shard)))).collect();
        Self { tables, hash }
    }

    pub(crate) fn add_group(&self, gcra: Gcra) {
        for table in &self.tables {
            table.lock().add_group(gcra);
        }
    }

    pub(crate) fn index_of(&self, key: &Digest) -> usize {
        // The top bits: the tables' own hashes have other secrets, so any bits will do.
        if self.tables.len() == 1 { 0 } else { (self.hash.of(key, 0) >> 58) as usize }
    }

    pub(crate) fn lock(&self, index: usize) -> MutexGuard<'_, WindowTable> {
        self.tables[index].lock()
    }

    pub(crate) fn lock_of(&self, key: &Digest) -> MutexGuard<'_, WindowTable> {
        self.lock(self.index_of(key))
    }

    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(|table| table.lock().len()).sum()
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.tables.iter().map(|table| table.lock().evicted()).sum()
    }
}

/// Where the state of a rule lives.
pub(crate) enum RuleState {
    /// One group of windows for each rate, in canonical order from this one on.
    Windows {
        first: Group,
        rates: Group,
    },
    Strikes(Mutex<StrikeTable>),
}

impl RuleState {
    pub(crate) fn groups(&self) -> std::ops::Range<Group> {
        match *self {
            Self::Windows { first, rates } => first..first + rates,
            Self::Strikes(_) => 0..0,
        }
    }

    pub(crate) fn strikes(&self) -> Option<&Mutex<StrikeTable>> {
        match self {
            Self::Windows { .. } => None,
            Self::Strikes(table) => Some(table),
        }
    }
}

/// The rules of a call's keys, in call order.
pub(crate) type Found<'a> = registry::Found<'a, RuleState>;

/// The memory of one `Limiter`.
pub(crate) struct Memory {
    capacity: usize,
    pub(crate) shards: Shards,
    rules: Registry<RuleState>,
}

impl Memory {
    pub(crate) fn new(capacity: usize) -> Self {
        Self::with_hash(capacity, KeyedHash::new())
    }

    pub(crate) fn with_hash(capacity: usize, hash: KeyedHash) -> Self {
        Self { capacity, shards: Shards::with_hash(capacity, hash), rules: Registry::default() }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds the rules of these keys, met now if they were not before.
    ///
    /// # Errors
    /// A rule has the name of another one and does not agree with it.
    pub(crate) fn rules_of<'a>(&'a self, keys: &[&Key], found: &mut Found<'a>) -> Result<(), Error> {
        self.rules.find(keys, found, |rules, rule| match rule.policy_parts() {
            Policy::Rates(rates) => {
                let first = rules.iter().map(|known| known.state.groups().end).max().unwrap_or(0);
                rates.iter().for_each(|rate| self.shards.add_group(Gcra::new(rate)));
                RuleState::Windows { first, rates: Group::try_from(rates.iter().len()).expect("at most 16") }
            }
            Policy::Strikes { threshold, window } => {
                let policy = strikes::Policy { threshold: *threshold, window: *window };
                RuleState::Strikes(Mutex::new(StrikeTable::new(policy, self.capacity)))
            }
        })
    }

    /// The strike table of a rule that was met before.
    pub(crate) fn with_strikes_of<T>(&self, rule: &Rule, act: impl FnOnce(&mut StrikeTable) -> T) {
        if let Some(table) = self.rules.known(rule).and_then(|known| known.state.strikes()) {
            act(&mut table.lock());
        }
    }

    pub(crate) fn len(&self) -> usize {
        let strikes = self.rules.iter().filter_map(|known| known.state.strikes()).map(|table| table.lock().len());
        self.shards.len() + strikes.sum::<usize>()
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats =
            Stats { evicted: self.shards.evicted(), tracked_keys: self.shards.len() as u64, ..Stats::default() };
        for known in self.rules.iter() {
            known.counters.add_to(&mut stats, known.rule.name());
            if let Some(table) = known.state.strikes() {
                let table = table.lock();
                stats.evicted += table.evicted();
                stats.tracked_keys += table.len() as u64;
            }
        }
        stats
    }
}

/// The tables of one call, locked.
pub(crate) struct Locked<'a> {
    windows: SmallVec<[(usize, MutexGuard<'a, WindowTable>); 4]>,
    strikes: SmallVec<[(usize, MutexGuard<'a, StrikeTable>); 2]>,
}

impl<'a> Locked<'a> {
    /// Locks the tables that these keys live in.
    pub(crate) fn new(memory: &'a Memory, keys: &[&Key], rules: &[&'a Arc<Registered<RuleState>>]) -> Self {
        let mut windows: SmallVec<[usize; 4]> = SmallVec::new();
        let mut strikes: SmallVec<[(usize, &Mutex<StrikeTable>); 2]> = SmallVec::new();
        for (key, known) in keys.iter().zip(rules) {
            match &known.state {
                RuleState::Windows { .. } => windows.push(memory.shards.index_of(&key.digest())),
                RuleState::Strikes(table) => strikes.push((known.position, table)),
            }
        }
        // In one order for all calls, and each table once.
        windows.sort_unstable();
        windows.dedup();
        strikes.sort_unstable_by_key(|(position, _)| *position);
        strikes.dedup_by_key(|(position, _)| *position);
        let mut locked = Self { windows: SmallVec::new(), strikes: SmallVec::new() };
        for shard in windows {
            locked.windows.push((shard, memory.shards.lock(shard)));
        }
        for (position, table) in strikes {
            locked.strikes.push((position, table.lock()));
        }
        locked
    }

    /// Which of the locked window tables is that of this shard. At most 16 keys, so a byte holds it.
    pub(crate) fn windows_at(&self, shard: usize) -> u8 {
        place(self.windows.iter().map(|(index, _)| *index), shard)
    }

    /// Which of the locked strike tables is that of this rule.
    pub(crate) fn strikes_at(&self, rule: usize) -> u8 {
        place(self.strikes.iter().map(|(position, _)| *position), rule)
    }

    pub(crate) fn windows(&mut self, at: u8) -> &mut WindowTable {
        &mut self.windows[usize::from(at)].1
    }

    pub(crate) fn strikes(&mut self, at: u8) -> &mut StrikeTable {
        &mut self.strikes[usize::from(at)].1
    }
}

fn place(locked: impl Iterator<Item = usize>, wanted: usize) -> u8 {
    (0..).zip(locked).find(|(_, index)| *index == wanted).expect("every table of the call is locked").0
}
