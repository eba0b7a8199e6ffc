//! A decision as numbers in the slots; `../lib/decision.ts` makes the object.

use std::time::Duration;

use doorkeep::{Decision, Reason};

use crate::slots::{Place, Slots};

/// Writes `decision`. `position` finds the key of the call whose rule has a name.
pub(crate) fn write(slots: Slots, decision: &Decision, position: impl Fn(&str) -> Option<usize>) {
    let place = |name: &str| position(name).map_or(-1.0, as_number);
    slots.put(Place::Outcome, f64::from(decision.outcome as u8));
    slots.put(Place::Reason, decision.reason.map_or(0.0, |reason| f64::from(reason_number(reason))));
    slots.put(Place::Rule, decision.rule.as_deref().map_or(-1.0, place));
    slots.put(Place::RetryAfter, decision.retry_after.map_or(-1.0, micros));
    slots.put(Place::RetryAfterSeconds, decision.retry_after_seconds().map_or(-1.0, seconds));
    slots.put(Place::Remaining, f64::from(decision.remaining));
    slots.put(Place::ResetAfter, micros(decision.reset_after));
    slots.put(Place::Degraded, f64::from(u8::from(decision.degraded)));
    slots.put(Place::Engaged, as_number(decision.engaged.len()));
    for (index, name) in decision.engaged.iter().enumerate() {
        slots.put_engaged(index, place(name));
    }
}

/// The decision of a limiter that has one key and one rule.
pub(crate) fn write_single(slots: Slots, decision: &Decision) {
    write(slots, decision, |_| Some(0));
}

/// Whole microseconds. Exact: the core's durations stay below 2^53 of them.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_micros() as f64
}

/// A count. Exact: nothing here counts to 2^53.
pub(crate) fn as_number(count: usize) -> f64 {
    count as f64
}

fn seconds(seconds: u64) -> f64 {
    seconds as f64
}

fn reason_number(reason: Reason) -> u8 {
    match reason {
        Reason::Limited => 1,
        Reason::Locked => 2,
        Reason::Saturated => 3,
        // The enum is open to further reasons; one that this package cannot name still says that nothing was decided.
        _ => 4,
    }
}
