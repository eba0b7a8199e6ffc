//! Waits in bins of fixed number: the quantiles of a stream of any length.
//!
//! Invariant: a quantile is at most 1/32 above the true one and never above the largest value; the largest is exact.

const STEPS: u64 = 32;
const BINS: usize = 60 * 32;

#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    bins: Vec<u64>,
    count: u64,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { bins: vec![0; BINS], count: 0, max: 0 }
    }

    pub(crate) fn add(&mut self, micros: u64) {
        self.bins[bin_of(micros)] += 1;
        self.count += 1;
        self.max = self.max.max(micros);
    }

    pub(crate) fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The value that `percent` of all are not above.
    pub(crate) fn quantile(&self, percent: u64) -> Option<u64> {
        let wanted = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut seen = 0_u128;
        let bin = self.bins.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        })?;
        (self.count > 0).then(|| highest_in(bin).min(self.max))
    }
}

/// 0 to 31 each have their own bin; above, every doubling has 32.
fn bin_of(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let doubling = u64::from(value.ilog2()) - 5;
    (STEPS * doubling + (value >> doubling)) as usize
}

fn highest_in(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < STEPS {
        return bin;
    }
    let doubling = bin / STEPS - 1;
    let step = bin % STEPS + STEPS;
    ((u128::from(step + 1) << doubling) - 1).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_step_of_the_true_ones() {
        let mut histogram = Histogram::new();
        (1..=100_000).for_each(|value| histogram.add(value * 1000));
        for (percent, exact) in [(50, 50_000_000), (95, 95_000_000), (100, 100_000_000)] {
            let found = histogram.quantile(percent).unwrap();
            assert!(exact <= found && found <= exact + exact / 32, "{percent}: {found}");
        }
        assert_eq!(histogram.max(), Some(100_000_000));
    }

    #[test]
    fn every_value_lies_in_its_bin_and_nothing_has_no_quantile() {
        for value in [0, 1, 31, 32, 33, 63, 64, 1000, 1 << 40, u64::MAX] {
            let bin = bin_of(value);
            assert!(value <= highest_in(bin) && (bin == 0 || highest_in(bin - 1) < value), "{value}");
        }
        assert_eq!(Histogram::new().quantile(50), None);
    }
}
