//! Validates the arguments of host languages, in one place.
//!
//! A binding turns its arguments into [`Value`]s and passes them here, so that bounds, defaults and error texts are the
//! same in every language. Specified by `tests/vectors/config.json`.

mod durations;
mod identity;
#[cfg(feature = "redis")]
mod store;

pub use durations::{bucket_window, duration, lockout_window, rate_period, round_up, span, window};
pub use identity::{
    SPELLING_REACH, client_ip_header, drop_gmail_dots, drop_tags, email, not_headers, peer_not_text, username,
};
#[cfg(feature = "redis")]
pub use store::{name_required, store_clock, store_prefix, store_timeout};

use std::fmt;
use std::ops::RangeInclusive;

use crate::bounds::{self, Whole};
use crate::decision::OnError;
use crate::error::{Error, shown};
use crate::rule::Rule;
use crate::time::Timestamp;

const DEFAULT_CAPACITY: u64 = 100_000;
const DEFAULT_TRACKED_KEYS: u64 = 50_000;
const DEFAULT_BUCKET_RATE: u64 = 100;
const DEFAULT_BUCKET_CAPACITY: u64 = 10_000;

/// A value of a host language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A whole number; one beyond 128 bits may be passed as the nearest that fits.
    Integer(i128),
    /// A floating-point number, NaN and infinities included.
    Float(f64),
    /// A string, even if it looks like a number.
    Text(&'a str),
    /// A boolean, which is not a number.
    Bool(bool),
    /// Omitted: `None`, `undefined`, `null`.
    Missing,
    /// Anything else.
    Other,
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) if *number == 0.0 || (1e-6..1e21).contains(&number.abs()) => write!(f, "{number}"),
            // Values like 1e300, which would have hundreds of digits.
            Self::Float(number) => write!(f, "{number:e}"),
            Self::Text(text) => write!(f, "\"{}\"", shown(text)),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Missing => f.write_str("none"),
            Self::Other => f.write_str("a value of another type"),
        }
    }
}

/// The unit of a plain number that is a duration or an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, as in Python.
    Seconds,
    /// Milliseconds, as in JavaScript.
    Milliseconds,
}

impl Unit {
    /// Its microseconds.
    #[must_use]
    pub fn micros(self) -> u32 {
        10_u32.pow(self.decimals())
    }

    /// How many decimal places of the unit are whole microseconds.
    fn decimals(self) -> u32 {
        match self {
            Self::Seconds => 6,
            Self::Milliseconds => 3,
        }
    }
}

macro_rules! whole_numbers {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $bound:expr, $default:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// The value is not a whole number within these bounds.
        pub fn $name(value: Value<'_>) -> Result<$type, Error> {
            let number = whole($bound, value, $default)?;
            Ok(<$type>::try_from(number).expect("the bounds fit the type"))
        }
    )*};
}

const COST: Whole = Whole { name: "cost", min: 0, max: u32::MAX as u64 };

whole_numbers! {
    /// How many attempts lock a key: 1 to 1024, required.
    threshold: u32 = bounds::THRESHOLD, None;
    /// How many keys a strike table keeps: 1 to 2^30, default 50,000.
    max_tracked_keys: usize = bounds::MAX_TRACKED_KEYS, Some(DEFAULT_TRACKED_KEYS);
    /// The tokens of a full bucket: 1 to 2^26, default 100.
    bucket_rate: u32 = bounds::BUCKET_RATE, Some(DEFAULT_BUCKET_RATE);
    /// How many buckets a token bucket keeps: 1 to 2^30, default 10,000.
    bucket_capacity: usize = bounds::CAPACITY, Some(DEFAULT_BUCKET_CAPACITY);
    /// How many attempts a fixed window admits: 1 to 2^26, required.
    limit: u32 = bounds::LIMIT, None;
    /// How many keys a fixed window keeps: 1 to 2^30, default 100,000.
    max_keys: usize = bounds::MAX_WINDOW_KEYS, Some(DEFAULT_CAPACITY);
    /// How many windows a limiter keeps: 1 to 2^30, default 100,000.
    capacity: usize = bounds::CAPACITY, Some(DEFAULT_CAPACITY);
    /// The prefix that IPv6 addresses are cut to: 32 to 128, default 64.
    ipv6_prefix: u8 = bounds::IPV6_PREFIX, Some(u64::from(Rule::DEFAULT_IPV6_PREFIX));
    /// What an attempt costs: 0 to 2^32 - 1, default 1.
    cost: u32 = COST, Some(1);
    /// The count of a rate: 1 to 2^26, required.
    rate_count: u32 = bounds::RATE_COUNT, None;
}

/// The `n` of `allow_n`; a negative number is answered with false and is not an error.
///
/// # Errors
/// The value is not a whole number.
pub fn tokens(value: Value<'_>) -> Result<i64, Error> {
    let whole = as_integer(value).ok_or_else(|| Error::config(format!("n must be a whole number, value=`{value}`")))?;
    Ok(i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX }))
}

/// An instant, rounded to the nearest microsecond; missing is now.
///
/// # Errors
/// The value is not a number of 0 to 2^52 µs.
pub fn now(value: Value<'_>, unit: Unit) -> Result<Timestamp, Error> {
    let micros = match value {
        Value::Missing => return Ok(Timestamp::now()),
        Value::Integer(number) => number.saturating_mul(i128::from(unit.micros())),
        #[allow(clippy::cast_possible_truncation, reason = "finite; beyond 128 bits the cast saturates")]
        Value::Float(number) if number.is_finite() => (number * f64::from(unit.micros())).round() as i128,
        _ => return Err(Timestamp::out_of_range(&value.to_string())),
    };
    let instant = u64::try_from(micros).ok().and_then(|micros| Timestamp::from_micros(micros).ok());
    instant.ok_or_else(|| Timestamp::out_of_range(&micros.to_string()))
}

/// `local`, `open` or `closed`; missing is none.
///
/// # Errors
/// Any other value.
pub fn on_error(value: Value<'_>) -> Result<Option<OnError>, Error> {
    match value {
        Value::Missing => Ok(None),
        Value::Text("local") => Ok(Some(OnError::Local)),
        Value::Text("open") => Ok(Some(OnError::Open)),
        Value::Text("closed") => Ok(Some(OnError::Closed)),
        Value::Text(text) => {
            Err(Error::config(format!("on error must be local, open or closed, value=`{}`", shown(text))))
        }
        _ => Err(Error::config(format!("on error must be local, open or closed, value=`{value}`"))),
    }
}

/// The error for an unknown option.
#[must_use]
pub fn unknown_option(name: &str) -> Error {
    Error::config(format!("unknown option, option=`{}`", shown(name)))
}

/// The error for an option, by its name in the host, that must list classes of errors and does not.
#[must_use]
pub fn not_error_classes(option: &str) -> Error {
    Error::config(format!("{option} must list classes of exceptions"))
}

/// The error for a store that is not a store.
#[must_use]
pub fn no_store() -> Error {
    Error::config("store must be a RedisStore, or left out for memory")
}

/// The error for a key that is not a string.
#[must_use]
pub fn not_text() -> Error {
    Error::key("a key must be text")
}

/// The error for a part of a key that is not a string; parts count from 1.
#[must_use]
pub fn part_not_text(part: usize) -> Error {
    Error::key(format!("a key part must be text, part={part}"))
}

/// The error for a claim, used to limit issuing, that is neither a string nor a whole number. Ignoring it would lift
/// the limit.
#[must_use]
pub fn not_a_claim(name: &str) -> Error {
    Error::key(format!("a claim to limit by must be text or a whole number, claim=`{}`", shown(name)))
}

/// UTF-16 as WTF-8: surrogate pairs are joined and lone surrogates kept, so that different strings stay different keys.
#[must_use]
pub fn wtf8(units: &[u16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(units.len());
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let [high, low] = lone.unpaired_surrogate().to_be_bytes();
                // Three bytes as in UTF-8, 1110xxxx 10xxxxxx 10xxxxxx, for a code in D800..=DFFF.
                bytes.extend_from_slice(&[0xe0 | high >> 4, 0x80 | (high & 15) << 2 | low >> 6, 0x80 | low & 63]);
            }
        }
    }
    bytes
}

/// A whole number that only a host uses, by its name in errors; required.
///
/// # Errors
/// The value is not a whole number within these bounds.
pub fn whole_number(name: &'static str, bounds: RangeInclusive<u64>, value: Value<'_>) -> Result<u64, Error> {
    let (min, max) = bounds.into_inner();
    whole(Whole { name, min, max }, value, None)
}

fn whole(bound: Whole, value: Value<'_>, default: Option<u64>) -> Result<u64, Error> {
    let number = match value {
        Value::Missing => match default {
            Some(default) => return Ok(default),
            None => return Err(Error::config(format!("{} is required", bound.name))),
        },
        _ => as_integer(value).and_then(|number| u64::try_from(number).ok()),
    };
    number.filter(|number| bound.contains(*number)).ok_or_else(|| bound.refused("value", value))
}

fn as_integer(value: Value<'_>) -> Option<i128> {
    match value {
        Value::Integer(number) => Some(number),
        #[allow(clippy::cast_possible_truncation, reason = "a whole finite float; beyond 128 bits the cast saturates")]
        Value::Float(number) if number.is_finite() && number.fract() == 0.0 => Some(number as i128),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_rounded_to_the_nearest_microsecond() {
        let micros = |ms| now(Value::Float(ms), Unit::Milliseconds).map(Timestamp::as_micros);
        assert_eq!(micros(1.0004), Ok(1000));
        assert_eq!(micros(1.0006), Ok(1001));
        assert_eq!(micros(-0.0004), Ok(0));
        assert!(micros(-1.0).is_err() && micros(f64::NAN).is_err() && micros(f64::INFINITY).is_err());
    }

    #[test]
    fn lone_surrogates_stay_apart_and_pairs_are_joined() {
        assert_eq!(wtf8(&[0xd83d, 0xde00]), "😀".as_bytes());
        assert_eq!(wtf8(&[0xd800]), [0xed, 0xa0, 0x80]);
        assert_ne!(wtf8(&[0xd800]), wtf8(&[0xd801]));
    }
}
