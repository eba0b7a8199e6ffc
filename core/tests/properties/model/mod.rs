//! A slow model of the limiters, written from `docs/semantics.md` and not from the code.
//!
//! Knows nothing of the library but its words for answers. Invariant: exact by brute force, with
//! vectors that are scanned and fractions over the count, so there is nothing clever to get wrong.

mod fixed_windows;
mod limiter;
mod strikes;
mod windows;

use doorkeep::{Decision, Outcome, Reason};

pub(crate) use fixed_windows::FixedWindows;
pub(crate) use limiter::{Limiter, Ticket};

/// What a rule decides by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// In canonical order: period ascending, then count.
    Rates(Vec<Rate>),
    Strikes(Strikes),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) count: u32,
    pub(crate) period: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strikes {
    pub(crate) threshold: u32,
    pub(crate) window: u64,
}

/// A key of a call: which rule, which value.
pub(crate) type Key = (usize, u32);

/// A decision in comparable form; `retry_after` is none for never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<Reason>,
    pub(crate) rule: Option<String>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) remaining: u32,
    pub(crate) reset_after: u64,
    pub(crate) engaged: Vec<String>,
}

impl Answer {
    pub(crate) fn allowed(&self) -> bool {
        self.outcome.is_allowed()
    }
}

impl From<&Decision> for Answer {
    fn from(decision: &Decision) -> Self {
        let micros = |duration: std::time::Duration| u64::try_from(duration.as_micros()).expect("bounded");
        Self {
            outcome: decision.outcome,
            reason: decision.reason,
            rule: decision.rule.as_ref().map(ToString::to_string),
            retry_after: decision.retry_after.map(micros),
            remaining: decision.remaining,
            reset_after: micros(decision.reset_after),
            engaged: decision.engaged.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The name of the rule at an index, in the model and in the tests.
pub(crate) fn rule_name(rule: usize) -> String {
    format!("rule-{rule}")
}
