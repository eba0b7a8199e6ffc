//! How long a call takes: the best of many short slices, or its spread call by call.

use std::hint::black_box;
use std::time::Instant;

const SLICES: usize = 60;

/// SplitMix64: a shuffle that costs nothing beside what is measured.
#[derive(Clone)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.word() >> 16) as usize % end
    }
}

/// Nanoseconds a call, one number for each contender: the best of short slices that take turns, so that
/// what else the machine does hits none of them alone and most slices not at all.
pub(crate) fn compare<const N: usize>(calls: usize, contenders: [&mut dyn FnMut(usize) -> bool; N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    let mut contenders = contenders;
    for slice in (0..calls).collect::<Vec<_>>().chunks(calls / SLICES) {
        for (contender, best) in contenders.iter_mut().zip(&mut best) {
            let start = Instant::now();
            for i in slice {
                black_box(contender(*i));
            }
            *best = best.min(start.elapsed().as_nanos() as f64 / slice.len() as f64);
        }
    }
    best
}

pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// The spread of single calls, what reading the clock costs taken off.
pub(crate) fn spread(calls: usize, mut call: impl FnMut(usize) -> bool) -> Spread {
    let empty = (0..10_000).map(|_| Instant::now().elapsed().as_nanos()).min().unwrap_or(0) as f64;
    let time = |i| {
        let start = Instant::now();
        black_box(call(i));
        start.elapsed().as_nanos() as f64 - empty
    };
    let mut times: Vec<f64> = (0..calls).map(time).collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((calls as f64 * share) as usize).min(calls - 1)].max(1.0);
    Spread { p50: at(0.5), p999: at(0.999), max: at(1.0) }
}
