//! A fixed window per key, over a store.

use std::time::Duration;

use crate::bounds;
use crate::decision::{Decision, OnError};
use crate::error::Error;
use crate::period_text;
use crate::policy::fixed_window::Policy;
use crate::redis::single::{Reply, Single, digest};
use crate::redis::store::{Kind, Wire};
use crate::redis::{RedisStore, or_now};
use crate::stats::Stats;
use crate::time::{Period, Timestamp};

/// A [`crate::FixedWindow`] whose counts many processes share.
pub struct FixedWindow {
    single: Single<crate::FixedWindow>,
    policy: Policy,
}

impl FixedWindow {
    /// A window called `name` over `store`; see [`crate::FixedWindow::new`]. `max_keys` bounds the local table.
    ///
    /// # Errors
    /// The name does not match `[a-z0-9-]{1,32}`, or a bound is passed.
    pub fn new(
        store: &RedisStore,
        name: &str,
        (limit, window, max_keys): (u32, Duration, usize),
        on_error: Option<OnError>,
    ) -> Result<Self, Error> {
        let policy = Policy { limit, window: Period::from_duration("window", window)? };
        let wire = |prefix: &str| {
            let text = format!("w{limit}/{}", period_text::print(policy.window));
            Ok(Wire::new(prefix, bounds::check_name(name)?.into(), &text, Kind::Window(policy)))
        };
        let name = name.to_owned();
        let make = move || crate::FixedWindow::new(limit, window, max_keys)?.named(&name);
        Ok(Self { single: Single::new(store, on_error, wire, make)?, policy })
    }

    /// Counts one attempt, or denies it; under `closed` an outage is unavailable.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn consume(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<Decision, Error> {
        let key = key.as_ref();
        let decision = match self.single.ask(digest(key)?, self.single.remote.counting(1, now)).await {
            Reply::Decision(decision) => decision,
            Reply::Local(local) => Decision { degraded: true, ..local.try_consume(key, or_now(now))? },
        };
        self.single.counters.count(&decision);
        Ok(decision)
    }

    /// What [`FixedWindow::consume`] would answer; counts nothing.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn peek(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<Decision, Error> {
        let key = key.as_ref();
        match self.single.ask(digest(key)?, self.single.remote.peeking(1, now)).await {
            Reply::Decision(decision) => Ok(decision),
            Reply::Local(local) => Ok(Decision { degraded: true, ..local.peek(key, or_now(now))? }),
        }
    }

    /// Forgets a key, here and in the store. False if the store was not reached.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn reset(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let digest = digest(key.as_ref())?;
        if let Some(local) = self.single.local() {
            local.reset(&key)?;
        }
        Ok(self.single.forget(digest).await)
    }

    /// How many attempts a window takes.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.policy.limit
    }

    /// The length of a window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.policy.window.as_duration()
    }

    /// How many keys this process's own table holds; the store is never scanned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.single.local().map_or(0, |local| local.len())
    }

    /// Whether this process's own table holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which decisions and counters speak of this window.
    #[must_use]
    pub fn name(&self) -> &str {
        self.single.name()
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.single.stats(crate::FixedWindow::stats)
    }
}
