//! A fixed window per key, opened by its first attempt.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::bounds;
use crate::decision::{Decision, Outcome, Reason, Summary, Wait};
use crate::error::Error;
use crate::memory::TextDigests;
use crate::policy::fixed_window::{Policy, View};
use crate::stats::{RuleCounters, Stats};
use crate::table::FixedWindows;
use crate::time::{Period, Timestamp};

/// Admits `limit` attempts per key within a window that opens with the first of them.
///
/// Up to 2·limit - 1 attempts can land inside one window's length, across a boundary: half of them
/// just before a window elapses, half just after. Where that is too much, use a
/// [`Limiter`](crate::Limiter).
///
/// ```
/// # use std::time::Duration;
/// use doorkeep::{FixedWindow, Timestamp};
///
/// let resets = FixedWindow::new(1, Duration::from_secs(3600), 100_000)?;
/// let now = Timestamp::now();
/// assert!(resets.consume("ann@example.com", now).allowed());
/// assert_eq!(resets.consume("ann@example.com", now).retry_after_seconds(), Some(3600));
/// # Ok::<(), doorkeep::Error>(())
/// ```
pub struct FixedWindow {
    name: Arc<str>,
    policy: Policy,
    digests: TextDigests,
    windows: Mutex<FixedWindows>,
    counters: RuleCounters,
}

impl FixedWindow {
    /// `limit` attempts (1 to 2^26) per `window` (1 µs to 2^48 µs), for at most `max_keys` keys (1 to 2^30).
    ///
    /// # Errors
    /// A bound is passed.
    pub fn new(limit: u32, window: Duration, max_keys: usize) -> Result<Self, Error> {
        let limit = bounds::LIMIT.check(limit)?;
        let policy = Policy { limit, window: Period::from_duration("window", window)? };
        let max_keys = bounds::MAX_WINDOW_KEYS.check(max_keys)?;
        Ok(Self {
            name: "fixed-window".into(),
            policy,
            digests: TextDigests::new(),
            windows: Mutex::new(FixedWindows::new(policy, max_keys)),
            counters: RuleCounters::default(),
        })
    }

    /// The same window under a name of its own: its rule in decisions and counters.
    ///
    /// # Errors
    /// The name does not match `[a-z0-9-]{1,32}`.
    pub fn named(mut self, name: &str) -> Result<Self, Error> {
        self.name = bounds::check_name(name)?.into();
        Ok(self)
    }

    /// Counts one attempt, or denies it. An empty key is denied and never admitted.
    pub fn consume(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Decision {
        self.try_consume(key, now).unwrap_or_else(|_| Decision {
            outcome: Outcome::Denied,
            reason: Some(Reason::Limited),
            rule: Some(Arc::clone(&self.name)),
            retry_after: None,
            remaining: 0,
            reset_after: Duration::ZERO,
            degraded: false,
            engaged: Vec::new(),
        })
    }

    /// Counts one attempt, or denies it.
    ///
    /// # Errors
    /// The key is empty.
    pub fn try_consume(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<Decision, Error> {
        bounds::check_key(key.as_ref())?;
        let key = self.digests.of(key.as_ref());
        let (answer, view) = self.windows.lock().consume(key, now);
        match answer {
            Ok(()) => self.counters.allowed(),
            Err(_) => self.counters.denied(Reason::Limited),
        }
        Ok(self.decision(answer, &view, now))
    }

    /// What [`FixedWindow::try_consume`] would answer; counts nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use doorkeep::{FixedWindow, Timestamp};
    ///
    /// let resets = FixedWindow::new(1, Duration::from_secs(3600), 100_000)?;
    /// let now = Timestamp::now();
    /// assert!(resets.peek("ann@example.com", now)?.allowed());
    /// assert!(resets.consume("ann@example.com", now).allowed());
    /// assert_eq!(resets.peek("ann@example.com", now)?.retry_after_seconds(), Some(3600));
    /// # Ok::<(), doorkeep::Error>(())
    /// ```
    ///
    /// # Errors
    /// The key is empty.
    pub fn peek(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<Decision, Error> {
        bounds::check_key(key.as_ref())?;
        let key = self.digests.of(key.as_ref());
        let (answer, view) = self.windows.lock().peek(&key, now);
        Ok(self.decision(answer, &view, now))
    }

    /// Forgets a key. Always true: memory does not fail.
    ///
    /// # Errors
    /// The key is empty.
    pub fn reset(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        bounds::check_key(key.as_ref())?;
        let key = self.digests.of(key.as_ref());
        self.windows.lock().reset(&key);
        Ok(true)
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

    /// How many keys the table holds, those included whose window elapsed and whose room was not needed yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.windows.lock().len()
    }

    /// Whether the table holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which decisions and counters speak of this window.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let windows = self.windows.lock();
        Stats::of(&self.name, &self.counters, windows.evicted(), windows.len())
    }

    fn decision(&self, answer: Result<(), u64>, view: &View, now: Timestamp) -> Decision {
        let mut summary = Summary::new();
        if let Err(wait) = answer {
            summary.deny(&self.name, Reason::Limited, Wait::Micros(wait));
        }
        summary.left(self.policy.remaining(view.window), self.policy.reset_after(view, now));
        summary.into_decision()
    }
}
