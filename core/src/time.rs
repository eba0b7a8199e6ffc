//! Instants and periods as integer microseconds, and the one place that reads a clock.
//!
//! Knows nothing of limiters. Invariant: a [`Timestamp`] is at most 2^52 and a [`Period`] is
//! 1..=2^48, so every product in the policies fits in 2^53, the integers that Lua and JavaScript
//! hold exactly.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::Error;

/// An instant: microseconds since the Unix epoch, 0 to 2^52 (the year 2112).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The latest instant: 2^52 µs.
    pub const MAX: Self = Self(1 << 52);

    /// An instant from microseconds since the Unix epoch.
    ///
    /// # Errors
    /// `micros` is above 2^52.
    pub fn from_micros(micros: u64) -> Result<Self, Error> {
        if micros <= Self::MAX.0 { Ok(Self(micros)) } else { Err(Self::out_of_range(&micros.to_string())) }
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// Now, by a monotonic clock that is anchored to the Unix epoch once in a process.
    ///
    /// A step of the system clock after that does not move it, so it ends no lockout early.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one place that reads a clock")]
    pub fn now() -> Self {
        static ANCHOR: OnceLock<(Instant, u64)> = OnceLock::new();
        let (start, epoch) = ANCHOR.get_or_init(|| {
            let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            (Instant::now(), whole_micros(epoch))
        });
        Self((epoch + whole_micros(start.elapsed())).min(Self::MAX.0))
    }

    /// The time since `earlier` in µs; 0 when `earlier` is not earlier.
    pub(crate) fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) fn out_of_range(shown: &str) -> Error {
        Error::config(format!("now must be from 0 to {} microseconds, value=`{shown}`", Self::MAX.0))
    }
}

/// Microseconds since the Unix epoch by the system's clock. Steps as that does, but goes on while the machine sleeps:
/// for how long nothing was heard, never for a decision.
#[cfg(feature = "redis")]
#[allow(clippy::disallowed_methods, reason = "the one place that reads a clock")]
pub(crate) fn system_micros() -> u64 {
    whole_micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// A configured length of time: 1 to 2^48 µs (8.9 years).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Period(u64);

impl Period {
    pub(crate) const MAX: u64 = 1 << 48;

    pub(crate) fn from_micros(micros: u64) -> Option<Self> {
        (1..=Self::MAX).contains(&micros).then_some(Self(micros))
    }

    /// A duration as a period; never rounded, since a lockout shorter than the one written is a hole.
    pub(crate) fn from_duration(what: &str, duration: Duration) -> Result<Self, Error> {
        let micros = duration.as_micros();
        let whole = duration.subsec_nanos().is_multiple_of(1000);
        let period = u64::try_from(micros).ok().filter(|_| whole).and_then(Self::from_micros);
        let shown = || if whole { micros.to_string() } else { format!("{duration:?}") };
        period.ok_or_else(|| out_of_range(what, Self::MAX, &shown()))
    }

    pub(crate) fn as_micros(self) -> u64 {
        self.0
    }

    pub(crate) fn as_duration(self) -> Duration {
        Duration::from_micros(self.0)
    }
}

/// A length of time is not a whole number of microseconds from 1 to `max`.
pub(crate) fn out_of_range(what: &str, max: u64, shown: &str) -> Error {
    Error::config(format!("{what} must be a whole number of microseconds from 1 to {max}, value=`{shown}`"))
}

fn whole_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_above_2_to_52_is_refused() {
        assert!(Timestamp::from_micros(1 << 52).is_ok());
        assert!(Timestamp::from_micros((1 << 52) + 1).is_err());
    }

    #[test]
    fn a_period_is_never_rounded() {
        assert!(Period::from_duration("window", Duration::from_nanos(1500)).is_err());
        assert!(Period::from_duration("window", Duration::ZERO).is_err());
        assert!(Period::from_duration("window", Duration::from_micros((1 << 48) + 1)).is_err());
        assert_eq!(Period::from_duration("window", Duration::from_micros(1)).map(Period::as_micros), Ok(1));
    }

    #[test]
    fn now_does_not_go_back() {
        let first = Timestamp::now();
        assert!(first <= Timestamp::now());
    }
}
