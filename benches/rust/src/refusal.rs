//! P10: a denied decision must not cost more than an admitted one: an attacker only ever gets denials.

use std::time::Duration;

use doorkeep::{AttemptLimiter, FixedWindow, Key, Limiter, Rule, Strikes, TokenBucket};

use crate::memory::{digest, now};
use crate::table::Table;
use crate::timing::{self, Rng};

const KEYS: usize = 100_000;
const CALLS: usize = 600_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn measure(table: &mut Table) {
    let mut rng = Rng(13);
    let order: Vec<u32> = (0..CALLS).map(|_| u32::try_from(rng.below(KEYS)).expect("few")).collect();
    let mut row = |what: &str, wide: &mut dyn FnMut(u32) -> bool, spent: &mut dyn FnMut(u32) -> bool| {
        (0..u32::try_from(KEYS).expect("few")).for_each(|key| {
            wide(key);
            spent(key);
            assert!(!spent(key), "{what}: not spent");
        });
        let [denied, allowed] = timing::compare(CALLS, [&mut |i| spent(order[i]), &mut |i| wide(order[i])]);
        let detail = format!("{denied:.0} ns, {allowed:.0} ns");
        table.ratio("P10", format!("{what}: denied vs allowed, 100 k keys"), 1.0, denied / allowed, detail);
    };
    let windows = |rates: &str| {
        let rule = Rule::new("login", rates.parse().expect("rates")).expect("a name");
        let limiter = Limiter::new(1_000_000).expect("a capacity");
        move |key| {
            let key = [Key::from_digest(rule.clone(), digest(key), false)];
            limiter.decide(&key, 1, now(1)).is_ok_and(|decision| decision.allowed())
        }
    };
    row("Limiter, two rates", &mut windows("60000/1d,600000/7d"), &mut windows("1/1d,600000/7d"));
    let strikes = |threshold| {
        let strikes = Strikes { threshold, lockout_window: DAY, max_tracked_keys: KEYS };
        let limiter = AttemptLimiter::new(strikes).expect("bounds");
        move |key: u32| limiter.attempt(key.to_le_bytes(), now(1)).is_allowed()
    };
    row("AttemptLimiter", &mut strikes(1024), &mut strikes(1));
    let bucket = |rate| {
        let bucket = TokenBucket::new(rate, DAY, 1_000_000).expect("bounds");
        move |key: u32| bucket.allow(key.to_le_bytes(), now(1))
    };
    row("TokenBucket", &mut bucket(60_000), &mut bucket(1));
    let window = |limit| {
        let windows = FixedWindow::new(limit, DAY, KEYS).expect("bounds");
        move |key: u32| windows.consume(key.to_le_bytes(), now(1)).allowed()
    };
    row("FixedWindow", &mut window(60_000), &mut window(1));
}
