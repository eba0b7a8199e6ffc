//! What is received: states as bytes, and the decision that follows from them.
//!
//! Pure. The scripts send the states as they were found; the very policies that decide in memory
//! compute the answer from them. Invariant: a state that is of the wrong length, version or range
//! counts as fully spent from now, here as in the scripts.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::decision::{Decision, Outcome, Reason, Summary, Wait};
use crate::id::AttemptId;
use crate::policy::fixed_window::Window;
use crate::policy::gcra::{FullAt, Gcra, View};
use crate::policy::strikes::{Strikes, Verdict};
use crate::policy::{fixed_window, strikes};
use crate::redis::store::wire::{Kind, Wire};
use crate::time::Timestamp;

const VERSION: u8 = 1;
const RATE_BYTES: usize = 28;

/// What a call took from one window in Redis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    pub(crate) born: AttemptId,
    pub(crate) serial: AttemptId,
    pub(crate) n: u32,
    pub(crate) taken_at: u64,
    pub(crate) before: Option<FullAt>,
}

/// The charges on the windows of one key.
pub(crate) type Charges = SmallVec<[Charge; 2]>;

/// The answer to a call, read from the states that its script found.
pub(crate) struct Reading {
    pub(crate) decision: Decision,
    /// For each check the charges on its windows; empty for other kinds and for calls that wrote nothing.
    pub(crate) charges: Vec<Charges>,
    /// Which checks met a corrupt state.
    pub(crate) corrupt: SmallVec<[usize; 2]>,
}

/// The call that the states answer.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) id: AttemptId,
    pub(crate) cost: u32,
    pub(crate) now: Timestamp,
    pub(crate) commit: bool,
}

impl Reading {
    pub(crate) fn new(wires: &[&Arc<Wire>], states: &[Vec<u8>], asked: Asked) -> Self {
        let mut corrupt = SmallVec::new();
        let mut found = Vec::with_capacity(wires.len());
        for (i, (wire, state)) in wires.iter().zip(states).enumerate() {
            let mut is_corrupt = false;
            found.push(Found::read(&wire.kind, state, asked.now, &mut is_corrupt));
            if is_corrupt {
                corrupt.push(i);
            }
        }
        let mut summary = Summary::new();
        for (wire, found) in wires.iter().zip(&found) {
            found.judge(&wire.rule, asked, &mut summary);
        }
        let counts = asked.commit && !summary.is_denied();
        let charges = wires
            .iter()
            .zip(found)
            .map(|(wire, found)| found.sum_up(&wire.rule, asked, counts, &mut summary))
            .collect();
        Self { decision: summary.into_decision(), charges, corrupt }
    }
}

/// A state as a call sees it, with the policy that it was read by.
enum Found<'p> {
    Rates(&'p [Gcra], SmallVec<[(View, AttemptId); 2]>),
    Strikes(&'p strikes::Policy, Option<Strikes>),
    Window(&'p fixed_window::Policy, fixed_window::View),
}

impl<'p> Found<'p> {
    fn read(kind: &'p Kind, state: &[u8], now: Timestamp, corrupt: &mut bool) -> Self {
        match kind {
            Kind::Rates(rates) => Self::Rates(rates, read_rates(rates, state, now, corrupt)),
            Kind::Strikes(policy) => Self::Strikes(policy, read_strikes(policy, state, now, corrupt)),
            Kind::Window(policy) => Self::Window(policy, read_window(policy, state, now, corrupt)),
        }
    }

    /// Adds the denials of one check.
    fn judge<'a>(&self, rule: &'a Arc<str>, asked: Asked, summary: &mut Summary<'a>) {
        let Asked { id, cost, now, .. } = asked;
        match self {
            Self::Rates(rates, views) => {
                for ((view, _), rate) in views.iter().zip(*rates) {
                    if let Err(wait) = rate.test(view.full_at, now, cost) {
                        summary.deny(rule, Reason::Limited, wait);
                    }
                }
            }
            Self::Strikes(policy, strikes) => {
                if let Verdict::Locked { wait } = policy.test(strikes.as_ref(), Some(id), now) {
                    summary.deny(rule, Reason::Locked, Wait::Micros(wait));
                }
            }
            Self::Window(policy, view) => {
                if let Err(wait) = policy.test(view, now) {
                    summary.deny(rule, Reason::Limited, Wait::Micros(wait));
                }
            }
        }
    }

    /// Adds what one check has left after the call, and tells what the call took from it.
    fn sum_up(self, rule: &Arc<str>, asked: Asked, counts: bool, summary: &mut Summary<'_>) -> Charges {
        let Asked { id, cost, now, .. } = asked;
        let mut charges = SmallVec::new();
        match self {
            Self::Rates(rates, views) => {
                for ((view, born), rate) in views.into_iter().zip(rates) {
                    let after = if counts { rate.test(view.full_at, now, cost).ok() } else { None };
                    let left = after.unwrap_or(view.full_at);
                    summary.left(rate.remaining(left, now), left.reset_after(now));
                    if counts {
                        let fresh = view.full_at.is_past(now);
                        let born = if fresh { id } else { born };
                        let before = (!fresh).then_some(view.full_at);
                        charges.push(Charge { born, serial: id, n: cost, taken_at: now.as_micros(), before });
                    }
                }
            }
            Self::Strikes(policy, mut strikes) => {
                let engages = match policy.test(strikes.as_ref(), Some(id), now) {
                    Verdict::Repeated { engager } if counts => engager,
                    Verdict::Counts if counts => {
                        let strikes = strikes.get_or_insert_default();
                        policy.heal(strikes, now);
                        policy.commit(strikes, id, now) == Outcome::AllowedLast
                    }
                    _ => false,
                };
                if engages {
                    summary.engaged(rule);
                }
                let reset_after = strikes.as_ref().map_or(0, |strikes| policy.reset_after(strikes, now));
                summary.left(policy.remaining(strikes.as_ref()), reset_after);
            }
            Self::Window(policy, view) => {
                let window = if counts { policy.test(&view, now).unwrap_or(view.window) } else { view.window };
                let view = fixed_window::View { window, is_open: view.is_open || counts, ..view };
                summary.left(policy.remaining(view.window), policy.reset_after(&view, now));
            }
        }
        charges
    }
}

fn read_rates(rates: &[Gcra], state: &[u8], now: Timestamp, corrupt: &mut bool) -> SmallVec<[(View, AttemptId); 2]> {
    let spent = |rate: &Gcra| (View { full_at: rate.spent_from(now), healed: true }, AttemptId::default());
    if state.is_empty() {
        return rates.iter().map(|rate| (rate.load(None, now), AttemptId::default())).collect();
    }
    if state.len() != 1 + RATE_BYTES * rates.len() || state[0] != VERSION {
        *corrupt = true;
        return rates.iter().map(spent).collect();
    }
    let views = rates.iter().zip(state[1..].chunks_exact(RATE_BYTES)).map(|(rate, bytes)| {
        let part = u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        match instant(bytes) {
            Some(whole) if part < rate.q() => {
                (rate.load(Some(FullAt { whole, part }), now), AttemptId::from_slice(&bytes[12..20]))
            }
            _ => {
                *corrupt = true;
                spent(rate)
            }
        }
    });
    views.collect()
}

/// The live strikes of a state.
fn read_strikes(policy: &strikes::Policy, state: &[u8], now: Timestamp, corrupt: &mut bool) -> Option<Strikes> {
    if state.is_empty() {
        return None;
    }
    let sound = || {
        let (&[version, flag], rest) = state.split_first_chunk::<2>()?;
        let (last, ids) = (instant(rest)?, rest.get(8..)?);
        let count = ids.len() / 8;
        let fits = ids.len().is_multiple_of(8) && count <= policy.threshold as usize && count + usize::from(flag) > 0;
        (version == VERSION && flag <= 1 && fits).then_some((last, flag == 1, ids))
    };
    let Some((last, locked, ids)) = sound() else {
        *corrupt = true;
        return Some(Strikes::from_parts(now.as_micros(), true, std::iter::empty()));
    };
    let strikes = Strikes::from_parts(last, locked, ids.chunks_exact(8).map(AttemptId::from_slice));
    policy.is_live(&strikes, now).then_some(strikes)
}

fn read_window(policy: &fixed_window::Policy, state: &[u8], now: Timestamp, corrupt: &mut bool) -> fixed_window::View {
    if state.is_empty() {
        return policy.load(None, now);
    }
    let sound = || {
        let (start, count) = (instant(state.get(1..)?)?, state.get(9..13)?);
        let count = u32::from_be_bytes([count[0], count[1], count[2], count[3]]);
        (state.len() == 13 && state[0] == VERSION && count <= policy.limit).then_some(Window { start, count })
    };
    match sound() {
        Some(window) => policy.load(Some(window), now),
        None => {
            *corrupt = true;
            let window = Window { start: now.as_micros(), count: policy.limit };
            fixed_window::View { window, healed: true, is_open: true }
        }
    }
}

/// A whole number of microseconds below 2^53, at the head of `bytes`.
fn instant(bytes: &[u8]) -> Option<u64> {
    let number = f64::from_be_bytes(*bytes.first_chunk()?);
    let is_instant = (0.0..9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number within 0..2^53")]
    is_instant.then_some(number as u64)
}
