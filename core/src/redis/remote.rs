//! Asking a store, and what to answer when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::Value;

use crate::decision::{Decision, Outcome, Reason};
use crate::id::AttemptId;
use crate::input::OnError;
use crate::key::Digest;
use crate::redis::RedisStore;
use crate::stats::Stats;
use crate::store::redis::{Act, Asked, Event, Reading, Request, Store, Trouble, Wire};
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

impl Call {
    /// A call that counts, under an id that no other call has. Cost 0 only asks.
    pub(crate) fn counting(cost: u32, now: Option<Timestamp>) -> Self {
        Self { id: AttemptId::random(), cost, now, commit: cost > 0 }
    }

    pub(crate) fn peeking(cost: u32, now: Option<Timestamp>) -> Self {
        Self { commit: false, ..Self::counting(cost, now) }
    }
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

    /// Decides in the store, in one round trip; or says how to answer without it.
    pub(crate) async fn decide(&self, checks: &[(&Arc<Wire>, Digest)], call: Call) -> Result<Reading, OnError> {
        let now = self.store.instant(call.now);
        // A cost that is never admitted writes nothing, heals included.
        let commit = call.commit && checks.iter().all(|(wire, _)| wire.ever_admits(call.cost));
        let mut request = Request::decide(now, commit, Store::least_ttl(now), call.id);
        for (wire, digest) in checks {
            request.push(wire.key(digest), wire.argument(call.cost));
        }
        let answer = self.store.run(&self.store.scripts.decide, &request).await;
        let reading = answer.and_then(|value| read(value, checks, call, commit));
        let reading = reading.map_err(|trouble| self.fails(&trouble))?;
        if reading.corrupt > 0 {
            let rule = checks[0].0.rule.to_string();
            self.store.tell(Event::CorruptState { rule });
        }
        Ok(reading)
    }

    /// Settles in the store, in one round trip; none if it was not reached. No acts are no trip.
    pub(crate) async fn settle(&self, acts: &[(String, Act<'_>)], now: Option<Timestamp>) -> Option<Vec<i64>> {
        if acts.is_empty() {
            return Some(Vec::new());
        }
        let now = self.store.instant(now);
        let mut request = Request::settle(now, Store::least_ttl(now), AttemptId::random());
        for (key, act) in acts {
            request.push(key.clone(), act.argument());
        }
        match self.store.run(&self.store.scripts.settle, &request).await {
            Ok(Value::Array(answers)) => answers.iter().skip(1).map(integer).collect(),
            Ok(_) => None,
            Err(trouble) => {
                self.fails(&trouble);
                None
            }
        }
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

    fn fails(&self, _trouble: &Trouble) -> OnError {
        self.failed[self.on_error as usize].fetch_add(1, Ordering::Relaxed);
        self.on_error
    }
}

/// In the order of [`OnError`].
const MODES: [&str; 3] = ["local", "open", "closed"];

fn read(value: Value, checks: &[(&Arc<Wire>, Digest)], call: Call, commit: bool) -> Result<Reading, Trouble> {
    let nonsense = || Trouble::nonsense("an answer that is not one of the script's");
    let Value::Array(answers) = value else { return Err(nonsense()) };
    let mut answers = answers.into_iter();
    let allowed = answers.next().and_then(|answer| integer(&answer)).ok_or_else(nonsense)?;
    let now = answers.next().and_then(|answer| integer(&answer)).and_then(|now| u64::try_from(now).ok());
    let now = now.and_then(|now| Timestamp::from_micros(now).ok()).ok_or_else(nonsense)?;
    let states: Vec<Vec<u8>> = answers
        .map(|answer| match answer {
            Value::BulkString(state) => Some(state),
            _ => None,
        })
        .collect::<Option<_>>()
        .filter(|states: &Vec<_>| states.len() == checks.len())
        .ok_or_else(nonsense)?;
    let wires: Vec<&Arc<Wire>> = checks.iter().map(|(wire, _)| *wire).collect();
    let reading = Reading::new(&wires, &states, Asked { id: call.id, cost: call.cost, now, commit });
    // The script has decided; if the policies here see it otherwise, neither is to be trusted.
    if reading.decision.allowed() == (allowed == 1) { Ok(reading) } else { Err(nonsense()) }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}
