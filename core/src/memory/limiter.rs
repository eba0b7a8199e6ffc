//! Several keys in one call, each under its rule, all or nothing.

use std::sync::Arc;

use crate::bounds::{CAPACITY, check_key_count};
use crate::decision::Decision;
use crate::error::Error;
use crate::id::{AttemptId, AttemptIds};
use crate::key::Key;
use crate::memory::Attempt;
use crate::memory::engine::{self, Call, Taken};
use crate::memory::tables::{Found, Memory, RuleState};
use crate::stats::Stats;
use crate::table::KeyedHash;
use crate::time::Timestamp;

/// Decides several keys in one call, each under a rule of rates or of strikes.
///
/// Every key is tested before anything is written; one denial and nothing is counted anywhere.
/// Cheap to clone: clones share the state.
///
/// ```
/// use std::time::Duration;
/// use doorkeep::{Limiter, Rule, Timestamp};
///
/// let login_ip = Rule::new("login-ip", "20/1m,200/1h".parse()?)?;
/// let account = Rule::strikes("login-account-ip", 5, Duration::from_secs(900))?;
/// let limiter = Limiter::new(100_000)?;
///
/// let keys = [login_ip.ip_key("203.0.113.9")?, account.key(&[b"ann@example.com", b"203.0.113.9"])?];
/// let decision = limiter.decide(&keys, 1, Timestamp::now())?;
/// assert!(decision.allowed());
/// assert_eq!(decision.remaining, 4);
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    memory: Memory,
    ids: AttemptIds,
}

impl Limiter {
    /// A limiter that holds at most `capacity` windows (1 to 2^30; one per key and rate), and as many keys in
    /// the table of each strike rule.
    ///
    /// # Errors
    /// The capacity is out of bounds.
    pub fn new(capacity: usize) -> Result<Self, Error> {
        let capacity = CAPACITY.check(capacity)?;
        Ok(Self(Arc::new(Inner { memory: Memory::new(capacity), ids: AttemptIds::default() })))
    }

    /// An empty limiter of the same capacity that spreads keys over its tables by `seed`, so that even what is evicted is
    /// the same in every process: for simulations and tests.
    ///
    /// Not for production: without a secret, an attacker who chooses keys can aim them all at one table.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        let memory = Memory::with_hash(self.0.memory.capacity(), KeyedHash::seeded(seed));
        Self(Arc::new(Inner { memory, ids: AttemptIds::default() }))
    }

    /// Counts `cost` on every key, or nothing on any. Cost 0 asks only. A strike rule counts one attempt whatever the cost.
    ///
    /// # Errors
    /// There are not 1 to 16 keys, two rules of one name do not agree, or the call needs more windows
    /// than the capacity. Nothing is counted then.
    pub fn decide(&self, keys: &[Key], cost: u32, now: Timestamp) -> Result<Decision, Error> {
        engine::decide(&self.0.memory, keys, self.call(keys, cost, now), None)
    }

    /// Counts like [`Limiter::decide`] and returns only whether the call is allowed.
    ///
    /// # Errors
    /// As for [`Limiter::decide`].
    pub fn allow(&self, keys: &[Key], cost: u32, now: Timestamp) -> Result<bool, Error> {
        Ok(self.decide(keys, cost, now)?.allowed())
    }

    /// What [`Limiter::decide`] would answer; counts nothing.
    ///
    /// # Errors
    /// As for [`Limiter::decide`].
    pub fn peek(&self, keys: &[Key], cost: u32, now: Timestamp) -> Result<Decision, Error> {
        engine::decide(&self.0.memory, keys, Call { peek: true, ..self.call(keys, cost, now) }, None)
    }

    /// Like [`Limiter::decide`]; what was counted can be settled by the outcome of the attempt.
    ///
    /// # Errors
    /// As for [`Limiter::decide`].
    pub fn attempt(&self, keys: &[Key], cost: u32, now: Timestamp) -> Result<Attempt, Error> {
        let (decision, taken) = self.reserve(keys, cost, now)?;
        Ok(Attempt::new(self.clone(), keys, decision, taken))
    }

    /// Forgets these keys: an administrator's act. Always true: memory does not fail.
    ///
    /// # Errors
    /// As for [`Limiter::decide`].
    pub fn reset(&self, keys: &[Key]) -> Result<bool, Error> {
        check_key_count(keys.len())?;
        let keys: Vec<&Key> = keys.iter().collect();
        self.forget(&keys)?;
        Ok(true)
    }

    /// How many windows and strike keys the tables hold, those included that have expired and whose room was not needed yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.memory.len()
    }

    /// Whether the tables hold nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.memory.stats()
    }

    pub(crate) fn reserve(&self, keys: &[Key], cost: u32, now: Timestamp) -> Result<(Decision, Vec<Taken>), Error> {
        let mut taken = Vec::new();
        let decision = engine::decide(&self.0.memory, keys, self.call(keys, cost, now), Some(&mut taken))?;
        Ok((decision, taken))
    }

    pub(crate) fn forget(&self, keys: &[&Key]) -> Result<(), Error> {
        let memory = &self.0.memory;
        let mut rules = Found::new();
        memory.rules_of(keys, &mut rules)?;
        for (key, known) in keys.iter().zip(rules) {
            let digest = key.digest();
            match &known.state {
                RuleState::Strikes(table) => table.lock().reset(&digest),
                RuleState::Windows { .. } => {
                    let mut table = memory.shards.lock_of(&digest);
                    known.state.groups().for_each(|group| table.reset(&digest, group));
                }
            }
        }
        Ok(())
    }

    /// Gives back what an attempt took.
    pub(crate) fn give_back<'a>(&self, taken: impl Iterator<Item = &'a Taken>, now: Timestamp) {
        let memory = &self.0.memory;
        for Taken { key, from } in taken {
            let digest = key.digest();
            match from {
                engine::Origin::Window { group, charge } => {
                    memory.shards.lock_of(&digest).give_back(&digest, *group, charge, now);
                }
                engine::Origin::Strikes { id } => {
                    memory.with_strikes_of(key.rule(), |table| table.cancel(&digest, *id, now));
                }
            }
        }
    }

    fn call(&self, keys: &[Key], cost: u32, now: Timestamp) -> Call {
        // Only strikes know attempts apart.
        let needs_id = keys.iter().any(|key| key.rule().threshold().is_some());
        let id = if needs_id { self.0.ids.next() } else { AttemptId::default() };
        Call { id, cost, now, peek: false }
    }
}
