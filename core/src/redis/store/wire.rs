//! What is sent: names of keys, policies and acts as the scripts read them.
//!
//! Pure. Invariant: the layout here is the one in the heads of `decide.lua` and `settle.lua`.

use std::sync::Arc;

use crate::id::AttemptId;
use crate::key::Digest;
use crate::policy::gcra::Gcra;
use crate::policy::{fixed_window, strikes};
use crate::redis::store::reading::Charge;
use crate::rule::{self, Rule};

/// A policy that state in Redis may stand under.
#[derive(Debug)]
pub(crate) enum Kind {
    Rates(Box<[Gcra]>),
    Strikes(strikes::Policy),
    Window(fixed_window::Policy),
}

/// A policy under its name, prepared for many calls.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) rule: Arc<str>,
    pub(crate) kind: Kind,
    /// `<prefix>:{<rule>:`, before the digest.
    head: String,
    /// `}:<policy>`, after it.
    tail: String,
    /// The policy as an argument of decide.lua, for an attempt of cost 1.
    for_one: Vec<u8>,
}

impl Wire {
    pub(crate) fn of_rule(prefix: &str, rule: &Rule) -> Self {
        let kind = match rule.policy_parts() {
            rule::Policy::Rates(rates) => Kind::Rates(rates.iter().map(Gcra::new).collect()),
            rule::Policy::Strikes { threshold, window } => {
                Kind::Strikes(strikes::Policy { threshold: *threshold, window: *window })
            }
        };
        Self::new(prefix, Arc::clone(rule.shared_name()), &rule.policy(), kind)
    }

    pub(crate) fn new(prefix: &str, rule: Arc<str>, policy: &str, kind: Kind) -> Self {
        let (head, tail) = (format!("{prefix}:{{{rule}:"), format!("}}:{policy}"));
        let for_one = kind.argument(1);
        Self { rule, kind, head, tail, for_one }
    }

    /// The name of a key: of constant length for a rule, and free of the value.
    pub(crate) fn key(&self, digest: &Digest) -> String {
        format!("{}{digest}{}", self.head, self.tail)
    }

    /// Whether an attempt of this cost is ever admitted.
    pub(crate) fn ever_admits(&self, cost: u32) -> bool {
        match &self.kind {
            Kind::Rates(rates) => rates.iter().all(|rate| cost <= rate.count()),
            Kind::Strikes(_) | Kind::Window(_) => true,
        }
    }

    /// How many gcra windows a key has.
    pub(crate) fn windows(&self) -> usize {
        match &self.kind {
            Kind::Rates(rates) => rates.len(),
            Kind::Strikes(_) | Kind::Window(_) => 0,
        }
    }

    /// What a key holds when it is full.
    pub(crate) fn smallest_count(&self) -> u32 {
        match &self.kind {
            Kind::Rates(rates) => rates.iter().map(Gcra::count).min().unwrap_or(0),
            Kind::Strikes(policy) => policy.threshold,
            Kind::Window(policy) => policy.limit,
        }
    }

    /// The policy as an argument of decide.lua.
    pub(crate) fn argument(&self, cost: u32) -> std::borrow::Cow<'_, [u8]> {
        if cost == 1 { self.for_one.as_slice().into() } else { self.kind.argument(cost).into() }
    }
}

impl Kind {
    fn argument(&self, cost: u32) -> Vec<u8> {
        match self {
            Self::Rates(rates) => {
                let numbers = rates.iter().flat_map(|rate| {
                    let (whole, part) = rate.charge(cost);
                    [rate.period(), u64::from(rate.q()), whole, u64::from(part)]
                });
                packed(b'g', std::iter::once(rates.len() as u64).chain(numbers))
            }
            Self::Strikes(policy) => packed(b's', [u64::from(policy.threshold), policy.window.as_micros()]),
            Self::Window(policy) => packed(b'w', [u64::from(policy.limit), policy.window.as_micros()]),
        }
    }
}

/// One act of settle.lua.
pub(crate) enum Act<'a> {
    Forget,
    Cancel { policy: &'a strikes::Policy, id: AttemptId },
    Refund { policy: &'a strikes::Policy },
    GiveBack { rates: &'a [Gcra], charges: &'a [Charge] },
}

impl Act<'_> {
    pub(crate) fn argument(&self) -> Vec<u8> {
        match self {
            Self::Forget => vec![b'f'],
            Self::Cancel { policy, id } => {
                let mut bytes = packed(b'c', [policy.window.as_micros()]);
                bytes.extend_from_slice(&id.to_bytes());
                bytes
            }
            Self::Refund { policy } => packed(b'r', [policy.window.as_micros()]),
            Self::GiveBack { rates, charges } => {
                let mut bytes = packed(b'g', [rates.len() as u64]);
                for (rate, charge) in rates.iter().zip(*charges) {
                    let (whole, part) = rate.charge(charge.n);
                    let (before, before_part) = charge.before.map_or((-1.0, 0), |at| (exact(at.whole), at.part));
                    let numbers = [exact(u64::from(rate.q())), exact(whole), f64::from(part), exact(charge.taken_at)];
                    for number in numbers.into_iter().chain([before, f64::from(before_part)]) {
                        bytes.extend_from_slice(&number.to_be_bytes());
                    }
                    bytes.extend_from_slice(&charge.born.to_bytes());
                    bytes.extend_from_slice(&charge.serial.to_bytes());
                }
                bytes
            }
        }
    }
}

/// A kind byte and big-endian doubles.
fn packed(kind: u8, numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = vec![kind];
    for number in numbers {
        bytes.extend_from_slice(&exact(number).to_be_bytes());
    }
    bytes
}

/// A number below 2^53 as the double that Lua computes with.
#[allow(clippy::cast_precision_loss, reason = "every number here is below 2^53")]
fn exact(number: u64) -> f64 {
    debug_assert!(number < 1 << 53);
    number as f64
}
