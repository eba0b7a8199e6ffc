//! P11: an attempt of a run in the lab beside the bare call on the limiter that it makes.

use std::hint::black_box;
use std::time::Instant;

use doorkeep::{Digest, Key, Limiter, Rule, Timestamp};
use doorkeep_lab::Scenario;

use crate::table::Table;

const EVENTS: u32 = 1_000_000;
const ACCOUNTS: u32 = 20_000;
const ADDRESSES: u32 = 500;
const ROUNDS: usize = 7;
const RULES: [(&str, &str, &[&str]); 3] = [
    ("login-ip", "20/1m,200/1h", &["address"]),
    ("login-account-ip", "5/1m,20/1h", &["account", "address"]),
    ("login-account", "50/1h", &["account"]),
];

pub(crate) fn measure(table: &mut Table) {
    let (mut run, mut bare) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        run = run.min(simulated());
        bare = bare.min(called());
    }
    let detail = format!("{run:.0} ns, {bare:.0} ns; {:.1} M attempts/s", 1e3 / run);
    table.ratio("P11", "an attempt in the lab vs its bare call, three rules", 2.0, run / bare, detail);
}

/// Nanoseconds an attempt: 1,000 a second of the run, on all accounts in turn from all addresses in turn.
fn simulated() -> f64 {
    let rules = RULES.map(|(name, rates, by)| format!(r#"{{ name = "{name}", rates = "{rates}", by = {by:?} }}"#));
    let scenario = format!(
        "run = {{ duration = {seconds}, bins = 100 }}\npolicy.rules = [{rules}]\n\
         attackers = [{{ kind = 'spray', rate = '1000/1s', accounts = {ACCOUNTS}, addresses = {ADDRESSES} }}]",
        seconds = EVENTS / 1000,
        rules = rules.join(", "),
    );
    let scenario = Scenario::read(&scenario).expect("a scenario");
    let start = Instant::now();
    black_box(scenario.run().expect("a run"));
    start.elapsed().as_nanos() as f64 / f64::from(EVENTS)
}

/// Nanoseconds a call with the same keys at the same times, their digests made elsewhere.
fn called() -> f64 {
    let limiter = Limiter::new(100_000).expect("a capacity");
    let rule = |(name, rates, by): (&str, &str, &[&str])| {
        Rule::new(name, rates.parse().expect("rates")).and_then(|rule| rule.with_by(by)).expect("a rule")
    };
    let [ip, pair, account] = RULES.map(rule);
    let start = Instant::now();
    for i in 0..EVENTS {
        let (one, from) = (i % ACCOUNTS, i % ADDRESSES);
        let keys = [
            Key::from_digest(ip.clone(), digest(0, from), true),
            Key::from_digest(pair.clone(), digest(one + 1, from), false),
            Key::from_digest(account.clone(), digest(one + 1, 0), false),
        ];
        let now = Timestamp::from_micros(u64::from(i) * 1000).expect("a time");
        let _ = black_box(limiter.decide(&keys, 1, now));
    }
    start.elapsed().as_nanos() as f64 / f64::from(EVENTS)
}

fn digest(account: u32, address: u32) -> Digest {
    let mut bytes = [0; 16];
    let word = |n: u32| (u64::from(n) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes[..8].copy_from_slice(&word(account).to_le_bytes());
    bytes[8..].copy_from_slice(&word(address).to_le_bytes());
    Digest::from_bytes(bytes)
}
