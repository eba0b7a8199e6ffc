//! Strikes and lockout on one text key, over a store.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::{Decision, Outcome};
use crate::error::Error;
use crate::id::AttemptId;
use crate::input::{self, OnError};
use crate::key::Digest;
use crate::limits::Strikes;
use crate::policy::strikes::{self, Cancelled};
use crate::redis::RedisStore;
use crate::redis::fallback::Fallback;
use crate::redis::remote::{Call, Remote};
use crate::rule::Rule;
use crate::stats::{RuleCounters, Stats};
use crate::store::redis::{Act, Kind, Wire};
use crate::time::Timestamp;

/// A [`crate::AttemptLimiter`] whose strikes many processes share.
///
/// A limiter and a [`Rule::strikes`] of one name and policy share a budget. The number of keys is
/// bounded by the server's memory; `max_tracked_keys` bounds the local table during an outage.
pub struct AttemptLimiter {
    remote: Remote,
    wire: Arc<Wire>,
    local: Fallback<crate::AttemptLimiter>,
    counters: RuleCounters,
}

/// One admitted attempt, to be taken back with [`AttemptLimiter::cancel`]. The default one cancels nothing.
#[derive(Clone, Default)]
pub struct Reservation(Place);

#[derive(Clone, Default)]
enum Place {
    #[default]
    Nowhere,
    There(Digest, AttemptId),
    Here(Arc<crate::AttemptLimiter>, crate::Reservation),
}

impl AttemptLimiter {
    /// A limiter called `name` over `store`.
    ///
    /// # Errors
    /// The name or a field is out of its bounds.
    pub fn new(store: &RedisStore, name: &str, strikes: Strikes, on_error: Option<OnError>) -> Result<Self, Error> {
        let remote = Remote::new(store, on_error);
        let rule = Rule::strikes(name, strikes.threshold, strikes.lockout_window)?;
        let wire = Arc::new(Wire::of_rule(remote.prefix(), &rule));
        let name = name.to_owned();
        let make = move || crate::AttemptLimiter::new(strikes).and_then(|limiter| limiter.named(&name));
        make()?;
        let local = Fallback::new(move || make().expect("the strikes were judged above"));
        Ok(Self { remote, wire, local, counters: RuleCounters::default() })
    }

    /// Counts one attempt, or denies it.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn decide(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<Decision, Error> {
        Ok(self.reserve(key, now).await?.0)
    }

    /// Counts one attempt, or denies it, with a reservation that can take the attempt back.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn reserve(
        &self,
        key: impl AsRef<[u8]>,
        now: Option<Timestamp>,
    ) -> Result<(Decision, Reservation), Error> {
        let key = key.as_ref();
        let digest = digest(key)?;
        let call = Call::counting(1, now);
        self.decide_as(key, digest, call).await
    }

    /// Makes the attempt behind a reservation again, as after a lost reply: it is not counted twice.
    ///
    /// None for a reservation that the store does not hold.
    pub async fn repeat(&self, reservation: &Reservation, now: Option<Timestamp>) -> Option<Decision> {
        let Place::There(digest, id) = reservation.0 else { return None };
        let call = Call { id, ..Call::counting(1, now) };
        let reading = self.remote.decide(&[(&self.wire, digest)], call).await;
        Some(reading.map_or_else(|_| self.remote.without_store(self.threshold()), |reading| reading.decision))
    }

    /// Takes back exactly the attempt behind a reservation, where it was counted. Safe to repeat.
    pub async fn cancel(&self, reservation: Reservation, now: Option<Timestamp>) -> Cancelled {
        match reservation.0 {
            Place::Nowhere => Cancelled::Nothing,
            Place::Here(local, reservation) => local.cancel(reservation, now.unwrap_or_else(Timestamp::now)),
            Place::There(digest, id) => {
                let act = Act::Cancel { policy: self.policy(), id };
                match self.remote.settle(&[(self.wire.key(&digest), act)], now).await.as_deref() {
                    Some([2]) => Cancelled::Lifted,
                    Some([1]) => Cancelled::GivenBack,
                    _ => Cancelled::Nothing,
                }
            }
        }
    }

    /// Whether an attempt would be denied now. Counts nothing. Under `closed` an outage locks, under `open` it does not.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn locked(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<bool, Error> {
        Ok(!self.peek(key.as_ref(), now).await?.allowed())
    }

    /// The wait that an attempt would be told now; none if it would be admitted, or nobody can tell.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn retry_after(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<Option<Duration>, Error> {
        let decision = self.peek(key.as_ref(), now).await?;
        Ok(decision.retry_after.filter(|_| !decision.allowed()))
    }

    /// Forgets a key, here and in the store. False if the store was not reached.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn reset(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = key.as_ref();
        let digest = digest(key)?;
        if let Some(local) = self.existing_local() {
            local.reset(key)?;
        }
        Ok(self.remote.settle(&[(self.wire.key(&digest), Act::Forget)], None).await.is_some())
    }

    /// Takes back the oldest attempt of a key that is still counting; see [`crate::AttemptLimiter::refund`].
    ///
    /// # Errors
    /// The key is empty.
    pub async fn refund(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<(), Error> {
        let key = key.as_ref();
        let act = Act::Refund { policy: self.policy() };
        let reached = self.remote.settle(&[(self.wire.key(&digest(key)?), act)], now).await.is_some();
        match self.existing_local() {
            Some(local) if !reached => local.refund(key, now.unwrap_or_else(Timestamp::now)),
            _ => Ok(()),
        }
    }

    /// How many keys this process's own table holds; the store is never scanned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.existing_local().map_or(0, |local| local.len())
    }

    /// Whether this process's own table holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which decisions and counters speak of this limiter.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.wire.rule
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let local = self.existing_local().map(|local| local.stats()).unwrap_or_default();
        let mut stats = Stats { evicted: local.evicted, tracked_keys: local.tracked_keys, ..Stats::default() };
        self.counters.add_to(&mut stats, self.name());
        self.remote.add_to(&mut stats);
        stats
    }

    async fn decide_as(&self, key: &[u8], digest: Digest, call: Call) -> Result<(Decision, Reservation), Error> {
        let (decision, place) = match self.remote.decide(&[(&self.wire, digest)], call).await {
            Ok(reading) => {
                let admitted = reading.decision.allowed();
                (reading.decision, if admitted { Place::There(digest, call.id) } else { Place::Nowhere })
            }
            Err(OnError::Local) => {
                let local = self.local.get(self.remote.returns());
                let (decision, reservation) = local.try_reserve(key, call.now.unwrap_or_else(Timestamp::now))?;
                (Decision { degraded: true, ..decision }, Place::Here(local, reservation))
            }
            Err(OnError::Open | OnError::Closed) => (self.remote.without_store(self.threshold()), Place::Nowhere),
        };
        self.counters.count(&decision);
        Ok((decision, Reservation(place)))
    }

    async fn peek(&self, key: &[u8], now: Option<Timestamp>) -> Result<Decision, Error> {
        let digest = digest(key)?;
        match self.remote.decide(&[(&self.wire, digest)], Call::peeking(1, now)).await {
            Ok(reading) => Ok(reading.decision),
            Err(OnError::Local) => {
                let local = self.local.get(self.remote.returns());
                let wait = local.retry_after(key, now.unwrap_or_else(Timestamp::now))?;
                let outcome = if wait.is_some() { Outcome::Denied } else { Outcome::Allowed };
                Ok(Decision { outcome, retry_after: wait, ..self.remote.without_store(0) })
            }
            Err(OnError::Open | OnError::Closed) => Ok(self.remote.without_store(0)),
        }
    }

    fn policy(&self) -> &strikes::Policy {
        match &self.wire.kind {
            Kind::Strikes(policy) => policy,
            Kind::Rates(_) | Kind::Window(_) => unreachable!("made from strikes"),
        }
    }

    fn threshold(&self) -> u32 {
        self.policy().threshold
    }

    fn existing_local(&self) -> Option<Arc<crate::AttemptLimiter>> {
        self.local.existing(self.remote.returns())
    }
}

fn digest(key: &[u8]) -> Result<Digest, Error> {
    input::key(key)?;
    Digest::of_parts(&[key], None)
}
