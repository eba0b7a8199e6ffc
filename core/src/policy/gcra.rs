//! One rate, "count per period, burst = count", as a pure step on the moment of fullness.
//!
//! Knows nothing of clocks, locks or stores. Invariant: the emission interval is kept as an exact
//! fraction, so a call denied with a wait of r is admitted at now + r and denied 1 µs before.
//! Specified by `tests/vectors/gcra.json`.

use crate::decision::Wait;
use crate::rate::Rate;
use crate::time::Timestamp;

/// The moment at which a window is full again: `whole + part/Q` µs, 0 <= part < Q.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FullAt {
    pub(crate) whole: u64,
    pub(crate) part: u32,
}

impl FullAt {
    pub(crate) fn at(now: Timestamp) -> Self {
        Self { whole: now.as_micros(), part: 0 }
    }

    fn rounded_up(self) -> u64 {
        self.whole + u64::from(self.part > 0)
    }

    /// Whether the window is full, and its state forgotten.
    pub(crate) fn is_past(self, now: Timestamp) -> bool {
        self.rounded_up() <= now.as_micros()
    }

    /// The wait until the window is full, rounded up.
    pub(crate) fn reset_after(self, now: Timestamp) -> u64 {
        self.rounded_up().saturating_sub(now.as_micros())
    }
}

/// A state as a call at `now` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) full_at: FullAt,
    /// The state lay too far in the future; a call that writes stores the mended one.
    pub(crate) healed: bool,
}

/// A rate, prepared: the emission interval period/count as `interval + fraction/q`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gcra {
    count: u32,
    period: u64,
    interval: u64,
    fraction: u32,
    q: u32,
    /// period / gcd(count, period): the numerator of the interval over `q`.
    numerator: u64,
}

#[cfg(feature = "redis")]
impl Gcra {
    pub(crate) fn period(&self) -> u64 {
        self.period
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// What a call of cost `n` adds to the moment of fullness; for more than a window ever holds, too much for it.
    pub(crate) fn charge(&self, n: u32) -> (u64, u32) {
        self.intervals(n.min(self.count + 1))
    }
}

impl Gcra {
    pub(crate) fn new(rate: &Rate) -> Self {
        let (count, period) = (rate.count(), rate.period_micros());
        let common = gcd(u64::from(count), period);
        let numerator = period / common;
        let q = u64::from(count) / common;
        let narrow = |n: u64| u32::try_from(n).expect("at most the count");
        Self { count, period, interval: numerator / q, fraction: narrow(numerator % q), q: narrow(q), numerator }
    }

    /// The denominator of every `part` under this rate.
    pub(crate) fn q(&self) -> u32 {
        self.q
    }

    pub(crate) fn load(&self, state: Option<FullAt>, now: Timestamp) -> View {
        match state {
            Some(full_at) if full_at.whole > now.as_micros() + 2 * self.period => {
                View { full_at: self.spent_from(now), healed: true }
            }
            Some(full_at) if full_at.whole >= now.as_micros() => View { full_at, healed: false },
            _ => View { full_at: FullAt::at(now), healed: false },
        }
    }

    /// The state after counting `n`, or the wait until that is possible.
    pub(crate) fn test(&self, full_at: FullAt, now: Timestamp, n: u32) -> Result<FullAt, Wait> {
        if n > self.count {
            return Err(Wait::Never);
        }
        let (interval, fraction) = self.intervals(n);
        let after = self.plus(full_at, interval, fraction);
        let limit = now.as_micros() + self.period;
        if after.rounded_up() <= limit { Ok(after) } else { Err(Wait::Micros(after.rounded_up() - limit)) }
    }

    /// The most that `now` could have spent: the window is full again a period from now.
    pub(crate) fn spent_from(&self, now: Timestamp) -> FullAt {
        FullAt { whole: now.as_micros() + self.period, part: 0 }
    }

    /// The largest cost that [`Gcra::test`] would still allow.
    pub(crate) fn remaining(&self, full_at: FullAt, now: Timestamp) -> u32 {
        let limit = now.as_micros() + self.period;
        let Some(slack) = limit.checked_sub(full_at.rounded_up()) else { return 0 };
        // slack counts from the rounded-up moment; what rounding took is (q - part)/q of a microsecond.
        let spare = if full_at.part == 0 { 0 } else { self.q - full_at.part };
        let n = match slack.checked_mul(u64::from(self.q)).and_then(|scaled| scaled.checked_add(u64::from(spare))) {
            Some(scaled) => scaled / self.numerator,
            None => {
                let scaled = u128::from(slack) * u128::from(self.q) + u128::from(spare);
                u64::try_from(scaled / u128::from(self.numerator)).unwrap_or(u64::MAX)
            }
        };
        u32::try_from(n).map_or(self.count, |n| n.min(self.count))
    }

    /// Takes back a charge of `n` that was counted `elapsed` µs ago; none when the window is full then.
    ///
    /// What has refilled since is not given twice: a history with a give back is never richer
    /// than the same history without the attempt.
    pub(crate) fn give_back(&self, full_at: FullAt, n: u32, elapsed: u64, now: Timestamp) -> Option<FullAt> {
        let (interval, fraction) = self.intervals(n);
        let left = match interval.checked_sub(elapsed) {
            Some(interval) => self.minus(full_at, interval, fraction),
            None => full_at,
        };
        (!left.is_past(now)).then_some(left)
    }

    /// `n` emission intervals, exactly. n and fraction are below 2^26, so no product passes 2^52.
    fn intervals(&self, n: u32) -> (u64, u32) {
        let parts = u64::from(n) * u64::from(self.fraction);
        let q = u64::from(self.q);
        (u64::from(n) * self.interval + parts / q, u32::try_from(parts % q).expect("below q"))
    }

    fn plus(&self, full_at: FullAt, whole: u64, part: u32) -> FullAt {
        let sum = full_at.part + part;
        let carry = sum >= self.q;
        FullAt { whole: full_at.whole + whole + u64::from(carry), part: if carry { sum - self.q } else { sum } }
    }

    fn minus(&self, full_at: FullAt, whole: u64, part: u32) -> FullAt {
        let borrow = full_at.part < part;
        let taken = whole + u64::from(borrow);
        match full_at.whole.checked_sub(taken) {
            Some(whole) => {
                FullAt { whole, part: if borrow { full_at.part + self.q - part } else { full_at.part - part } }
            }
            None => FullAt { whole: 0, part: 0 },
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
