//! Durations as people write them: `15m`, `1h30m`, `200 ms`; and how we print them.
//!
//! Pure. Invariant: what is printed reads back as the same number of microseconds.
//! Specified by `tests/vectors/rates.json`.

use crate::time::Period;

const UNITS: [(&[&str], u64); 7] = [
    (&["us", "microsecond", "microseconds"], 1),
    (&["ms", "millisecond", "milliseconds"], 1_000),
    (&["s", "sec", "secs", "second", "seconds"], 1_000_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000_000),
    (&["d", "day", "days"], 86_400_000_000),
    (&["w", "week", "weeks"], 604_800_000_000),
];

/// Why a text is not a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAPeriod {
    /// It does not read number-unit, number-unit, or one bare unit.
    Shape,
    /// A unit that we do not know; `month` and `year` have no fixed length.
    Unit,
    /// Below 1 µs or above 2^48 µs.
    Bounds,
}

/// Reads `15m`, `1h30m`, `2 hours` or a bare unit (`m` is `1m`), in any case, with spaces.
pub(crate) fn read(text: &str) -> Result<Period, NotAPeriod> {
    Period::from_micros(read_micros(text)?).ok_or(NotAPeriod::Bounds)
}

/// Reads the same as any number of microseconds, the largest for what 64 bits do not hold.
pub(crate) fn read_micros(text: &str) -> Result<u64, NotAPeriod> {
    read_parts(text).map_err(|reason| {
        // A word that is no unit explains more than the shape that it breaks.
        let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        if words.any(|word| scale_of(word).is_err()) { NotAPeriod::Unit } else { reason }
    })
}

/// Prints one integer in the largest of d h m s ms us that divides the period.
pub(crate) fn print(period: Period) -> String {
    let micros = period.as_micros();
    let (name, scale) = [5, 4, 3, 2, 1, 0]
        .map(|i| (UNITS[i].0[0], UNITS[i].1))
        .into_iter()
        .find(|(_, scale)| micros.is_multiple_of(*scale))
        .expect("1 µs divides every period");
    format!("{}{name}", micros / scale)
}

fn read_parts(text: &str) -> Result<u64, NotAPeriod> {
    let mut rest = text.trim();
    let mut total = 0_u64;
    let mut first = true;
    while first || !rest.is_empty() {
        let (number, unit, tail) = next_part(rest)?;
        if number.is_none() && !(first && tail.is_empty()) {
            return Err(NotAPeriod::Shape);
        }
        let scale = scale_of(unit)?;
        // Saturating: a number too long for u64 is out of bounds, not a number modulo 2^64.
        total = total.saturating_add(number.unwrap_or(1).saturating_mul(scale));
        rest = tail;
        first = false;
    }
    Ok(total)
}

/// Splits off one number and unit: `(number or none, unit, rest)`.
fn next_part(text: &str) -> Result<(Option<u64>, &str, &str), NotAPeriod> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = (digits > 0).then(|| text[..digits].parse().unwrap_or(u64::MAX));
    let text = text[digits..].trim_start();
    let letters = text.len() - text.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
    if letters == 0 {
        return Err(NotAPeriod::Shape);
    }
    Ok((number, &text[..letters], text[letters..].trim_start()))
}

fn scale_of(unit: &str) -> Result<u64, NotAPeriod> {
    let known = UNITS.iter().find(|(names, _)| names.iter().any(|name| name.eq_ignore_ascii_case(unit)));
    known.map(|(_, scale)| *scale).ok_or(NotAPeriod::Unit)
}
