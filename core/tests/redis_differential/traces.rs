//! Random policies, moments and calls, awkward on purpose.

use std::time::Duration;

use doorkeep::{Rate, Rates, Rule};
use proptest::prelude::*;

/// A policy in numbers, so that a failing trace prints as such.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    Rates(Vec<(u32, u64)>),
    Strikes(u32, u64),
}

impl Policy {
    pub(crate) fn rule(&self, name: &str) -> Rule {
        match self {
            Self::Rates(rates) => {
                let mut rates = rates.clone();
                rates.sort_unstable();
                rates.dedup();
                let rates = rates.into_iter().map(|(count, period)| Rate::new(count, Duration::from_micros(period)));
                let rates: Result<Vec<Rate>, _> = rates.collect();
                Rule::new(name, Rates::new(rates.unwrap()).unwrap()).unwrap()
            }
            Self::Strikes(threshold, window) => {
                Rule::strikes(name, *threshold, Duration::from_micros(*window)).unwrap()
            }
        }
    }

    pub(crate) fn longest(&self) -> u64 {
        match self {
            Self::Rates(rates) => rates.iter().map(|(_, period)| *period).max().unwrap(),
            Self::Strikes(_, window) => *window,
        }
    }
}

pub(crate) fn period() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 1..40_u64,
        2 => prop::sample::select(vec![60_000_000, 3_600_000_000, 4_294_967_291, 1_000_003]),
        1 => (1_u64 << 48) - 2..=1 << 48,
    ]
}

pub(crate) fn count() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 1..7_u32,
        1 => prop::sample::select(vec![7, 4093, 65_537, 33_554_393]),
        1 => (1_u32 << 26) - 2..=1 << 26,
    ]
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        prop::collection::vec((count(), period()), 1..4).prop_map(Policy::Rates),
        (1..5_u32, period()).prop_map(|(threshold, window)| Policy::Strikes(threshold, window)),
    ]
}

/// How the clock moves before a call, in units of the trace's longest window where it moves far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tick {
    Ahead(u64),
    Back(u64),
    /// Thousandths of the longest window.
    FarAhead(u64),
    FarBack(u64),
}

pub(crate) fn tick() -> impl Strategy<Value = Tick> {
    prop_oneof![
        8 => (0..4_u64).prop_map(Tick::Ahead),
        3 => (0..60_u64).prop_map(Tick::Ahead),
        3 => (0..2500_u64).prop_map(Tick::FarAhead),
        2 => (0..12_u64).prop_map(Tick::Back),
        2 => (0..5000_u64).prop_map(Tick::FarBack),
    ]
}

/// The clock of a trace.
pub(crate) struct Clock {
    pub(crate) now: u64,
    pub(crate) longest: u64,
    latest: u64,
    /// How far a state was ahead of the clock at most: what settles never heals.
    pub(crate) reach: u64,
}

impl Clock {
    pub(crate) fn new(longest: u64) -> Self {
        let now = longest.saturating_mul(4).min(1 << 51);
        Self { now, longest, latest: now, reach: longest }
    }

    pub(crate) fn tick(&mut self, tick: Tick) -> u64 {
        self.now = tick.from(self.now, self.longest);
        self.latest = self.latest.max(self.now);
        self.reach = self.reach.max(self.latest + self.longest - self.now);
        self.now
    }
}

impl Tick {
    /// The next moment, within the bounds of time.
    fn from(self, now: u64, longest: u64) -> u64 {
        let far = |thousandths: u64| u64::try_from(u128::from(longest) * u128::from(thousandths) / 1000).unwrap();
        let next = match self {
            Self::Ahead(by) => now + by,
            Self::Back(by) => now.saturating_sub(by),
            Self::FarAhead(by) => now + far(by),
            Self::FarBack(by) => now.saturating_sub(far(by)),
        };
        next.min(1 << 52)
    }
}

pub(crate) fn cost() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(1_u32), 3 => 0..8_u32, 1 => prop::sample::select(vec![4093, 1 << 25, u32::MAX])]
}
