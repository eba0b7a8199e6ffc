//! Several keys in one call, over a store.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::bounds::{CAPACITY, check_key_count};
use crate::decision::{Decision, OnError};
use crate::error::Error;
use crate::key::{Digest, Key};
use crate::memory::engine;
use crate::redis::fallback::Fallback;
use crate::redis::remote::{Call, Remote};
use crate::redis::store::{Act, Charges, Wire};
use crate::redis::{Attempt, RedisStore, or_now};
use crate::registry::{self, Registered, Registry};
use crate::stats::Stats;
use crate::time::Timestamp;

/// A [`crate::Limiter`] whose state many processes share. Cheap to clone.
#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    remote: Remote,
    rules: Registry<Arc<Wire>>,
    capacity: usize,
    local: Fallback<crate::Limiter>,
}

/// A key with the rule that it was asked under.
pub(crate) type Asked = (Arc<Registered<Arc<Wire>>>, Key);

/// Where an admitted call was counted.
pub(crate) enum Counted {
    /// In the store: each key with what was taken from it.
    Remote { id: crate::id::AttemptId, keys: Vec<(Asked, Charges)> },
    /// In this process, during an outage.
    Local(crate::Attempt),
    /// Denied, or admitted without counting.
    Nothing,
}

impl Limiter {
    /// A limiter over `store`. `capacity` (1 to 2^30) bounds its local tables during an outage.
    ///
    /// # Errors
    /// The capacity is out of bounds.
    pub fn new(store: &RedisStore, on_error: Option<OnError>, capacity: usize) -> Result<Self, Error> {
        let capacity = CAPACITY.check(capacity)?;
        let local = Fallback::new(move || crate::Limiter::new(capacity).expect("the capacity was judged above"));
        Ok(Self(Arc::new(Inner { remote: Remote::new(store, on_error), rules: Registry::default(), capacity, local })))
    }

    /// Counts `cost` on every key, or nothing on any; see [`crate::Limiter::decide`].
    ///
    /// `now` overrides the store's clock. A denial and an outage are decisions, not errors.
    ///
    /// # Errors
    /// As for [`crate::Limiter::decide`].
    pub async fn decide(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Result<Decision, Error> {
        Ok(self.call(keys, self.0.remote.counting(cost, now)).await?.0)
    }

    /// Counts like [`Limiter::decide`] and returns only whether the call is allowed.
    ///
    /// # Errors
    /// As for [`crate::Limiter::decide`].
    pub async fn allow(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Result<bool, Error> {
        Ok(self.decide(keys, cost, now).await?.allowed())
    }

    /// What [`Limiter::decide`] would answer; counts nothing.
    ///
    /// # Errors
    /// As for [`crate::Limiter::decide`].
    pub async fn peek(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Result<Decision, Error> {
        Ok(self.call(keys, self.0.remote.peeking(cost, now)).await?.0)
    }

    /// Like [`Limiter::decide`]; what was counted can be settled by the outcome of the attempt.
    ///
    /// # Errors
    /// As for [`crate::Limiter::decide`].
    pub async fn attempt(&self, keys: &[Key], cost: u32, now: Option<Timestamp>) -> Result<Attempt, Error> {
        let (decision, counted) = self.reserve(keys, cost, now).await?;
        Ok(Attempt::new(self.clone(), keys, decision, counted))
    }

    /// Forgets these keys, here and in the store. False if the store was not reached.
    ///
    /// # Errors
    /// As for [`crate::Limiter::decide`].
    pub async fn reset(&self, keys: &[Key]) -> Result<bool, Error> {
        check_key_count(keys.len())?;
        self.forget(&keys.iter().collect::<Vec<_>>(), Vec::new(), None).await
    }

    /// How many entries this process's own tables hold; the store is never scanned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.existing_local().map_or(0, |local| local.len())
    }

    /// Whether this process's own tables hold nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let local = self.existing_local().map(|local| local.stats()).unwrap_or_default();
        let mut stats = Stats { evicted: local.evicted, tracked_keys: local.tracked_keys, ..Stats::default() };
        for known in self.0.rules.iter() {
            known.counters.add_to(&mut stats, known.rule.name());
        }
        self.0.remote.add_to(&mut stats);
        stats
    }

    pub(crate) async fn reserve(
        &self,
        keys: &[Key],
        cost: u32,
        now: Option<Timestamp>,
    ) -> Result<(Decision, Counted), Error> {
        self.call(keys, self.0.remote.counting(cost, now)).await
    }

    async fn call(&self, keys: &[Key], call: Call) -> Result<(Decision, Counted), Error> {
        let asked = {
            let mut once = SmallVec::new();
            engine::distinct(keys, &mut once)?;
            self.asked(&once)?
        };
        let needed: usize = asked.iter().map(|(known, _)| known.state.windows()).sum();
        engine::check_windows(needed, self.0.capacity)?;
        let checks: Vec<(&Arc<Wire>, Digest)> = asked.iter().map(|(known, key)| (&known.state, key.digest())).collect();
        let (decision, counted) = match self.0.remote.decide(&checks, call).await {
            Ok(reading) => {
                let is_counted = call.commit && reading.decision.allowed();
                let keys = asked.iter().cloned().zip(reading.charges).collect();
                let counted = if is_counted { Counted::Remote { id: call.id, keys } } else { Counted::Nothing };
                (reading.decision, counted)
            }
            Err(OnError::Local) => self.decide_locally(keys, call)?,
            Err(OnError::Open | OnError::Closed) => {
                let remaining = asked.iter().map(|(known, _)| known.state.smallest_count()).min().unwrap_or(0);
                (self.0.remote.without_store(remaining), Counted::Nothing)
            }
        };
        if call.commit {
            let rules: Vec<_> = asked.iter().map(|(known, _)| known).collect();
            registry::count(&rules, &decision);
        }
        Ok((decision, counted))
    }

    /// Decides in this process, as long as the store does not answer.
    fn decide_locally(&self, keys: &[Key], call: Call) -> Result<(Decision, Counted), Error> {
        let local = self.0.local.get(self.0.remote.returns());
        let now = or_now(call.now);
        if !call.commit {
            let decision = local.peek(keys, call.cost, now)?;
            return Ok((Decision { degraded: true, ..decision }, Counted::Nothing));
        }
        let attempt = local.attempt(keys, call.cost, now)?;
        Ok((Decision { degraded: true, ..attempt.decision() }, Counted::Local(attempt)))
    }

    /// Forgets keys in the store and here, and settles `acts` in the same trip.
    pub(crate) async fn forget(
        &self,
        keys: &[&Key],
        mut acts: Vec<(String, Act<'_>)>,
        now: Option<Timestamp>,
    ) -> Result<bool, Error> {
        if let Some(local) = self.existing_local() {
            local.forget(keys)?;
        }
        let asked = self.asked(keys)?;
        acts.extend(asked.iter().map(|(known, key)| (known.state.key(&key.digest()), Act::Forget)));
        Ok(self.0.remote.settle(&acts, now).await.is_some())
    }

    fn asked(&self, keys: &[&Key]) -> Result<Vec<Asked>, Error> {
        let make = |_: &_, rule: &_| Arc::new(Wire::of_rule(self.0.remote.prefix(), rule));
        let mut rules = registry::Found::new();
        self.0.rules.find(keys, &mut rules, make)?;
        Ok(rules.iter().zip(keys).map(|(known, key)| (Arc::clone(known), (*key).clone())).collect())
    }

    fn existing_local(&self) -> Option<Arc<crate::Limiter>> {
        self.0.local.existing(self.0.remote.returns())
    }
}
