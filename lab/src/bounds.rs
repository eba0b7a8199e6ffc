//! What can be computed without a simulation: the most that a policy admits, and what follows from it.
//!
//! Pure. Every number is that of a greedy attacker from full windows over a half-open span, so the simulator must hit
//! it to the last unit; `tests/lab` holds it to that. A [`Rule`](doorkeep::Rule) and [`Rates`] know their own bound
//! as `max_in`; here is what goes beyond one rule.

#![allow(clippy::cast_precision_loss, reason = "chances are not exact beyond 2^53")]

use std::time::Duration;

use doorkeep::Rates;

use crate::passwords::Passwords;

/// When the `k`-th attempt (from 1) of a greedy caller is admitted, after the first.
///
/// ```
/// # use std::time::Duration;
/// let rates = "5/1m,50/1h".parse()?;
/// assert_eq!(doorkeep_lab::bounds::admitted_at(&rates, 6), Duration::from_secs(12));
/// assert_eq!(doorkeep_lab::bounds::admitted_at(&rates, 1249), Duration::from_secs(72 * 1199));
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[must_use]
pub fn admitted_at(rates: &Rates, k: u64) -> Duration {
    let wait = |count: u32, period: u128| {
        (u128::from(k).saturating_sub(u128::from(count)) * period).div_ceil(u128::from(count))
    };
    let longest = rates.iter().map(|rate| wait(rate.count(), rate.period().as_micros())).max().unwrap_or(0);
    Duration::from_micros(u64::try_from(longest).unwrap_or(u64::MAX))
}

/// The most that fixed windows of `limit` admit in `span`: limit · ceil(span / window).
///
/// ```
/// # use std::time::Duration;
/// let day = Duration::from_secs(86_400);
/// assert_eq!(doorkeep_lab::bounds::fixed_window(100, Duration::from_secs(60), day), 144_000);
/// ```
#[must_use]
pub fn fixed_window(limit: u32, window: Duration, span: Duration) -> u64 {
    u64::from(limit).saturating_mul(windows(span, window))
}

/// The most that strikes admit in `span` to somebody who walks into every lockout: threshold · ceil(span / window).
///
/// ```
/// # use std::time::Duration;
/// # let minutes = |m: u64| Duration::from_secs(60 * m);
/// assert_eq!(doorkeep_lab::bounds::strikes(5, minutes(15), minutes(24 * 60)), 480);
/// ```
#[must_use]
pub fn strikes(threshold: u32, window: Duration, span: Duration) -> u64 {
    u64::from(threshold).saturating_mul(windows(span, window))
}

/// What strikes admit in `span` to somebody who never engages a lockout: (threshold - 1) · ceil(span / window).
///
/// ```
/// # use std::time::Duration;
/// # let minutes = |m: u64| Duration::from_secs(60 * m);
/// assert_eq!(doorkeep_lab::bounds::strikes_unnoticed(5, minutes(15), minutes(24 * 60)), 384);
/// ```
#[must_use]
pub fn strikes_unnoticed(threshold: u32, window: Duration, span: Duration) -> u64 {
    u64::from(threshold.saturating_sub(1)).saturating_mul(windows(span, window))
}

/// Guesses on one account in `span` from `addresses` addresses: min(addresses · account and address, account).
///
/// ```
/// # use std::time::Duration;
/// let (pair, account) = ("5/1m,20/1h".parse()?, "100/1h".parse()?);
/// let day = Duration::from_secs(86_400);
/// assert_eq!(doorkeep_lab::bounds::botnet(&pair, &account, 5, day), 2495);
/// assert_eq!(doorkeep_lab::bounds::botnet(&pair, &account, 6, day), 2499);
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[must_use]
pub fn botnet(account_and_address: &Rates, account: &Rates, addresses: u64, span: Duration) -> u64 {
    account_and_address.max_in(span).saturating_mul(addresses).min(account.max_in(span))
}

/// How long stuffing `pairs` names and passwords takes from `addresses` addresses that are limited alike.
///
/// ```
/// let address = "200/1h".parse()?;
/// assert_eq!(doorkeep_lab::bounds::stuffing(&address, 1_000_000, 100).as_secs(), 49 * 3600);
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[must_use]
pub fn stuffing(address: &Rates, pairs: u64, addresses: u64) -> Duration {
    admitted_at(address, pairs.div_ceil(addresses.max(1)))
}

/// Guesses on one account in `span` when fresh keys push its strikes out of a full table: `attempts` of them in all
/// per `period`, `capacity` of them for every threshold - 1 guesses.
///
/// (K - 1) · ceil(D·F / (C + K - 1)); the last round may be cut short, so this is the most.
///
/// ```
/// # use std::time::Duration;
/// # let hours = |h: u64| Duration::from_secs(3600 * h);
/// let flood = (100, Duration::from_secs(1));
/// assert_eq!(doorkeep_lab::bounds::key_flood(5, 2000, flood, hours(6)), 4312);
/// ```
#[must_use]
pub fn key_flood(threshold: u32, capacity: u64, (attempts, period): (u32, Duration), span: Duration) -> u64 {
    let guesses = u128::from(threshold.saturating_sub(1));
    let made = (span.as_micros() * u128::from(attempts)).div_ceil(period.as_micros().max(1));
    let rounds = made.div_ceil(u128::from(capacity) + guesses);
    u64::try_from(guesses * rounds).unwrap_or(u64::MAX)
}

/// The share of honest attempts that a rate of `burst` denies, when they come as a Poisson stream of `load` attempts per
/// interval T = period / count.
///
/// 1 - G / (1 + load·G) with G = sum over j < burst of (-load (burst-1-j))^j e^(load (burst-1-j)) / j!, the loss of a
/// queue with one server, constant service and `burst` places. The terms of that sum cancel each other's digits, so G
/// is made from the states of the queue, which are all positive. Cost: burst² multiplications.
///
/// ```
/// let percent = |burst, load| 100.0 * doorkeep_lab::bounds::honest_denial(burst, load);
/// assert_eq!(format!("{:.4}", percent(20, 1.5)), "33.3333");
/// ```
#[must_use]
pub fn honest_denial(burst: u32, load: f64) -> f64 {
    // Rounding must not make a share of less than none.
    (1.0 - 1.0 / (load + 1.0 / states(burst, load))).max(0.0)
}

/// The states of the queue below `burst`, in units of the empty one.
///
/// What goes up over a state goes down again: s(j+1)·P(0) = s(0)·P(>j) + sum over 1 <= i <= j of s(i)·P(>j+1-i), with P
/// the Poisson distribution of arrivals in one interval.
fn states(burst: u32, load: f64) -> f64 {
    let burst = burst.max(1) as usize;
    let none = libm::exp(-load);
    // An interval without arrivals is rarer than any float: the queue is full whenever it has room for two.
    if none == 0.0 && burst > 1 {
        return f64::INFINITY;
    }
    let more_than = tails(load, none, burst);
    let mut states = vec![1.0];
    while states.len() < burst {
        let j = states.len() - 1;
        let from_others: f64 = (1..=j).map(|i| states[i] * more_than[j + 1 - i]).sum();
        let next = (more_than[j] + from_others) / none;
        // Full in all but vanishing time; the sums would overflow.
        if next > 1e290 {
            return f64::INFINITY;
        }
        states.push(next);
    }
    states.iter().sum()
}

/// P(> k) of a Poisson distribution for k below `length`, summed from the far end so that small ones keep their digits.
fn tails(mean: f64, none: f64, length: usize) -> Vec<f64> {
    let beyond = length + 64 + 4 * mean.min(1e3) as usize;
    let mut terms = vec![none];
    for k in 1..=beyond {
        terms.push(terms[k - 1] * mean / k as f64);
    }
    let mut tail = 0.0;
    for term in terms.iter_mut().rev() {
        tail += std::mem::replace(term, tail);
    }
    terms
}

/// The chance that `guesses` at a one-time code of `digits` digits hit one of `valid`: 1 - (1 - V/M)^n.
///
/// ```
/// let year = doorkeep_lab::bounds::codes(6, 3, 720 * 365);
/// assert_eq!(format!("{:.1}", 100.0 * year), "54.5");
/// ```
#[must_use]
pub fn codes(digits: u8, valid: u32, guesses: u64) -> f64 {
    Passwords::Codes { digits, valid }.opened(guesses)
}

/// What `replicas` admit together when each counts for itself: replicas · ideal.
///
/// ```
/// let day = std::time::Duration::from_secs(86_400);
/// let rates: doorkeep::Rates = "5/1m".parse()?;
/// assert_eq!(doorkeep_lab::bounds::replicas(4, rates.max_in(day)), 28_816);
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[must_use]
pub fn replicas(replicas: u32, ideal: u64) -> u64 {
    u64::from(replicas).saturating_mul(ideal)
}

fn windows(span: Duration, window: Duration) -> u64 {
    u64::try_from(span.as_micros().div_ceil(window.as_micros().max(1))).unwrap_or(u64::MAX)
}
