//! Strikes and lockout on one text key, over a store.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::{Decision, OnError, Outcome};
use crate::error::Error;
use crate::id::AttemptId;
use crate::key::Digest;
use crate::memory::Strikes;
use crate::policy::strikes::{self, Cancelled};
use crate::redis::remote::Call;
use crate::redis::single::{Reply, Single, digest};
use crate::redis::store::{Act, Kind, Wire};
use crate::redis::{RedisStore, or_now};
use crate::rule::Rule;
use crate::stats::Stats;
use crate::time::Timestamp;

/// A [`crate::AttemptLimiter`] whose strikes many processes share.
///
/// A limiter and a [`Rule::strikes`] of one name and policy share a budget. The number of keys is
/// bounded by the server's memory; `max_tracked_keys` bounds the local table during an outage.
pub struct AttemptLimiter(Single<crate::AttemptLimiter>);

/// One admitted attempt, to be taken back with [`AttemptLimiter::cancel`]. The default one cancels nothing.
#[derive(Clone, Default)]
pub struct Reservation(Place);

#[derive(Clone, Default)]
enum Place {
    #[default]
    Nothing,
    Remote(Digest, AttemptId),
    Local(Arc<crate::AttemptLimiter>, crate::Reservation),
}

impl AttemptLimiter {
    /// A limiter called `name` over `store`.
    ///
    /// # Errors
    /// The name or a field is out of its bounds.
    pub fn new(store: &RedisStore, name: &str, strikes: Strikes, on_error: Option<OnError>) -> Result<Self, Error> {
        let wire = |prefix: &str| {
            let rule = Rule::strikes(name, strikes.threshold, strikes.lockout_window)?;
            Ok(Wire::of_rule(prefix, &rule))
        };
        let name = name.to_owned();
        let make = move || crate::AttemptLimiter::new(strikes)?.named(&name);
        Single::new(store, on_error, wire, make).map(Self)
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
        let (key, call) = (key.as_ref(), self.0.remote.counting(1, now));
        let digest = digest(key)?;
        let (decision, place) = match self.0.ask(digest, call).await {
            // What was admitted without counting is not there either; taking it back finds nothing.
            Reply::Decision(decision) if decision.allowed() => (decision, Place::Remote(digest, call.id)),
            Reply::Decision(decision) => (decision, Place::Nothing),
            Reply::Local(local) => {
                let (decision, reservation) = local.try_reserve(key, or_now(now))?;
                (Decision { degraded: true, ..decision }, Place::Local(local, reservation))
            }
        };
        self.0.counters.count(&decision);
        Ok((decision, Reservation(place)))
    }

    /// Makes the attempt behind a reservation again, as after a lost reply: it is not counted twice.
    ///
    /// None for a reservation that the store does not hold, and when the store does not answer.
    pub async fn repeat(&self, reservation: &Reservation, now: Option<Timestamp>) -> Option<Decision> {
        let Place::Remote(digest, id) = reservation.0 else { return None };
        match self.0.ask(digest, Call { id, ..self.0.remote.counting(1, now) }).await {
            Reply::Decision(decision) => Some(decision),
            Reply::Local(_) => None,
        }
    }

    /// Takes back exactly the attempt behind a reservation, where it was counted. Safe to repeat.
    pub async fn cancel(&self, reservation: Reservation, now: Option<Timestamp>) -> Cancelled {
        match reservation.0 {
            Place::Nothing => Cancelled::Nothing,
            Place::Local(local, reservation) => local.cancel(reservation, or_now(now)),
            Place::Remote(digest, id) => {
                match self.0.settle(digest, Act::Cancel { policy: self.policy(), id }, now).await {
                    Some(2) => Cancelled::Lifted,
                    Some(1) => Cancelled::GivenBack,
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
        Ok(!self.peek(key.as_ref(), now).await?.0.is_allowed())
    }

    /// The wait that an attempt would be told now; none if it would be admitted, or nobody can tell.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn retry_after(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<Option<Duration>, Error> {
        Ok(self.peek(key.as_ref(), now).await?.1)
    }

    /// Forgets a key, here and in the store. False if the store was not reached.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn reset(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let digest = digest(key.as_ref())?;
        if let Some(local) = self.0.local() {
            local.reset(&key)?;
        }
        Ok(self.0.forget(digest).await)
    }

    /// Takes back the oldest attempt of a key that is still counting; see [`crate::AttemptLimiter::refund`].
    ///
    /// # Errors
    /// The key is empty.
    pub async fn refund(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<(), Error> {
        let act = Act::Refund { policy: self.policy() };
        let reached = self.0.settle(digest(key.as_ref())?, act, now).await.is_some();
        match self.0.local() {
            Some(local) if !reached => local.refund(key, or_now(now)),
            _ => Ok(()),
        }
    }

    /// How many keys this process's own table holds; the store is never scanned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.local().map_or(0, |local| local.len())
    }

    /// Whether this process's own table holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which decisions and counters speak of this limiter.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats(crate::AttemptLimiter::stats)
    }

    /// The outcome that an attempt would have, and the wait of a denial.
    async fn peek(&self, key: &[u8], now: Option<Timestamp>) -> Result<(Outcome, Option<Duration>), Error> {
        match self.0.ask(digest(key)?, self.0.remote.peeking(1, now)).await {
            Reply::Decision(decision) => Ok((decision.outcome, decision.retry_after.filter(|_| !decision.allowed()))),
            Reply::Local(local) => {
                let wait = local.retry_after(key, or_now(now))?;
                Ok((if wait.is_some() { Outcome::Denied } else { Outcome::Allowed }, wait))
            }
        }
    }

    fn policy(&self) -> &strikes::Policy {
        match &self.0.wire.kind {
            Kind::Strikes(policy) => policy,
            Kind::Rates(_) | Kind::Window(_) => unreachable!("made from strikes"),
        }
    }
}
