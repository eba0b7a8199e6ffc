//! Durations of host languages: a number in the unit of the host, or a string such as `15m`.
//!
//! Invariant: a duration is a whole number of microseconds, never rounded. Specified by `tests/vectors/config.json`.

use std::time::Duration;

use crate::error::Error;
use crate::host::input::{Unit, Value};
use crate::http::RoundUp;
use crate::period_text;
use crate::time::{Period, Timestamp, out_of_range};

const DEFAULT_BUCKET_WINDOW: &str = "1m";

macro_rules! durations {
    ($($(#[$doc:meta])* $name:ident = $what:literal, $default:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// The value is not a whole number of microseconds within 1 µs to 2^48 µs.
        pub fn $name(value: Value<'_>, unit: Unit) -> Result<Duration, Error> {
            duration_or($what, value, unit, $default)
        }
    )*};
}

durations! {
    /// How long a key stays locked, required.
    lockout_window = "lockout window", None;
    /// The window of a token bucket, default one minute.
    bucket_window = "window", Some(DEFAULT_BUCKET_WINDOW);
    /// The window of a fixed window, required.
    window = "window", None;
    /// The period of a rate, required.
    rate_period = "rate period", None;
}

/// The span of a bound, required.
///
/// # Errors
/// The value is not a whole number of microseconds within 1 µs to 2^52 µs.
pub fn span(value: Value<'_>, unit: Unit) -> Result<Duration, Error> {
    let max = Timestamp::MAX.as_micros();
    let micros = micros("span", value, unit, None)?.filter(|micros| (1..=max).contains(micros));
    micros.map(Duration::from_micros).ok_or_else(|| out_of_range("span", max, &value.to_string()))
}

/// The multiple that HTTP waits are rounded up to; missing is none.
///
/// # Errors
/// The value is not a duration of whole seconds from 1 s to 2^48 µs.
pub fn round_up(value: Value<'_>, unit: Unit) -> Result<Option<RoundUp>, Error> {
    match value {
        Value::Missing => Ok(None),
        _ => duration("round up", value, unit).and_then(RoundUp::new).map(Some),
    }
}

/// A duration that only a host uses, by its name in errors; required.
///
/// # Errors
/// The value is not a whole number of microseconds within 1 µs to 2^48 µs.
pub fn duration(what: &str, value: Value<'_>, unit: Unit) -> Result<Duration, Error> {
    duration_or(what, value, unit, None)
}

fn duration_or(what: &str, value: Value<'_>, unit: Unit, default: Option<&str>) -> Result<Duration, Error> {
    let period = micros(what, value, unit, default)?.and_then(Period::from_micros);
    period.map(Period::as_duration).ok_or_else(|| out_of_range(what, Period::MAX, &value.to_string()))
}

/// The microseconds of any 64-bit number as it was written; none if it is not a whole number of microseconds.
fn micros(what: &str, value: Value<'_>, unit: Unit, default: Option<&str>) -> Result<Option<u64>, Error> {
    let unreadable = |_| Error::config(format!("{what} must read like 15m, 1h30m or 200ms, value=`{value}`"));
    match value {
        Value::Missing => match default {
            Some(default) => period_text::read_micros(default).map(Some).map_err(unreadable),
            None => Err(Error::config(format!("{what} is required"))),
        },
        Value::Integer(number) => {
            let micros = number.checked_mul(i128::from(unit.micros()));
            Ok(micros.and_then(|micros| u64::try_from(micros).ok()))
        }
        Value::Float(number) => Ok(decimal_micros(&number.to_string(), unit.decimals())),
        Value::Text(text) => period_text::read_micros(text).map(Some).map_err(unreadable),
        Value::Bool(_) | Value::Other => Ok(None),
    }
}

/// Parses exactly the decimal that a float prints as; none if it has a fraction of a microsecond.
///
/// Binary rounding must not matter: 1.001 s is 1,001,000 µs although 1.001 * 1e6 is not.
fn decimal_micros(text: &str, decimals: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let missing = decimals.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    digits.checked_mul(10_u64.pow(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_is_read_as_the_decimal_that_it_prints_as() {
        let micros = |seconds| window(Value::Float(seconds), Unit::Seconds).map(|d| d.as_micros());
        assert_eq!(micros(1.001), Ok(1_001_000));
        assert_eq!(micros(0.000_001), Ok(1));
        assert_eq!(micros(900.0), Ok(900_000_000));
        for refused in [5e-7, 1.000_000_1, 0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(micros(refused).is_err(), "{refused}");
        }
    }
    #[test]
    fn a_span_goes_further_than_a_period_however_it_is_written() {
        let micros = |value| span(value, Unit::Seconds).map(|d| d.as_micros());
        assert_eq!(micros(Value::Text("4000d")), Ok(345_600_000_000_000));
        assert_eq!(micros(Value::Integer(345_600_000)), micros(Value::Text("4000d")));
        assert_eq!(micros(Value::Text("4503599627370496us")), Ok(1 << 52));
        for beyond in ["4503599627370497us", "60000d", "0s"] {
            let refused = micros(Value::Text(beyond)).unwrap_err().to_string();
            assert!(refused.contains("from 1 to 4503599627370496"), "{refused}");
        }
        assert!(window(Value::Text("4000d"), Unit::Seconds).is_err());
        assert!(micros(Value::Text("4 moons")).unwrap_err().to_string().contains("must read like"));
    }
}
