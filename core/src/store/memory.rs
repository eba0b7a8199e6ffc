//! State in this process: locks around the tables, and the rules that a limiter has met.
//!
//! Invariant: a call takes its locks in one order (rules, window shards ascending, strike tables
//! ascending), so calls with any mix of keys cannot wait for each other in a circle.

use parking_lot::{Mutex, MutexGuard, RwLockReadGuard};
use smallvec::SmallVec;

use crate::error::Error;
use crate::key::{Digest, Key};
use crate::policy::gcra::Gcra;
use crate::policy::strikes;
use crate::registry::{self, Positions, Registered, Registry};
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
        let shards = if capacity < SHARDED_FROM { 1 } else { SHARDS };
        // The remainder goes to the first shards, so that the capacities add up.
        let share = |shard: usize| capacity / shards + usize::from(shard < capacity % shards);
        let tables = (0..shards).map(|shard| Mutex::new(WindowTable::new(share(shard)))).collect();
        Self { tables, hash: KeyedHash::new() }
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
}

pub(crate) type Rules = registry::Rules<RuleState>;

/// The memory of one `Limiter`.
pub(crate) struct Memory {
    capacity: usize,
    pub(crate) shards: Shards,
    rules: Registry<RuleState>,
}

impl Memory {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, shards: Shards::new(capacity), rules: Registry::default() }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The rules of these keys, met now if they were not before.
    ///
    /// # Errors
    /// A rule has the name of another one and does not agree with it.
    pub(crate) fn rules_of(&self, keys: &[&Key]) -> Result<(RwLockReadGuard<'_, Rules>, Positions), Error> {
        self.rules.of(keys, |rules, rule| match rule.policy_parts() {
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
        let rules = self.rules.read();
        let position = rules.position(rule).and_then(Result::ok);
        if let Some(table) = position.and_then(|position| strike_table(rules.get(position))) {
            act(&mut table.lock());
        }
    }

    pub(crate) fn len(&self) -> usize {
        let rules = self.rules.read();
        let strikes = rules.iter().filter_map(|registered| strike_table(registered)).map(|table| table.lock().len());
        self.shards.len() + strikes.sum::<usize>()
    }

    pub(crate) fn stats(&self) -> Stats {
        let rules = self.rules.read();
        let mut stats =
            Stats { evicted: self.shards.evicted(), tracked_keys: self.shards.len() as u64, ..Stats::default() };
        for registered in rules.iter() {
            registered.counters.add_to(&mut stats, registered.rule.name());
        }
        for table in rules.iter().filter_map(|registered| strike_table(registered)) {
            let table = table.lock();
            stats.evicted += table.evicted();
            stats.tracked_keys += table.len() as u64;
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
    /// Locks the tables that these keys, whose rules stand at `positions`, live in.
    pub(crate) fn new(memory: &'a Memory, rules: &'a Rules, keys: &[&Key], positions: &[usize]) -> Self {
        let mut shards: SmallVec<[usize; 4]> = SmallVec::new();
        let mut tables: SmallVec<[usize; 4]> = SmallVec::new();
        for (key, position) in keys.iter().zip(positions) {
            match rules.get(*position).state {
                RuleState::Windows { .. } => shards.push(memory.shards.index_of(&key.digest())),
                RuleState::Strikes(_) => tables.push(*position),
            }
        }
        ascending(&mut shards);
        ascending(&mut tables);
        let windows = shards.into_iter().map(|shard| (shard, memory.shards.lock(shard))).collect();
        let strikes = tables.into_iter().filter_map(|i| Some((i, strike_table(rules.get(i))?.lock()))).collect();
        Self { windows, strikes }
    }

    /// Where in [`Locked::windows`] the table of this shard stands.
    pub(crate) fn windows_at(&self, shard: usize) -> usize {
        self.windows.iter().position(|(index, _)| *index == shard).expect("every shard of the call is locked")
    }

    /// Where in [`Locked::strikes`] the table of this rule stands.
    pub(crate) fn strikes_at(&self, rule: usize) -> usize {
        self.strikes.iter().position(|(index, _)| *index == rule).expect("every strike table of the call is locked")
    }

    pub(crate) fn windows(&mut self, at: usize) -> &mut WindowTable {
        &mut self.windows[at].1
    }

    pub(crate) fn strikes(&mut self, at: usize) -> &mut StrikeTable {
        &mut self.strikes[at].1
    }
}

fn strike_table(registered: &Registered<RuleState>) -> Option<&Mutex<StrikeTable>> {
    match &registered.state {
        RuleState::Windows { .. } => None,
        RuleState::Strikes(table) => Some(table),
    }
}

fn ascending(indices: &mut SmallVec<[usize; 4]>) {
    indices.sort_unstable();
    indices.dedup();
}
