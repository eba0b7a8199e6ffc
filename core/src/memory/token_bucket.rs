//! A token bucket per key: `rate` tokens, refilled continuously over a window.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::bounds;
use crate::decision::{Reason, Wait};
use crate::error::Error;
use crate::memory::TextDigests;
use crate::memory::tables::Shards;
use crate::policy::gcra::Gcra;
use crate::rate::Rate;
use crate::stats::{RuleCounters, Stats};
use crate::table::{Group, KeyedHash};
use crate::time::Timestamp;

const ONE_GROUP: Group = 0;

/// Admits a burst of `rate` per key, then one every `window / rate`.
///
/// The residue of a refill is kept exactly; the residue of a bucket that is full is dropped.
///
/// ```
/// # use std::time::Duration;
/// use doorkeep::{Timestamp, TokenBucket};
///
/// let tokens = TokenBucket::new(10, Duration::from_secs(10), 10_000)?;
/// let now = Timestamp::now();
/// assert!(tokens.allow_n("user:123", 10, now));
/// assert!(!tokens.allow("user:123", now));
/// # Ok::<(), doorkeep::Error>(())
/// ```
pub struct TokenBucket {
    name: Arc<str>,
    rate: u32,
    capacity: usize,
    digests: TextDigests,
    buckets: Shards,
    closed: AtomicBool,
    counters: RuleCounters,
}

impl TokenBucket {
    /// `rate` tokens (1 to 2^26) over `window` (1 µs to 2^48 µs), in at most `capacity` buckets (1 to 2^30).
    ///
    /// # Errors
    /// A bound is passed.
    pub fn new(rate: u32, window: Duration, capacity: usize) -> Result<Self, Error> {
        let rate = bounds::BUCKET_RATE.check(rate)?;
        let window = crate::time::Period::from_duration("window", window)?;
        let buckets = Shards::new(bounds::CAPACITY.check(capacity)?);
        buckets.add_group(Gcra::new(&Rate::new(rate, window.as_duration())?));
        Ok(Self {
            name: "token-bucket".into(),
            rate,
            capacity,
            digests: TextDigests::new(),
            buckets,
            closed: AtomicBool::new(false),
            counters: RuleCounters::default(),
        })
    }

    /// The same bucket, empty, that spreads keys over its tables by `seed`, so that even what is evicted is the same in
    /// every process: for simulations and tests. Not for production, see [`Limiter::with_seed`](crate::Limiter::with_seed).
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        let gcra = *self.buckets.lock(0).gcra(ONE_GROUP);
        self.buckets = Shards::with_hash(self.capacity, KeyedHash::seeded(seed));
        self.buckets.add_group(gcra);
        self.digests = TextDigests::seeded(seed);
        self
    }

    /// The same bucket under a name of its own: its rule in counters.
    ///
    /// # Errors
    /// The name does not match `[a-z0-9-]{1,32}`.
    pub fn named(mut self, name: &str) -> Result<Self, Error> {
        self.name = bounds::check_name(name)?.into();
        Ok(self)
    }

    /// Takes one token. False for an empty key, and after [`TokenBucket::close`].
    #[must_use = "an answer that is not looked at admits everybody"]
    pub fn allow(&self, key: impl AsRef<[u8]>, now: Timestamp) -> bool {
        self.allow_n(key, 1, now)
    }

    /// Takes `n` tokens at once or none.
    ///
    /// In this order: a negative `n` is false; 0 is true, whatever the key, also after close; an empty
    /// key is false; more than the rate is false; a closed bucket is false.
    #[must_use = "an answer that is not looked at admits everybody"]
    pub fn allow_n(&self, key: impl AsRef<[u8]>, n: i64, now: Timestamp) -> bool {
        let key = key.as_ref();
        if n <= 0 {
            return n == 0;
        }
        if key.is_empty() {
            return false;
        }
        let fits = u32::try_from(n).ok().filter(|n| *n <= self.rate);
        let admitted = match fits {
            Some(_) if self.closed.load(Ordering::Acquire) => return false,
            Some(n) => self.take(key, n, now),
            None => false,
        };
        if admitted {
            self.counters.allowed();
        } else {
            self.counters.denied(Reason::Limited);
        }
        admitted
    }

    /// The wait until one token is there; none if there is one now. Takes nothing, and asks a closed bucket like an open one.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use doorkeep::{Timestamp, TokenBucket};
    ///
    /// let tokens = TokenBucket::new(1, Duration::from_secs(60), 10_000)?;
    /// let now = Timestamp::now();
    /// assert_eq!(tokens.retry_after("user:123", now)?, None);
    /// assert!(tokens.allow("user:123", now));
    /// assert_eq!(tokens.retry_after("user:123", now)?, Some(Duration::from_secs(60)));
    /// # Ok::<(), doorkeep::Error>(())
    /// ```
    ///
    /// # Errors
    /// The key is empty.
    pub fn retry_after(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<Option<Duration>, Error> {
        bounds::check_key(key.as_ref())?;
        let key = self.digests.of(key.as_ref());
        match self.buckets.lock_of(&key).check(&key, ONE_GROUP, now, 1).tested {
            Err(Wait::Micros(wait)) => Ok(Some(Duration::from_micros(wait))),
            // A bucket holds at least one token, so no wait for one is for ever.
            Ok(_) | Err(Wait::Never) => Ok(None),
        }
    }

    /// Fills the bucket of a key. Does nothing for an empty key. Always true: memory does not fail.
    pub fn reset(&self, key: impl AsRef<[u8]>) -> bool {
        let key = self.digests.of(key.as_ref());
        self.buckets.lock_of(&key).reset(&key, ONE_GROUP);
        true
    }

    /// Admits nothing from now on. Closing twice is closing once.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// How many buckets the tables hold, full ones included whose room was not needed yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether the tables hold no bucket.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which counters speak of this bucket.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.name, &self.counters, self.buckets.evicted(), self.len())
    }

    fn take(&self, key: &[u8], n: u32, now: Timestamp) -> bool {
        let key = self.digests.of(key);
        let mut table = self.buckets.lock_of(&key);
        let bucket = table.check(&key, ONE_GROUP, now, n);
        if bucket.tested.is_err() {
            table.heal(&bucket);
            return false;
        }
        if bucket.slot.is_none() {
            table.make_room(1, &[], now);
        }
        table.commit(&key, &bucket, n, now);
        true
    }
}
