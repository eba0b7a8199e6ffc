//! Random policies and moments, awkward on purpose.

use crate::model::{Policy, Rate, Strikes};
use crate::rng::Rng;

/// 2^26, the most that a window may hold, and 2^48, the longest period.
pub(crate) const MAX_COUNT: u64 = 1 << 26;
pub(crate) const MAX_PERIOD: u64 = 1 << 48;

/// Counts and periods of every size, co-prime more often than not, the bounds among them.
pub(crate) fn awkward_rate(rng: &mut Rng) -> Rate {
    let count = match rng.below(5) {
        0 => 1 + rng.below(12),
        1 => MAX_COUNT - rng.below(3),
        2 => [7, 4093, 65_537, 33_554_393][rng.index(4)],
        3 => 1 << rng.below(27),
        _ => 1 + rng.of_any_size(26),
    };
    let period = match rng.below(5) {
        0 => 1 + rng.below(100),
        1 => MAX_PERIOD - rng.below(3),
        2 => [60_000_000, 3_600_000_000, 4_294_967_291, 1_000_003][rng.index(4)],
        3 => 1 << rng.below(49),
        _ => 1 + rng.of_any_size(48),
    };
    Rate { count: u32::try_from(count).unwrap(), period }
}

/// 1 to `most` rates in canonical order, none twice.
pub(crate) fn rates(rng: &mut Rng, most: u64, mut rate: impl FnMut(&mut Rng) -> Rate) -> Policy {
    let mut rates: Vec<Rate> = (0..=rng.below(most)).map(|_| rate(rng)).collect();
    rates.sort_by_key(|rate| (rate.period, rate.count));
    rates.dedup();
    Policy::Rates(rates)
}

/// Small numbers that collide often: ties, boundaries and expiries at once.
pub(crate) fn small_rate(rng: &mut Rng) -> Rate {
    Rate { count: 1 + rng.small(6), period: 1 + rng.below(40) }
}

pub(crate) fn small_strikes(rng: &mut Rng) -> Policy {
    Policy::Strikes(Strikes { threshold: 1 + rng.small(4), window: 1 + rng.below(40) })
}

/// One to three rules of both kinds.
pub(crate) fn small_rules(rng: &mut Rng) -> Vec<Policy> {
    let count = 1 + rng.index(3);
    let rule = |rng: &mut Rng| if rng.one_in(2) { small_strikes(rng) } else { rates(rng, 3, small_rate) };
    (0..count).map(|_| rule(rng)).collect()
}

/// How the clock moves between calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Forward,
    /// Back a little and a lot, too.
    Unsteady,
}

pub(crate) fn tick(rng: &mut Rng, now: u64, clock: Clock) -> u64 {
    match (clock, rng.below(24)) {
        (_, 0..=8) => now,
        (_, 9..=16) => now + rng.below(4),
        (Clock::Forward, _) | (_, 17..=19) => now + rng.below(50),
        (Clock::Unsteady, 20..=22) => now.saturating_sub(rng.below(12)),
        (Clock::Unsteady, _) => now.saturating_sub(rng.below(300)),
    }
}
