//! One attempt on several keys over a store: reserved before the credential is checked, settled after.

use parking_lot::Mutex;

use crate::bounds::check_key_count;
use crate::decision::Decision;
use crate::error::Error;
use crate::key::Key;
use crate::redis::limiter::Counted;
use crate::redis::store::{Act, Kind};
use crate::redis::{Limiter, or_now};
use crate::settlement::{self, Settlement};
use crate::time::Timestamp;

/// An attempt that was counted on all of its keys, or denied; see [`crate::Attempt`].
///
/// What was counted in the store is given back there, what was counted here during an outage here.
pub struct Attempt {
    limiter: Limiter,
    state: Mutex<State>,
}

struct State {
    decision: Decision,
    keys: Vec<Key>,
    counted: Vec<Counted>,
    is_open: bool,
}

impl Attempt {
    pub(crate) fn new(limiter: Limiter, keys: &[Key], decision: Decision, counted: Counted) -> Self {
        let is_open = decision.allowed();
        let keys = if is_open { keys.to_vec() } else { Vec::new() };
        Self { limiter, state: Mutex::new(State { decision, keys, counted: vec![counted], is_open }) }
    }

    /// The decision that the attempt was made with.
    pub fn decision(&self) -> Decision {
        self.state.lock().decision.clone()
    }

    /// Whether the attempt may proceed.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.state.lock().decision.allowed()
    }

    /// Whether a key is one of this attempt's.
    #[must_use]
    pub fn holds(&self, key: &Key) -> bool {
        self.state.lock().holds(key)
    }

    /// Counts further keys under the same attempt; see [`crate::Attempt::extend`].
    ///
    /// # Errors
    /// As for [`crate::Limiter::decide`].
    pub async fn extend(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Result<Decision, Error> {
        check_key_count(keys.len())?;
        let new: Vec<Key> = {
            let mut state = self.state.lock();
            settlement::note_addresses(&mut state.keys, keys);
            let new: Vec<Key> = keys.iter().filter(|key| !state.holds(key)).cloned().collect();
            if new.is_empty() || !state.decision.allowed() {
                return Ok(state.decision.again());
            }
            new
        };
        let (decision, counted) = self.limiter.reserve(&new, cost, now).await?;
        if decision.allowed() {
            let mut state = self.state.lock();
            state.keys.extend(new);
            state.counted.push(counted);
        }
        Ok(decision)
    }

    /// Settles a success; see [`crate::Attempt::success`]. False also if the store was not reached.
    ///
    /// # Errors
    /// As for [`crate::Attempt::success`]. The attempt is not settled then.
    pub async fn success(&self, settlement: &Settlement<'_>, now: Option<Timestamp>) -> Result<bool, Error> {
        let (forgiven, counted) = {
            let mut state = self.state.lock();
            if !state.is_open {
                return Ok(false);
            }
            settlement::check(settlement, &state.keys)?;
            state.is_open = false;
            let forgiven: Vec<Key> = state.keys.iter().filter(|key| settlement.forgives(key)).cloned().collect();
            (forgiven, std::mem::take(&mut state.counted))
        };
        let is_returned = |key: &Key| settlement.give_back.contains(&key.rule().name());
        self.settle(&counted, is_returned, &forgiven, now).await
    }

    /// Settles a failure, without asking the store; see [`crate::Attempt::failure`].
    pub fn failure(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_open)
    }

    /// Gives back everything. True if this call settled the attempt and the store was reached.
    pub async fn cancel(&self, now: Option<Timestamp>) -> bool {
        self.give_back(|_, _| true, now).await
    }

    /// Gives back everything but what was counted on an address alone; see [`crate::Attempt::release`]. True if this
    /// call settled the attempt and the store was reached.
    pub async fn release(&self, now: Option<Timestamp>) -> bool {
        self.give_back(|held, key| !settlement::is_address(held, key), now).await
    }

    async fn give_back(&self, is_returned: impl Fn(&[Key], &Key) -> bool, now: Option<Timestamp>) -> bool {
        let (held, counted) = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.is_open) {
                return false;
            }
            (state.keys.clone(), std::mem::take(&mut state.counted))
        };
        self.settle(&counted, |key| is_returned(&held, key), &[], now).await.unwrap_or(false)
    }

    async fn settle(
        &self,
        counted: &[Counted],
        is_returned: impl Fn(&Key) -> bool,
        forgiven: &[Key],
        now: Option<Timestamp>,
    ) -> Result<bool, Error> {
        let mut acts = Vec::new();
        for counted in counted {
            match counted {
                Counted::Remote { id, keys } => {
                    for ((known, key), charges) in keys.iter().filter(|((_, key), _)| is_returned(key)) {
                        let act = match &known.state.kind {
                            Kind::Rates(rates) => Act::GiveBack { rates, charges },
                            Kind::Strikes(policy) => Act::Cancel { policy, id: *id },
                            Kind::Window(_) => continue,
                        };
                        acts.push((known.state.key(&key.digest()), act));
                    }
                }
                Counted::Local(attempt) => {
                    attempt.give_back(|_, key| is_returned(key), or_now(now));
                }
                Counted::Nothing => {}
            }
        }
        self.limiter.forget(&forgiven.iter().collect::<Vec<_>>(), acts, now).await
    }
}

impl State {
    fn holds(&self, key: &Key) -> bool {
        self.keys.iter().any(|held| held.counts_as(key))
    }
}
