//! Counters by rule, pulled by whoever wants them.
//!
//! Invariant: no counter carries a key. An admitted call counts once per rule, a denied one once,
//! at the rule that denied.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::decision::Reason;

/// A snapshot of one limiter's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Admitted calls by rule.
    pub allowed: BTreeMap<String, u64>,
    /// Denied calls by rule and reason.
    pub denied: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Calls that the store did not answer, by what was done instead.
    pub store_failed: BTreeMap<&'static str, u64>,
    /// Live entries that were dropped to make room.
    pub evicted: u64,
    /// Entries that this process's tables hold.
    pub tracked_keys: u64,
}

impl Stats {
    /// The counters of a limiter with one rule.
    pub(crate) fn of(rule: &str, counters: &RuleCounters, evicted: u64, tracked_keys: usize) -> Self {
        let mut stats = Self { evicted, tracked_keys: tracked_keys as u64, ..Self::default() };
        counters.add_to(&mut stats, rule);
        stats
    }
}

/// The counters of one rule.
#[derive(Debug, Default)]
pub(crate) struct RuleCounters {
    allowed: AtomicU64,
    denied: [AtomicU64; REASONS.len()],
}

const REASONS: [Reason; 4] = [Reason::Limited, Reason::Locked, Reason::Saturated, Reason::Unavailable];

impl RuleCounters {
    pub(crate) fn allowed(&self) {
        self.allowed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a decision of a limiter with one rule.
    #[cfg(feature = "redis")]
    pub(crate) fn count(&self, decision: &crate::Decision) {
        match decision.reason {
            None => self.allowed(),
            Some(reason) => self.denied(reason),
        }
    }

    /// Like [`RuleCounters::allowed`], by a caller whose lock keeps all others out: half the cost of an atomic addition.
    pub(crate) fn allowed_under_lock(&self) {
        add_one_under_lock(&self.allowed);
    }

    pub(crate) fn denied_under_lock(&self, reason: Reason) {
        add_one_under_lock(&self.denied[reason as usize]);
    }

    pub(crate) fn denied(&self, reason: Reason) {
        self.denied[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what was counted under `rule`; a rule that was never asked is left out.
    pub(crate) fn add_to(&self, stats: &mut Stats, rule: &str) {
        let allowed = self.allowed.load(Ordering::Relaxed);
        if allowed > 0 {
            stats.allowed.insert(rule.to_owned(), allowed);
        }
        for (reason, count) in REASONS.into_iter().zip(&self.denied) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                stats.denied.entry(rule.to_owned()).or_default().insert(reason.as_str(), count);
            }
        }
    }
}

fn add_one_under_lock(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
