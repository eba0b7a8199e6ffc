//! Decisions as numbers in the slots; `../lib/limiters/decision.ts` makes the object.

use std::time::Duration;

use doorkeep::{Decision, Error, Key, Reason};
use napi::sys;

use crate::failure::Result;
use crate::js::UNDEFINED;
use crate::realm::Realm;
use crate::slots::{Slot, Slots};

/// Writes a decision about `keys`, or about others whose rules the realm also knows.
pub(crate) fn write(realm: &Realm, decision: &Decision, keys: &[Key]) -> Result {
    put(realm.slots, decision, |name| {
        // The rule of a key of the call is at hand; an attempt may answer with a rule of an earlier call.
        let at_hand = keys.iter().position(|key| key.rule().name() == name).map(|index| realm.slots.key(index)[0]);
        at_hand.or_else(|| realm.named(name)).map_or(-1.0, f64::from)
    });
    Ok(UNDEFINED)
}

/// Writes a decision that arrived later than its call.
pub(crate) fn write_later(_env: sys::napi_env, realm: &Realm, decision: Result<Decision, Error>) -> Result {
    write(realm, &decision?, &[])
}

/// Writes the decision of a limiter that has only one rule, its own.
pub(crate) fn write_single(realm: &Realm, decision: &Decision) -> Result {
    put(realm.slots, decision, |_| 0.0);
    Ok(UNDEFINED)
}

/// Writes the answer yes or no.
#[inline]
pub(crate) fn put_flag(realm: &Realm, yes: bool) -> Result {
    realm.slots.put(Slot::Outcome, f64::from(u8::from(yes)));
    Ok(UNDEFINED)
}

/// Writes a wait; -1 for none.
pub(crate) fn put_wait(realm: &Realm, wait: Option<Duration>) -> Result {
    realm.slots.put(Slot::RetryAfter, wait.map_or(-1.0, micros));
    Ok(UNDEFINED)
}

fn put(slots: Slots, decision: &Decision, rule: impl Fn(&str) -> f64) {
    slots.put(Slot::Outcome, f64::from(decision.outcome as u8));
    slots.put(Slot::Reason, decision.reason.map_or(0.0, |reason| f64::from(reason_number(reason))));
    slots.put(Slot::Rule, decision.rule.as_deref().map_or(-1.0, &rule));
    slots.put(Slot::RetryAfter, decision.retry_after.map_or(-1.0, micros));
    slots.put(Slot::RetryAfterSeconds, decision.retry_after_seconds().map_or(-1.0, seconds));
    slots.put(Slot::Remaining, f64::from(decision.remaining));
    slots.put(Slot::ResetAfter, micros(decision.reset_after));
    slots.put(Slot::Degraded, f64::from(u8::from(decision.degraded)));
    slots.put(Slot::Engaged, as_number(decision.engaged.len()));
    for (index, name) in decision.engaged.iter().enumerate() {
        slots.put_engaged(index, rule(name));
    }
}

/// Converts to whole microseconds. Exact: the core's durations stay below 2^53 of them.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs() as f64 * 1e6 + f64::from(duration.subsec_micros())
}

/// Converts a count. Exact: nothing here counts to 2^53.
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
        // The enum is open to more reasons. One that this package cannot name still means that nothing was decided.
        _ => 4,
    }
}
