//! What is defended with: the limiter of a scenario, and what a success does to it.
//!
//! Pure data, with the one place that turns it into a subject.

use std::time::Duration;

use doorkeep::{AttemptLimiter, FixedWindow, Rule, Strikes, TokenBucket};

use crate::error::Error;
use crate::subject::Subject;
use crate::subjects::{Bucket, FirstComes, RuleSet, SEED, StrikeKeys};

/// The limiter of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// A [`Limiter`](doorkeep::Limiter) that every attempt asks with one key for each of these rules, in this order.
    Rules(Rules),
    /// An [`AttemptLimiter`].
    AttemptLimiter {
        /// How it counts.
        strikes: Strikes,
        /// What its key is made of.
        by: By,
        /// Whether a success resets the key.
        forgive: bool,
        /// Whether a success cancels its own attempt.
        give_back: bool,
    },
    /// A [`TokenBucket`].
    TokenBucket {
        /// Tokens of a full bucket.
        rate: u32,
        /// How long an empty bucket takes to fill.
        window: Duration,
        /// How many buckets are held.
        capacity: usize,
        /// What its key is made of.
        by: By,
        /// Whether a success resets the key.
        forgive: bool,
    },
    /// A [`FixedWindow`].
    FixedWindow {
        /// Attempts in a window.
        limit: u32,
        /// Its length.
        window: Duration,
        /// How many keys are held.
        max_keys: usize,
        /// What its key is made of.
        by: By,
        /// Whether a success resets the key.
        forgive: bool,
    },
}

/// Rules in call order, and what a success does to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// At least one; each says by `by` what its key is made of.
    pub rules: Vec<Rule>,
    /// How many windows are held, and how many keys of each strike rule.
    pub capacity: usize,
    /// Rules that a success resets.
    pub forgive: Vec<String>,
    /// Rules whose charge a success gives back.
    pub give_back: Vec<String>,
    /// Like `forgive`, for rules keyed by an address alone.
    pub forgive_address: Vec<String>,
}

/// What a key is made of. `address` is the client's; any other word stands for the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By {
    /// The account is a part of the key.
    pub account: bool,
    /// The address is a part of the key.
    pub address: bool,
}

impl By {
    /// Read from the words of a rule.
    pub(crate) fn of(words: &[String]) -> Self {
        let address = words.iter().any(|word| word == Rule::ADDRESS);
        Self { account: words.iter().any(|word| word != Rule::ADDRESS), address }
    }
}

/// The most that an account gets without ever being denied: `attempts` at once, then nothing for `every` µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unnoticed {
    pub(crate) attempts: u32,
    pub(crate) every: u64,
}

impl Policy {
    /// A fresh limiter with empty tables.
    pub(crate) fn subject(&self) -> Result<Box<dyn Subject>, Error> {
        Ok(match self {
            Self::Rules(rules) => Box::new(RuleSet::new(rules)?),
            Self::AttemptLimiter { strikes, by, forgive, give_back } => {
                Box::new(StrikeKeys::new(AttemptLimiter::new(*strikes)?, *by, *forgive, *give_back))
            }
            Self::TokenBucket { rate, window, capacity, by, forgive } => {
                let bucket = TokenBucket::new(*rate, *window, *capacity)?.with_seed(SEED);
                Box::new(Bucket::new(bucket, *by, *forgive))
            }
            Self::FixedWindow { limit, window, max_keys, by, forgive } => {
                Box::new(FirstComes::new(FixedWindow::new(*limit, *window, *max_keys)?, *by, *forgive))
            }
        })
    }

    /// How many keys one process holds.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Rules(rules) => rules.capacity,
            Self::AttemptLimiter { strikes, .. } => strikes.max_tracked_keys,
            Self::TokenBucket { capacity, .. } => *capacity,
            Self::FixedWindow { max_keys, .. } => *max_keys,
        }
    }

    /// The fewest strikes that lock an account, if any lock one.
    pub(crate) fn threshold(&self) -> Option<u32> {
        match self {
            Self::Rules(rules) => rules.rules.iter().filter_map(Rule::threshold).min(),
            Self::AttemptLimiter { strikes, .. } => Some(strikes.threshold),
            Self::TokenBucket { .. } | Self::FixedWindow { .. } => None,
        }
    }

    /// Whether strikes are counted against an address, alone or with an account.
    pub(crate) fn strikes_addresses(&self) -> bool {
        match self {
            Self::Rules(rules) => {
                rules.rules.iter().any(|rule| rule.threshold().is_some() && By::of(rule.by()).address)
            }
            Self::AttemptLimiter { by, .. } => by.address,
            Self::TokenBucket { .. } | Self::FixedWindow { .. } => false,
        }
    }

    /// Whether an address is limited whatever the account.
    pub(crate) fn limits_addresses(&self) -> bool {
        match self {
            Self::Rules(rules) => rules.rules.iter().any(|rule| !By::of(rule.by()).account),
            Self::AttemptLimiter { by, .. } | Self::TokenBucket { by, .. } | Self::FixedWindow { by, .. } => {
                !by.account
            }
        }
    }

    /// The longest prefix that it tells addresses apart by.
    pub(crate) fn ipv6_prefix(&self) -> u8 {
        match self {
            Self::Rules(rules) => {
                let by_address = rules.rules.iter().filter(|rule| By::of(rule.by()).address);
                by_address.map(Rule::ipv6_prefix).max().unwrap_or(Rule::DEFAULT_IPV6_PREFIX)
            }
            _ => Rule::DEFAULT_IPV6_PREFIX,
        }
    }

    /// How to stay just under the bound with one account from one address; none where a single attempt locks.
    pub(crate) fn unnoticed(&self) -> Option<Unnoticed> {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let steady =
            |count: u32, period: Duration| Unnoticed { attempts: 1, every: micros(period).div_ceil(u64::from(count)) };
        match self {
            Self::Rules(rules) => unnoticed_by(&rules.rules),
            Self::AttemptLimiter { strikes, .. } => below(strikes.threshold, micros(strikes.lockout_window)),
            Self::TokenBucket { rate, window, .. } => Some(steady(*rate, *window)),
            Self::FixedWindow { limit, window, .. } => Some(Unnoticed { attempts: *limit, every: micros(*window) }),
        }
    }
}

/// Bursts as large as every rule takes at once, as far apart as the slowest needs to be fresh again.
fn unnoticed_by(rules: &[Rule]) -> Option<Unnoticed> {
    let mut found = Unnoticed { attempts: u32::MAX, every: 1 };
    let strikes = rules.iter().filter_map(|rule| Some((rule.threshold()?, rule.lockout_window()?)));
    for (threshold, window) in strikes {
        let rule = below(threshold, u64::try_from(window.as_micros()).ok()?)?;
        found = Unnoticed { attempts: found.attempts.min(rule.attempts), every: found.every.max(rule.every) };
    }
    let rates: Vec<_> = rules.iter().filter_map(Rule::rates).flatten().collect();
    if found.attempts == u32::MAX {
        found.attempts = 1;
    }
    let smallest = rates.iter().map(|rate| rate.count()).min().unwrap_or(u32::MAX);
    found.attempts = found.attempts.min(smallest);
    for rate in rates {
        let spent = (rate.period().as_micros() * u128::from(found.attempts)).div_ceil(u128::from(rate.count()));
        found.every = found.every.max(u64::try_from(spent).ok()?);
    }
    Some(found)
}

fn below(threshold: u32, window: u64) -> Option<Unnoticed> {
    (threshold > 1).then(|| Unnoticed { attempts: threshold - 1, every: window })
}
