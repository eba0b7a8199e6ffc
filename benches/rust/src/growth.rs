//! P5: what a call costs from 10^3 to 10^6 keys, also under a flood of new keys at capacity, and its spread.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use doorkeep::{AttemptLimiter, FixedWindow, Key, Limiter, Rule, Strikes, TokenBucket};

use crate::memory::{digest, now};
use crate::table::Table;
use crate::timing::{self, Rng};

const SMALL: usize = 1_000;
const LARGE: usize = 1_000_000;
const CALLS: usize = 600_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Any limiter: counts one attempt of a key at a moment.
type Subject = Box<dyn Fn(u32, u64) -> bool>;

/// Makes one with a capacity.
type Make = fn(usize) -> Subject;

/// A clock that only goes forward, a microsecond a call.
fn tick() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(1);
    NOW.fetch_add(1, Ordering::Relaxed)
}

fn windows(capacity: usize) -> Subject {
    let rule = Rule::new("login", "60000/1d,600000/7d".parse().expect("rates")).expect("a name");
    let limiter = Limiter::new(capacity * 2).expect("a capacity");
    Box::new(move |key, at| {
        let key = [Key::from_digest(rule.clone(), digest(key), false)];
        limiter.decide(&key, 1, now(at)).is_ok_and(|decision| decision.allowed())
    })
}

fn strikes(capacity: usize) -> Subject {
    let strikes = Strikes { threshold: 5, lockout_window: DAY, max_tracked_keys: capacity };
    let limiter = AttemptLimiter::new(strikes).expect("bounds");
    Box::new(move |key, at| limiter.attempt(key.to_le_bytes(), now(at)).is_allowed())
}

fn buckets(capacity: usize) -> Subject {
    let bucket = TokenBucket::new(60_000, DAY, capacity).expect("bounds");
    Box::new(move |key, at| bucket.allow(key.to_le_bytes(), now(at)))
}

fn fixed_windows(capacity: usize) -> Subject {
    let windows = FixedWindow::new(60_000, DAY, capacity).expect("bounds");
    Box::new(move |key, at| windows.consume(key.to_le_bytes(), now(at)).allowed())
}

/// A subject that holds `keys` keys.
fn filled(make: Make, keys: usize) -> Subject {
    let subject = make(keys);
    for key in 0..keys {
        subject(u32::try_from(key).expect("few"), tick());
    }
    subject
}

pub(crate) fn measure(table: &mut Table) {
    let subjects: [(&str, Make); 4] = [
        ("Limiter, two rates", windows),
        ("AttemptLimiter", strikes),
        ("TokenBucket", buckets),
        ("FixedWindow", fixed_windows),
    ];
    for (name, make) in subjects {
        let (small, large) = (filled(make, SMALL), filled(make, LARGE));
        let mut rng = Rng(11);
        let order: Vec<usize> = (0..CALLS).map(|_| rng.below(LARGE)).collect();
        let random =
            |subject: &Subject, keys: usize, i: usize| subject(u32::try_from(order[i] % keys).expect("few"), tick());
        let [few, many] =
            timing::compare(CALLS, [&mut |i| random(&small, SMALL, i), &mut |i| random(&large, LARGE, i)]);
        let detail = format!("{few:.0} ns, {many:.0} ns");
        table.ratio("P5", format!("{name}: random keys, 10^6 vs 10^3"), 6.0, many / few, detail);
        spread(table, &format!("{name}: random keys of 10^6"), |i| random(&large, LARGE, i));

        let next = AtomicU32::new(u32::MAX / 2);
        let flood = |subject: &Subject| subject(next.fetch_add(1, Ordering::Relaxed), tick());
        let [few, many] = timing::compare(CALLS, [&mut |_| flood(&small), &mut |_| flood(&large)]);
        let detail = format!("{few:.0} ns, {many:.0} ns");
        table.ratio("P5", format!("{name}: flood at capacity, 10^6 vs 10^3"), 6.0, many / few, detail);
        spread(table, &format!("{name}: flood at 10^6"), |_| flood(&large));
    }
}

fn spread(table: &mut Table, what: &str, call: impl FnMut(usize) -> bool) {
    let spread = timing::spread(CALLS, call);
    let detail = format!("p50 {:.0} ns, p99.9 {:.0} ns, worst {:.0} us", spread.p50, spread.p999, spread.max / 1000.0);
    table.ratio("P5", format!("{what}: p99.9 vs p50"), 100.0, spread.p999 / spread.p50, detail);
}
