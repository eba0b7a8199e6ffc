//! P3: a decision by two rates against governor's by one, both keyed, 100,000 keys in random order.

use std::num::NonZeroU32;

use doorkeep::{Key, Limiter, Rule, Timestamp};
use governor::{Quota, RateLimiter};

use crate::memory::digest;
use crate::table::Table;
use crate::timing::{self, Rng};

const KEYS: usize = 100_000;
const CALLS: usize = 1_500_000;

pub(crate) fn measure(table: &mut Table) {
    let mut rng = Rng(7);
    let order: Vec<usize> = (0..CALLS).map(|_| rng.below(KEYS)).collect();
    // So wide that every call is admitted, so narrow that no window is full again before its next call.
    let quota = Quota::per_minute(NonZeroU32::new(100).expect("not zero"));
    let rule = Rule::new("login", "100/1m,1000/1h".parse().expect("rates")).expect("a name");

    let texts: Vec<String> = (0..KEYS).map(|i| format!("user-{i}@example.com")).collect();
    let digests: Vec<_> = (0..KEYS).map(|i| digest(u32::try_from(i).expect("few"))).collect();
    let keys: Vec<[Key; 1]> = digests.iter().map(|digest| [Key::from_digest(rule.clone(), *digest, false)]).collect();
    let mut row = |what: &str, ours: &mut dyn FnMut(usize) -> bool, theirs: &mut dyn FnMut(usize) -> bool| {
        let [ours, theirs] = timing::compare(CALLS, [&mut |i| ours(order[i]), &mut |i| theirs(order[i])]);
        let detail = format!("{ours:.0} ns, governor {theirs:.0} ns");
        table.ratio("P3", what, 0.6, ours / theirs, detail);
    };

    let (limiter, governed) = (Limiter::new(1_000_000).expect("a capacity"), RateLimiter::keyed(quota));
    row(
        "two rates vs governor's one, 100 k keys at hand: ours hashed before, theirs texts",
        &mut |i| limiter.decide(&keys[i], 1, Timestamp::now()).is_ok_and(|decision| decision.allowed()),
        &mut |i| governed.check_key(&texts[i]).is_ok(),
    );
    let (limiter, governed) = (Limiter::new(1_000_000).expect("a capacity"), RateLimiter::keyed(quota));
    row(
        "the same with our SHA-256 of the text",
        &mut |i| {
            let key = rule.key(&[texts[i].as_bytes()]);
            key.and_then(|key| limiter.decide(&[key], 1, Timestamp::now())).is_ok_and(|decision| decision.allowed())
        },
        &mut |i| governed.check_key(&texts[i]).is_ok(),
    );
    let (limiter, governed) = (Limiter::new(1_000_000).expect("a capacity"), RateLimiter::keyed(quota));
    row(
        "the same, both keyed by 16 bytes",
        &mut |i| limiter.decide(&keys[i], 1, Timestamp::now()).is_ok_and(|decision| decision.allowed()),
        &mut |i| governed.check_key(digests[i].as_bytes()).is_ok(),
    );
}
