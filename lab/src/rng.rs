//! Random draws that are the same on every machine.
//!
//! Integers only; the one logarithm is computed in software, since the rounding of a platform's own differs.
//! Invariant: a seed and a stream repeat their draws, and a new stream changes no other.

use doorkeep::Rate;

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(mix(seed ^ mix(stream.wrapping_add(1))))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// 0 to `end` - 1; the bias is below `end` / 2^64.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        u32::try_from((u128::from(self.word()) * u128::from(end)) >> 64).expect("below a number of 32 bits")
    }

    /// From 0 up to, and not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        to_unit(self.word())
    }

    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// The time in µs between two events of a Poisson stream.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturating")]
    pub(crate) fn gap(&mut self, mean: f64) -> u64 {
        (-libm::log1p(-self.unit()) * mean + 0.5) as u64
    }
}

/// The time from one event of a rate to the next in µs, as a mean.
#[allow(clippy::cast_precision_loss, reason = "a period is at most 2^48")]
pub(crate) fn mean_gap(rate: &Rate) -> f64 {
    rate.period().as_micros() as f64 / f64::from(rate.count())
}

/// The number in 0..1 that belongs to `id`, whoever asks and whenever.
pub(crate) fn unit_of(seed: u64, id: u64) -> f64 {
    to_unit(mix(mix(seed ^ 0x6163_636f_756e_7473).wrapping_add(mix(id))))
}

/// Scatters the bits of a word.
pub(crate) fn mix(word: u64) -> u64 {
    let z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[allow(clippy::cast_precision_loss, reason = "53 bits are kept, exactly")]
fn to_unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_stream_repeat_their_draws() {
        let draws = |seed, stream| {
            let mut rng = Rng::new(seed, stream);
            (rng.word(), rng.below(10), rng.unit().to_bits(), rng.gap(1e9))
        };
        assert_eq!(draws(1, 0), draws(1, 0));
        assert_ne!(draws(1, 0), draws(1, 1));
        assert_ne!(draws(1, 0), draws(2, 0));
    }

    #[test]
    fn waits_of_a_poisson_stream_have_the_mean_that_they_are_measured_in() {
        let mut rng = Rng::new(7, 7);
        let mean = (0..100_000).map(|_| rng.gap(1e6)).sum::<u64>() / 100_000;
        // The standard error is 1e6 / sqrt(100,000) = 3,162; four of them.
        assert!(mean.abs_diff(1_000_000) < 13_000, "{mean}");
    }
}
