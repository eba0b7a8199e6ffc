//! Asking a store, and what to answer when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::Value;

use crate::decision::{Decision, OnError, Outcome, Reason};
use crate::id::AttemptId;
use crate::key::Digest;
use crate::redis::RedisStore;
use crate::redis::store::{Act, Asked, Event, Reading, Request, Store, Wire};
use crate::stats::Stats;
use crate::time::Timestamp;

/// The store of one limiter, with the limiter's own answer to its failure.
pub(crate) struct Remote {
    store: Arc<Store>,
    pub(crate) on_error: OnError,
    failed: [AtomicU64; 3],
}

/// One call on several keys in the store.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) id: AttemptId,
    pub(crate) cost: u32,
    pub(crate) now: Option<Timestamp>,
    pub(crate) commit: bool,
}

impl Remote {
    pub(crate) fn new(store: &RedisStore, on_error: Option<OnError>) -> Self {
        let on_error = on_error.unwrap_or(store.0.options.on_error);
        Self { store: Arc::clone(&store.0), on_error, failed: Default::default() }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.store.options.prefix
    }

    /// How often the server has come back: local state from before is void.
    pub(crate) fn returns(&self) -> u64 {
        self.store.returns()
    }

    /// A call that counts, under an id that no other call has. Cost 0 only asks.
    pub(crate) fn counting(&self, cost: u32, now: Option<Timestamp>) -> Call {
        Call { id: self.store.next_id(), cost, now, commit: cost > 0 }
    }

    pub(crate) fn peeking(&self, cost: u32, now: Option<Timestamp>) -> Call {
        Call { commit: false, ..self.counting(cost, now) }
    }

    /// Decides in the store, in one round trip; or says how to answer without it.
    pub(crate) async fn decide(&self, checks: &[(&Arc<Wire>, Digest)], call: Call) -> Result<Reading, OnError> {
        let now = self.store.instant(call.now);
        // A cost that is never admitted writes nothing, heals included.
        let commit = call.commit && checks.iter().all(|(wire, _)| wire.ever_admits(call.cost));
        let mut request = Request::decide(now, commit, Store::least_ttl(now), call.id);
        for (wire, digest) in checks {
            request.push(wire.key(digest), wire.argument(call.cost));
        }
        let read = |value| read(value, checks, call, commit);
        let reading = self.store.run(&self.store.scripts.decide, &request, read).await.map_err(|_| self.fails())?;
        // Told by the call that mends it, once.
        for check in reading.corrupt.iter().filter(|_| commit) {
            self.store.tell(Event::CorruptState { rule: checks[*check].0.rule.to_string() });
        }
        Ok(reading)
    }

    /// Settles in the store, in one round trip; none if it was not reached. No acts are no trip.
    pub(crate) async fn settle(&self, acts: &[(String, Act<'_>)], now: Option<Timestamp>) -> Option<Vec<i64>> {
        if acts.is_empty() {
            return Some(Vec::new());
        }
        let now = self.store.instant(now);
        let mut request = Request::settle(now, Store::least_ttl(now), self.store.next_id());
        for (key, act) in acts {
            request.push(key.clone(), act.argument());
        }
        let read = |value| match value {
            Value::Array(answers) if answers.len() == acts.len() + 1 => answers.iter().skip(1).map(integer).collect(),
            _ => None,
        };
        self.store.run(&self.store.scripts.settle, &request, read).await.map_err(|_| self.fails()).ok()
    }

    /// The answer when the store fails closed or open.
    pub(crate) fn without_store(&self, open_remaining: u32) -> Decision {
        let is_open = self.on_error == OnError::Open;
        Decision {
            outcome: if is_open { Outcome::Allowed } else { Outcome::Denied },
            reason: (!is_open).then_some(Reason::Unavailable),
            rule: None,
            retry_after: is_open.then_some(Duration::ZERO),
            remaining: if is_open { open_remaining } else { 0 },
            reset_after: Duration::ZERO,
            degraded: is_open,
            engaged: Vec::new(),
        }
    }

    pub(crate) fn add_to(&self, stats: &mut Stats) {
        for (mode, count) in MODES.into_iter().zip(&self.failed) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                stats.store_failed.insert(mode, count);
            }
        }
    }

    fn fails(&self) -> OnError {
        self.failed[self.on_error as usize].fetch_add(1, Ordering::Relaxed);
        self.on_error
    }
}

/// In the order of [`OnError`].
const MODES: [&str; 3] = ["local", "open", "closed"];

/// Reads the answer of decide.lua.
fn read(value: Value, checks: &[(&Arc<Wire>, Digest)], call: Call, commit: bool) -> Option<Reading> {
    let Value::Array(answers) = value else { return None };
    let mut answers = answers.into_iter();
    let allowed = integer(&answers.next()?)?;
    let now = Timestamp::from_micros(u64::try_from(integer(&answers.next()?)?).ok()?).ok()?;
    let states = answers.map(|answer| match answer {
        Value::BulkString(state) => Some(state),
        _ => None,
    });
    let states: Vec<Vec<u8>> = states.collect::<Option<_>>()?;
    if states.len() != checks.len() {
        return None;
    }
    let wires: Vec<&Arc<Wire>> = checks.iter().map(|(wire, _)| *wire).collect();
    let reading = Reading::new(&wires, &states, Asked { id: call.id, cost: call.cost, now, commit });
    // The script has decided; if the policies here see it otherwise, neither is to be trusted.
    (reading.decision.allowed() == (allowed == 1)).then_some(reading)
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
