//! What the limiters of one text key have in common over a store.

use std::sync::Arc;

use crate::bounds;
use crate::decision::{Decision, OnError};
use crate::error::Error;
use crate::key::Digest;
use crate::redis::RedisStore;
use crate::redis::fallback::Fallback;
use crate::redis::remote::{Call, Remote};
use crate::redis::store::{Act, Wire};
use crate::stats::{RuleCounters, Stats};

/// One policy over a store, with a local limiter `T` for the time in which the store does not answer.
pub(crate) struct Single<T> {
    pub(crate) remote: Remote,
    pub(crate) wire: Arc<Wire>,
    local: Fallback<T>,
    pub(crate) counters: RuleCounters,
}

/// What the store said, or what to do without it.
pub(crate) enum Reply<T> {
    Decision(Decision),
    /// The local limiter decides.
    Local(Arc<T>),
}

impl<T> Single<T> {
    /// `wire` makes the policy for a prefix, `make` the local limiter, which is made once now to judge it.
    pub(crate) fn new(
        store: &RedisStore,
        on_error: Option<OnError>,
        wire: impl FnOnce(&str) -> Result<Wire, Error>,
        make: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        make()?;
        let remote = Remote::new(store, on_error);
        let wire = Arc::new(wire(remote.prefix())?);
        let local = Fallback::new(move || make().expect("judged above"));
        Ok(Self { remote, wire, local, counters: RuleCounters::default() })
    }

    /// Asks the store about a key. Counts no statistics.
    pub(crate) async fn ask(&self, digest: Digest, call: Call) -> Reply<T> {
        match self.remote.decide(&[(&self.wire, digest)], call).await {
            Ok(reading) => Reply::Decision(reading.decision),
            Err(OnError::Local) => Reply::Local(self.local.get(self.remote.returns())),
            Err(OnError::Open | OnError::Closed) => {
                Reply::Decision(self.remote.without_store(self.wire.smallest_count()))
            }
        }
    }

    /// Settles one key in the store; none if it was not reached.
    pub(crate) async fn settle(&self, digest: Digest, act: Act<'_>, now: Option<crate::Timestamp>) -> Option<i64> {
        let answers = self.remote.settle(&[(self.wire.key(&digest), act)], now).await?;
        answers.first().copied()
    }

    /// Forgets a key in the store. False if it was not reached.
    pub(crate) async fn forget(&self, digest: Digest) -> bool {
        self.settle(digest, Act::Forget, None).await.is_some()
    }

    /// The local limiter, if this outage has one.
    pub(crate) fn local(&self) -> Option<Arc<T>> {
        self.local.existing(self.remote.returns())
    }

    pub(crate) fn name(&self) -> &str {
        &self.wire.rule
    }

    /// A snapshot of the counters; sizes are those of the local limiter.
    pub(crate) fn stats(&self, of_local: impl FnOnce(&T) -> Stats) -> Stats {
        let local = self.local().map(|local| of_local(&local)).unwrap_or_default();
        let mut stats = Stats { evicted: local.evicted, tracked_keys: local.tracked_keys, ..Stats::default() };
        self.counters.add_to(&mut stats, self.name());
        self.remote.add_to(&mut stats);
        stats
    }
}

/// The digest of a text key.
pub(crate) fn digest(key: &[u8]) -> Result<Digest, Error> {
    bounds::check_key(key)?;
    Digest::of_parts(&[key], None)
}
