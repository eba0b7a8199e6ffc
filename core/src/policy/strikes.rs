//! The strike counter as a pure step: `(state, now) -> (outcome, state')`.
//!
//! Knows nothing of clocks, locks or stores. Invariant: a denied attempt changes nothing, so
//! hammering a locked key cannot extend its lockout. Read it beside the table of strikes in
//! `docs/semantics.md`; specified by `tests/vectors/strikes.json`.

use smallvec::SmallVec;

use crate::decision::Outcome;
use crate::id::AttemptId;
use crate::time::{Period, Timestamp};

/// What cancelling an attempt did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cancelled {
    /// The attempt no longer counted, or never did.
    Nothing,
    /// Its strike was taken back; a lockout that another attempt engaged stands.
    GivenBack,
    /// Its strike was taken back, and with it the lockout that this very attempt had engaged.
    Lifted,
}

impl Cancelled {
    /// `nothing`, `given_back` or `lifted`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::GivenBack => "given_back",
            Self::Lifted => "lifted",
        }
    }
}

/// Threshold and window of a strike rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) threshold: u32,
    pub(crate) window: Period,
}

/// The strikes of one key. A key without live state has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strikes {
    latest: LatestAndLock,
    /// The counted attempts, oldest first. While locked the last one is the engager:
    /// nothing is counted on a locked key, and cancelling keeps the order.
    counted: SmallVec<[AttemptId; 5]>,
}

/// The latest counted attempt's time and the lock, in one word: it keeps an entry within 80 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct LatestAndLock(u64);

impl LatestAndLock {
    fn new(latest: u64, locked: bool) -> Self {
        Self(latest << 1 | u64::from(locked))
    }

    fn latest(self) -> u64 {
        self.0 >> 1
    }

    fn locked(self) -> bool {
        self.0 & 1 == 1
    }
}

/// What an attempt on a key would meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It would be counted.
    Counts,
    /// It is counted already: a call repeated after a lost reply. It engaged the lockout, or not.
    Repeated { engager: bool },
    /// The key is locked for this many µs more.
    Locked { wait: u64 },
}

impl Policy {
    /// Whether the strikes still stand at `now`. One expiry, counting or locked: a window after the latest attempt.
    pub(crate) fn is_live(&self, strikes: &Strikes, now: Timestamp) -> bool {
        now.as_micros() < self.ends_at(strikes)
    }

    /// When the strikes expire, a lockout with them.
    pub(crate) fn ends_at(&self, strikes: &Strikes) -> u64 {
        strikes.latest.latest() + self.window.as_micros()
    }

    /// Whether the clock went back so far that the strikes lie more than a window ahead.
    pub(crate) fn needs_heal(&self, strikes: &Strikes, now: Timestamp) -> bool {
        strikes.latest.latest() > now.as_micros() + self.window.as_micros()
    }

    /// Makes strikes from the far future the most that `now` could have produced.
    pub(crate) fn heal(&self, strikes: &mut Strikes, now: Timestamp) {
        if self.needs_heal(strikes, now) {
            strikes.latest = LatestAndLock::new(now.as_micros(), strikes.is_locked());
        }
    }

    /// The test: what an attempt meets on live strikes (none: the key has no state). `repeats` is the id of
    /// one that may have been counted before.
    pub(crate) fn test(&self, strikes: Option<&Strikes>, repeats: Option<AttemptId>, now: Timestamp) -> Verdict {
        let Some(strikes) = strikes else { return Verdict::Counts };
        if repeats.is_some_and(|id| strikes.counted.contains(&id)) {
            return Verdict::Repeated { engager: strikes.engager() == repeats };
        }
        if strikes.is_locked() { Verdict::Locked { wait: self.reset_after(strikes, now) } } else { Verdict::Counts }
    }

    /// The commit: counts `id`. The strikes are live (healed if need be) or new, and not locked.
    pub(crate) fn commit(&self, strikes: &mut Strikes, id: AttemptId, now: Timestamp) -> Outcome {
        strikes.counted.push(id);
        let engages = strikes.counted.len() >= self.threshold as usize;
        // The later of the two: a clock that steps back must not end the window early.
        strikes.latest = LatestAndLock::new(strikes.latest.latest().max(now.as_micros()), engages);
        if engages { Outcome::AllowedLast } else { Outcome::Allowed }
    }

    /// How many more attempts would be counted.
    pub(crate) fn remaining(&self, strikes: Option<&Strikes>) -> u32 {
        match strikes {
            None => self.threshold,
            Some(strikes) if strikes.is_locked() => 0,
            Some(strikes) => self.threshold.saturating_sub(u32::try_from(strikes.counted.len()).unwrap_or(u32::MAX)),
        }
    }

    /// The time until live strikes expire; after a heal at most a window.
    pub(crate) fn reset_after(&self, strikes: &Strikes, now: Timestamp) -> u64 {
        if self.needs_heal(strikes, now) { self.window.as_micros() } else { self.ends_at(strikes) - now.as_micros() }
    }
}

#[cfg(feature = "redis")]
impl Strikes {
    /// Strikes as they were stored elsewhere: the ids oldest first, the engager last.
    pub(crate) fn from_parts(latest: u64, locked: bool, counted: impl Iterator<Item = AttemptId>) -> Self {
        Self { latest: LatestAndLock::new(latest, locked), counted: counted.collect() }
    }
}

impl Strikes {
    pub(crate) fn is_locked(&self) -> bool {
        self.latest.locked()
    }

    /// Whether no attempt counts any more; such a key is forgotten.
    pub(crate) fn is_empty(&self) -> bool {
        self.counted.is_empty()
    }

    /// Takes back exactly the attempt `id`; only the engager lifts the lockout. The end never moves.
    pub(crate) fn cancel(&mut self, id: AttemptId) -> Cancelled {
        let engager = self.engager();
        let Some(at) = self.counted.iter().position(|counted| *counted == id) else { return Cancelled::Nothing };
        self.counted.remove(at);
        if engager == Some(id) {
            self.latest = LatestAndLock::new(self.latest.latest(), false);
            return Cancelled::Lifted;
        }
        Cancelled::GivenBack
    }

    /// Takes back the oldest attempt without knowing whose it is; a lockout is left alone.
    pub(crate) fn refund(&mut self) {
        if !self.is_locked() && !self.counted.is_empty() {
            self.counted.remove(0);
        }
    }

    fn engager(&self) -> Option<AttemptId> {
        if self.is_locked() { self.counted.last().copied() } else { None }
    }
}
