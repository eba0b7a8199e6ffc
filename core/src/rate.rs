//! Rates and their text form: `5/1m,50/1h`.
//!
//! Pure. Invariant: [`Rates`] are in canonical order (period, then count) and free of duplicates,
//! so equal policies print alike and share a budget. Specified by `tests/vectors/rates.json`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use smallvec::SmallVec;

use crate::bounds::{MAX_RATES, RATE_COUNT, check_rate_count};
use crate::error::{Error, shown};
use crate::period_text::{self, NotAPeriod};
use crate::time::Period;

/// One rate: a burst of `count`, then one every `period / count`.
///
/// ```
/// # use std::time::Duration;
/// let rate = doorkeep::Rate::new(5, Duration::from_secs(60))?;
/// assert_eq!(rate.to_string(), "5/1m");
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u32,
    period: Period,
}

impl Rate {
    /// `count` (1 to 2^26) per `period` (1 µs to 2^48 µs, whole microseconds).
    ///
    /// # Errors
    /// A bound is passed, or the period is not a whole number of microseconds.
    pub fn new(count: u32, period: Duration) -> Result<Self, Error> {
        let count = RATE_COUNT.check(count)?;
        Ok(Self { count, period: Period::from_duration("rate period", period)? })
    }

    /// How many fit into a full window.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The length of the window.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period.as_duration()
    }

    pub(crate) fn period_micros(&self) -> u64 {
        self.period.as_micros()
    }

    pub(crate) fn period_text(&self) -> String {
        period_text::print(self.period)
    }

    /// The most that a greedy caller gets in `span` from a full window: ceil(span·count/period) + count - 1.
    fn max_in(&self, span: Duration) -> u64 {
        let spent = (span.as_micros() * u128::from(self.count)).div_ceil(u128::from(self.period_micros()));
        u64::try_from(spent + u128::from(self.count) - 1).unwrap_or(u64::MAX)
    }

    fn read(piece: &str) -> Result<Self, Error> {
        let shape = || Error::config(format!("rate must read count/period such as 5/1m, rate=`{}`", shown(piece)));
        let (count, period) = piece.split_once('/').ok_or_else(shape)?;
        let (count, period) = (count.trim(), period.trim());
        if count.is_empty() || period.is_empty() {
            return Err(shape());
        }
        let is_number = count.bytes().all(|b| b.is_ascii_digit());
        let count = count.parse().ok().filter(|count: &u32| is_number && RATE_COUNT.contains(*count));
        let count = count.ok_or_else(|| RATE_COUNT.refused("rate", shown(piece)))?;
        let period = period_text::read(period).map_err(|reason| match reason {
            NotAPeriod::Shape => shape(),
            NotAPeriod::Unit => Error::config(format!(
                "rate period has an unknown unit, use us, ms, s, m, h, d or w, rate=`{}`",
                shown(piece)
            )),
            NotAPeriod::Bounds => {
                Error::config(format!("rate period must be from 1us to {}us, rate=`{}`", Period::MAX, shown(piece)))
            }
        })?;
        Ok(Self { count, period })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, period_text::print(self.period))
    }
}

/// 1 to 16 rates that are decided together, in canonical order.
///
/// ```
/// # use std::time::Duration;
/// let rates: doorkeep::Rates = "50/1h; 5/minute".parse()?;
/// assert_eq!(rates.to_string(), "5/1m,50/1h");
/// assert_eq!(rates.max_in(Duration::from_secs(24 * 3600)), 1249);
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rates(SmallVec<[Rate; 2]>);

impl Rates {
    /// Rates in any order.
    ///
    /// # Errors
    /// None or more than 16 of them, or one stands twice.
    pub fn new(rates: impl IntoIterator<Item = Rate>) -> Result<Self, Error> {
        let mut rates: SmallVec<[Rate; 2]> = rates.into_iter().take(MAX_RATES + 1).collect();
        if rates.is_empty() {
            return Err(Error::config("rates must name at least one rate, rates=``"));
        }
        check_rate_count(rates.len())?;
        rates.sort_by_key(|rate| (rate.period, rate.count));
        match rates.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::config(format!("rate stands twice, rate=`{}`", pair[0]))),
            None => Ok(Self(rates)),
        }
    }

    /// The rates in canonical order: period ascending, then count.
    pub fn iter(&self) -> std::slice::Iter<'_, Rate> {
        self.0.iter()
    }

    /// The most calls that pass in any half-open span of this length; a greedy caller gets them in whole periods.
    #[must_use]
    pub fn max_in(&self, span: Duration) -> u64 {
        self.iter().map(|rate| rate.max_in(span)).min().unwrap_or(0)
    }
}

impl<'a> IntoIterator for &'a Rates {
    type Item = &'a Rate;
    type IntoIter = std::slice::Iter<'a, Rate>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromStr for Rates {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.trim().is_empty() {
            return Err(Error::config("rates must name at least one rate, rates=``"));
        }
        let pieces: SmallVec<[&str; 4]> = text.split([',', ';']).map(str::trim).collect();
        check_rate_count(pieces.len())?;
        let rates: Vec<Rate> = pieces.iter().map(|piece| Rate::read(piece)).collect::<Result<_, _>>()?;
        let twice = (1..rates.len()).find(|i| rates[..*i].contains(&rates[*i]));
        if let Some(i) = twice {
            return Err(Error::config(format!("rate stands twice, rate=`{}`", shown(pieces[i]))));
        }
        Self::new(rates)
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, rate) in self.iter().enumerate() {
            write!(f, "{}{rate}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
