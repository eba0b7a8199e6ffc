//! A fixed window per key, over a store.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::Decision;
use crate::error::Error;
use crate::input::{self, OnError};
use crate::key::Digest;
use crate::period_text;
use crate::policy::fixed_window::Policy;
use crate::redis::RedisStore;
use crate::redis::fallback::Fallback;
use crate::redis::remote::{Call, Remote};
use crate::rule;
use crate::stats::{RuleCounters, Stats};
use crate::store::redis::{Act, Kind, Wire};
use crate::time::{Period, Timestamp};

/// A [`crate::FixedWindow`] whose counts many processes share.
pub struct FixedWindow {
    remote: Remote,
    wire: Arc<Wire>,
    policy: Policy,
    local: Fallback<crate::FixedWindow>,
    counters: RuleCounters,
}

impl FixedWindow {
    /// A window called `name` over `store`; see [`crate::FixedWindow::new`]. `max_keys` bounds the local table.
    ///
    /// # Errors
    /// The name or a bound is passed.
    pub fn new(
        store: &RedisStore,
        name: &str,
        (limit, window, max_keys): (u32, Duration, usize),
        on_error: Option<OnError>,
    ) -> Result<Self, Error> {
        let make = {
            let name = name.to_owned();
            move || crate::FixedWindow::new(limit, window, max_keys).and_then(|made| made.named(&name))
        };
        make()?;
        let remote = Remote::new(store, on_error);
        let policy = Policy { limit, window: Period::from_duration("window", window)? };
        let text = format!("w{limit}/{}", period_text::print(policy.window));
        let wire = Arc::new(Wire::new(remote.prefix(), rule::check_name(name)?, &text, Kind::Window(policy)));
        let local = Fallback::new(move || make().expect("the window was judged above"));
        Ok(Self { remote, wire, policy, local, counters: RuleCounters::default() })
    }

    /// Counts one attempt, or denies it; under `closed` an outage is unavailable.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn consume(&self, key: impl AsRef<[u8]>, now: Option<Timestamp>) -> Result<Decision, Error> {
        let key = key.as_ref();
        input::key(key)?;
        let digest = Digest::of_parts(&[key], None)?;
        let decision = match self.remote.decide(&[(&self.wire, digest)], Call::counting(1, now)).await {
            Ok(reading) => reading.decision,
            Err(OnError::Local) => {
                let local = self.local.get(self.remote.returns());
                let decision = local.try_consume(key, now.unwrap_or_else(Timestamp::now))?;
                Decision { degraded: true, ..decision }
            }
            Err(OnError::Open | OnError::Closed) => self.remote.without_store(self.policy.limit),
        };
        self.counters.count(&decision);
        Ok(decision)
    }

    /// Forgets a key, here and in the store. False if the store was not reached.
    ///
    /// # Errors
    /// The key is empty.
    pub async fn reset(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = key.as_ref();
        input::key(key)?;
        if let Some(local) = self.existing_local() {
            local.reset(key)?;
        }
        let digest = Digest::of_parts(&[key], None)?;
        Ok(self.remote.settle(&[(self.wire.key(&digest), Act::Forget)], None).await.is_some())
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
        self.existing_local().map_or(0, |local| local.len())
    }

    /// Whether this process's own table holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which decisions and counters speak of this window.
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

    fn existing_local(&self) -> Option<Arc<crate::FixedWindow>> {
        self.local.existing(self.remote.returns())
    }
}
