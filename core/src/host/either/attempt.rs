//! An attempt in memory or over a store.

use std::sync::Arc;

use crate::decision::Decision;
use crate::error::Error;
use crate::host::either::{Answer, or_now};
use crate::key::Key;
use crate::memory;
use crate::redis;
use crate::settlement::Settlement;
use crate::time::Timestamp;

/// A [`crate::Attempt`] or a [`redis::Attempt`]. Cheap to clone; clones are the same attempt.
#[derive(Clone)]
pub struct Attempt(Inner);

#[derive(Clone)]
enum Inner {
    Memory(Arc<memory::Attempt>),
    Store(Arc<redis::Attempt>),
}

impl Attempt {
    pub(super) fn memory(attempt: memory::Attempt) -> Self {
        Self(Inner::Memory(Arc::new(attempt)))
    }

    pub(super) fn store(attempt: redis::Attempt) -> Self {
        Self(Inner::Store(Arc::new(attempt)))
    }

    /// The decision that the attempt was made with.
    pub fn decision(&self) -> Decision {
        match &self.0 {
            Inner::Memory(attempt) => attempt.decision(),
            Inner::Store(attempt) => attempt.decision(),
        }
    }

    /// Whether the attempt may proceed.
    #[must_use]
    pub fn allowed(&self) -> bool {
        match &self.0 {
            Inner::Memory(attempt) => attempt.allowed(),
            Inner::Store(attempt) => attempt.allowed(),
        }
    }

    /// Whether a key is part of this attempt.
    #[must_use]
    pub fn holds(&self, key: &Key) -> bool {
        match &self.0 {
            Inner::Memory(attempt) => attempt.holds(key),
            Inner::Store(attempt) => attempt.holds(key),
        }
    }

    /// Like [`crate::Attempt::extend`].
    pub fn extend(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Answer<Result<Decision, Error>> {
        match &self.0 {
            Inner::Memory(attempt) => Answer::Now(attempt.extend(keys, cost, or_now(now))),
            Inner::Store(attempt) => {
                let (attempt, keys) = (Arc::clone(attempt), keys.to_vec());
                Answer::later(async move { attempt.extend(&keys, cost, now).await })
            }
        }
    }

    /// Like [`crate::Attempt::success`]; also false if the store was not reached.
    pub fn success(&self, settlement: &Settlement<'_>, now: Option<Timestamp>) -> Answer<Result<bool, Error>> {
        match &self.0 {
            Inner::Memory(attempt) => Answer::Now(attempt.success(settlement, or_now(now))),
            Inner::Store(attempt) => {
                let attempt = Arc::clone(attempt);
                let lists = [settlement.forgive, settlement.give_back, settlement.forgive_address];
                let lists = lists.map(|rules| rules.iter().map(ToString::to_string).collect::<Vec<String>>());
                Answer::later(async move {
                    let [forgive, give_back, forgive_address] =
                        lists.each_ref().map(|rules| rules.iter().map(String::as_str).collect::<Vec<_>>());
                    let settlement =
                        Settlement { forgive: &forgive, give_back: &give_back, forgive_address: &forgive_address };
                    attempt.success(&settlement, now).await
                })
            }
        }
    }

    /// Like [`crate::Attempt::failure`]. The store is not called.
    pub fn failure(&self) -> bool {
        match &self.0 {
            Inner::Memory(attempt) => attempt.failure(),
            Inner::Store(attempt) => attempt.failure(),
        }
    }

    /// Like [`crate::Attempt::release`]; also false if the store was not reached.
    pub fn release(&self, now: Option<Timestamp>) -> Answer<bool> {
        match &self.0 {
            Inner::Memory(attempt) => Answer::Now(attempt.release(or_now(now))),
            Inner::Store(attempt) => {
                let attempt = Arc::clone(attempt);
                Answer::later(async move { attempt.release(now).await })
            }
        }
    }

    /// Like [`crate::Attempt::cancel`]; also false if the store was not reached.
    pub fn cancel(&self, now: Option<Timestamp>) -> Answer<bool> {
        match &self.0 {
            Inner::Memory(attempt) => Answer::Now(attempt.cancel(or_now(now))),
            Inner::Store(attempt) => {
                let attempt = Arc::clone(attempt);
                Answer::later(async move { attempt.cancel(now).await })
            }
        }
    }
}
