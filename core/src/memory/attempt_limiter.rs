//! Strikes and lockout on one text key, with reserve and cancel.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::bounds;
use crate::decision::{Decision, Outcome, Reason, Summary, Wait};
use crate::error::Error;
use crate::id::AttemptId;
use crate::key::Digest;
use crate::memory::TextDigests;
use crate::policy::strikes::{Cancelled, Policy, Verdict};
use crate::stats::{RuleCounters, Stats};
use crate::table::{Slot, StrikeTable};
use crate::time::{Period, Timestamp};

/// How an [`AttemptLimiter`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strikes {
    /// The attempt that locks a key: 1 to 1024.
    pub threshold: u32,
    /// How long a key stays locked, and how long an idle key is remembered: 1 µs to 2^48 µs.
    pub lockout_window: Duration,
    /// How many keys are held at most: 1 to 2^30.
    pub max_tracked_keys: usize,
}

/// One admitted attempt, to be taken back with [`AttemptLimiter::cancel`]. The default one cancels nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservation(Option<(Digest, AttemptId)>);

/// Admits `threshold` attempts per key and locks the key for `lockout_window` with the last of them.
///
/// Testing and counting is one step under one lock: parallel guesses cannot all pass a check before
/// any of them is counted. A denied attempt is not counted. At the cap a new key displaces the least
/// recently active key that is not locked; a lockout is never evicted.
///
/// ```
/// # use std::time::Duration;
/// use doorkeep::{AttemptLimiter, Outcome, Strikes, Timestamp};
///
/// let logins = AttemptLimiter::new(Strikes {
///     threshold: 2,
///     lockout_window: Duration::from_secs(900),
///     max_tracked_keys: 50_000,
/// })?;
/// let now = Timestamp::now();
/// assert_eq!(logins.attempt("ann", now), Outcome::Allowed);
/// assert_eq!(logins.attempt("ann", now), Outcome::AllowedLast);
/// assert_eq!(logins.attempt("ann", now), Outcome::Denied);
/// # Ok::<(), doorkeep::Error>(())
/// ```
pub struct AttemptLimiter {
    name: Arc<str>,
    digests: TextDigests,
    table: Mutex<StrikeTable>,
    counters: RuleCounters,
}

impl AttemptLimiter {
    /// A limiter with an empty table.
    ///
    /// # Errors
    /// A field is out of its bounds: a limiter that silently never limits is worse than one that refuses to start.
    pub fn new(strikes: Strikes) -> Result<Self, Error> {
        let policy = Policy {
            threshold: bounds::THRESHOLD.check(strikes.threshold)?,
            window: Period::from_duration("lockout window", strikes.lockout_window)?,
        };
        let capacity = bounds::MAX_TRACKED_KEYS.check(strikes.max_tracked_keys)?;
        Ok(Self {
            name: "attempt-limiter".into(),
            digests: TextDigests::new(),
            table: Mutex::new(StrikeTable::new(policy, capacity)),
            counters: RuleCounters::default(),
        })
    }

    /// The same limiter under a name of its own: its rule in decisions and counters.
    ///
    /// # Errors
    /// The name does not match `[a-z0-9-]{1,32}`.
    pub fn named(mut self, name: &str) -> Result<Self, Error> {
        self.name = bounds::check_name(name)?.into();
        Ok(self)
    }

    /// Counts one attempt, or denies it. An empty key is denied.
    pub fn attempt(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Outcome {
        self.try_attempt(key, now).unwrap_or_default()
    }

    /// Like [`AttemptLimiter::attempt`], with a reservation that can take the attempt back.
    pub fn reserve(&self, key: impl AsRef<[u8]>, now: Timestamp) -> (Outcome, Reservation) {
        match self.try_reserve(key, now) {
            Ok((decision, reservation)) => (decision.outcome, reservation),
            Err(_) => (Outcome::Denied, Reservation::default()),
        }
    }

    /// Counts one attempt, or denies it.
    ///
    /// # Errors
    /// The key is empty: an empty key is an error, not a shared bucket.
    pub fn try_attempt(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<Outcome, Error> {
        let key = self.digest(key.as_ref())?;
        let answer = self.step(&mut self.table.lock(), key, None, now).0;
        Ok(match answer {
            Answer::Admitted(outcome, _) => outcome,
            Answer::Denied(..) => Outcome::Denied,
        })
    }

    /// Counts one attempt, or denies it, and tells the whole answer.
    ///
    /// # Errors
    /// The key is empty.
    pub fn decide(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<Decision, Error> {
        Ok(self.decide_as(self.digest(key.as_ref())?, None, now).0)
    }

    /// Like [`AttemptLimiter::decide`], with a reservation that can take the attempt back.
    ///
    /// # Errors
    /// The key is empty.
    pub fn try_reserve(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<(Decision, Reservation), Error> {
        let key = self.digest(key.as_ref())?;
        let (decision, id) = self.decide_as(key, None, now);
        Ok((decision, Reservation(id.map(|id| (key, id)))))
    }

    /// Makes the attempt behind a reservation again, as after a lost reply: it is not counted twice.
    ///
    /// None for a reservation that holds no attempt.
    pub fn repeat(&self, reservation: &Reservation, now: Timestamp) -> Option<Decision> {
        reservation.0.map(|(key, id)| self.decide_as(key, Some(id), now).0)
    }

    /// Takes back exactly the attempt behind a reservation. Safe to repeat.
    ///
    /// Only the attempt that engaged a lockout lifts it. A reservation that outlived its entry
    /// (reset, expired, evicted) cancels nothing.
    pub fn cancel(&self, reservation: Reservation, now: Timestamp) -> Cancelled {
        match reservation.0 {
            Some((key, id)) => self.table.lock().cancel(&key, id, now),
            None => Cancelled::Nothing,
        }
    }

    /// Whether an attempt would be denied now. Counts nothing; [`AttemptLimiter::attempt`] is the gate.
    ///
    /// # Errors
    /// The key is empty.
    pub fn locked(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<bool, Error> {
        Ok(self.retry_after(key, now)?.is_some())
    }

    /// The wait that an attempt would be told now; none if it would be admitted. Counts nothing.
    ///
    /// # Errors
    /// The key is empty.
    pub fn retry_after(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<Option<Duration>, Error> {
        let key = self.digest(key.as_ref())?;
        let table = self.table.lock();
        let slot = table.find(&key);
        Ok(denial(&table, slot, table.test(slot, None, now), now).map(|(_, wait)| Duration::from_micros(wait)))
    }

    /// Forgets a key, its lockout included. Always true: memory does not fail.
    ///
    /// # Errors
    /// The key is empty.
    pub fn reset(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let key = self.digest(key.as_ref())?;
        self.table.lock().reset(&key);
        Ok(true)
    }

    /// Takes back the oldest attempt of a key that is still counting; a locked key is left alone.
    ///
    /// Deprecated in favour of [`AttemptLimiter::reserve`] and [`AttemptLimiter::cancel`]: an anonymous
    /// refund cannot say which attempt it returns.
    ///
    /// # Errors
    /// The key is empty.
    pub fn refund(&self, key: impl AsRef<[u8]>, now: Timestamp) -> Result<(), Error> {
        let key = self.digest(key.as_ref())?;
        self.table.lock().refund(&key, now);
        Ok(())
    }

    /// How many keys the table holds, those included that have expired and whose room was not needed yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.lock().len()
    }

    /// Whether the table holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name under which decisions and counters speak of this limiter.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let table = self.table.lock();
        Stats::of(&self.name, &self.counters, table.evicted(), table.len())
    }

    fn digest(&self, key: &[u8]) -> Result<Digest, Error> {
        bounds::check_key(key)?;
        Ok(self.digests.of(key))
    }

    /// Decides an attempt that may have been made before, and tells under which id an admitted one counts.
    fn decide_as(&self, key: Digest, repeats: Option<AttemptId>, now: Timestamp) -> (Decision, Option<AttemptId>) {
        let mut table = self.table.lock();
        let (answer, slot) = self.step(&mut table, key, repeats, now);
        let mut summary = Summary::new();
        let (mut remaining, reset_after) = table.left(slot, now);
        let mut admitted = None;
        match answer {
            Answer::Admitted(outcome, id) => {
                admitted = Some(id);
                if outcome == Outcome::AllowedLast {
                    summary.engaged(&self.name);
                }
            }
            Answer::Denied(reason, wait) => {
                summary.deny(&self.name, reason, Wait::Micros(wait));
                if reason == Reason::Saturated {
                    // A key that finds no room has nothing left, though it has no strikes either.
                    remaining = 0;
                }
            }
        }
        summary.left(remaining, reset_after);
        (summary.into_decision(), admitted)
    }

    /// The one step: tests and, if nothing denies, counts.
    fn step(
        &self,
        table: &mut StrikeTable,
        key: Digest,
        repeats: Option<AttemptId>,
        now: Timestamp,
    ) -> (Answer, Option<Slot>) {
        let slot = table.find(&key);
        let verdict = table.test(slot, repeats, now);
        if let Some((reason, wait)) = denial(table, slot, verdict, now) {
            table.heal(slot, now);
            self.counters.denied_under_lock(reason);
            return (Answer::Denied(reason, wait), slot);
        }
        self.counters.allowed_under_lock();
        let id = repeats.unwrap_or_else(|| table.next_id());
        if let Verdict::Repeated { engager } = verdict {
            let outcome = if engager { Outcome::AllowedLast } else { Outcome::Allowed };
            return (Answer::Admitted(outcome, id), slot);
        }
        if slot.is_none() {
            table.make_room(1, &[], now);
        }
        let (slot, outcome) = table.commit(slot, key, id, now);
        (Answer::Admitted(outcome, id), Some(slot))
    }
}

enum Answer {
    Admitted(Outcome, AttemptId),
    Denied(Reason, u64),
}

fn denial(table: &StrikeTable, slot: Option<Slot>, verdict: Verdict, now: Timestamp) -> Option<(Reason, u64)> {
    match verdict {
        Verdict::Locked { wait } => Some((Reason::Locked, wait)),
        Verdict::Counts if slot.is_none() => table.saturated(1, &[], now).map(|wait| (Reason::Saturated, wait)),
        Verdict::Counts | Verdict::Repeated { .. } => None,
    }
}
