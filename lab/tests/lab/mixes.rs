//! Any mix of policy, attackers and users runs, repeats, and keeps the account's bound.

use std::time::Duration;

use doorkeep::Rates;
use proptest::prelude::*;

use crate::run;

const ATTACKS: [&str; 12] = [
    "kind = 'vertical'",
    "kind = 'spray', accounts = 7",
    "kind = 'stuffing', accounts = 40, hit_rate = 0.5",
    "kind = 'low-and-slow'",
    "kind = 'botnet', addresses = 9",
    "kind = 'ipv6-rotation', prefix = 61",
    "kind = 'key-flood', flood = 20, burst = 2",
    "kind = 'lockout', random = true",
    "kind = 'own-success', every = 2",
    "kind = 'race', parallel = 30",
    "kind = 'outage'",
    "kind = 'otp', digits = 2",
];
const HABITS: [&str; 6] = [
    "kind = 'typo', wrong = 0.5, logins = '9/1h', patience = '5m'",
    "kind = 'nat', users = 12, logins = '1/1h'",
    "kind = 'wrong-account', wrong = 0.9, logins = '20/1h', patience = '1h'",
    "kind = 'stale-client', users = 3",
    "kind = 'forgetful', users = 4, logins = '5/1h', pause = '0s'",
    "kind = 'poisson', users = 2, logins = '30/1h'",
];
const RATES: [&str; 3] = ["3/1m", "5/1m,20/1h", "1/7s"];
/// Two hours, in which attackers are slow enough that a debug build gets through an open store.
const HOURS: u64 = 2;

fn scenario() -> impl Strategy<Value = (String, &'static str)> {
    let attackers = prop::collection::vec((0..ATTACKS.len(), any::<bool>()), 1..4);
    let users = prop::collection::vec(0..HABITS.len(), 0..3);
    let settle = prop::sample::select(vec!["", "forgive = ['pair']", "give_back = ['account', 'pair']"]);
    let on_error = prop::sample::select(vec!["local", "open", "closed"]);
    let rest = (attackers, users, settle, on_error, 1..4_u8, any::<u32>(), 8..200_u32);
    (prop::sample::select(RATES.to_vec()), rest).prop_map(|(account, rest)| {
        let (attackers, users, settle, on_error, replicas, seed, capacity) = rest;
        let attackers = attackers.into_iter().map(|(kind, slow)| {
            let is_paced = kind == 3 || ATTACKS[kind].contains("random");
            let speed = if is_paced {
                ""
            } else if slow {
                ", rate = 0.5"
            } else {
                ", top_speed = 3"
            };
            format!("[[attackers]]\n{}{speed}\n", ATTACKS[kind]).replace(", ", "\n")
        });
        let users = users.into_iter().map(|kind| format!("[[users]]\n{}\n", HABITS[kind]).replace(", ", "\n"));
        let text = format!(
            "run = {{ duration = '{HOURS}h', seed = {seed}, bins = 7, record = 3 }}\n[policy]\nreplicas = {replicas}\n\
             capacity = {capacity}\n{settle}\nrules = [{{ name = 'account', rates = '{account}', by = ['account'] }},\n\
             {{ name = 'pair', strikes = 4, window = '10m', by = ['account', 'address'] }}]\n\
             [store]\non_error = '{on_error}'\noutages = [{{ at = '30m', duration = '20m', forgets = true }}]\n{}{}",
            attackers.collect::<String>(),
            users.collect::<String>(),
        );
        (text, account)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_mix_runs_repeats_and_adds_up((text, account) in scenario()) {
        let outcome = run(&text);
        prop_assert_eq!(format!("{outcome:?}"), format!("{:?}", run(&text)));
        let column = |name: &str| outcome.attackers.numbers(name).unwrap();
        let events: f64 = column("attempts").iter().chain(outcome.users.numbers("attempts").unwrap()).sum();
        prop_assert_eq!(events, outcome.run.numbers("events").unwrap()[0]);
        for row in 0..column("attempts").len() {
            prop_assert_eq!(column("attempts")[row], column("admitted")[row] + column("denied")[row]);
            prop_assert!(column("guesses")[row] <= column("admitted")[row]);
            let series: f64 = outcome.series.numbers(&format!("attacker_{row}_admitted")).unwrap().iter().sum();
            prop_assert_eq!(series, column("admitted")[row]);
        }
        let logins = outcome.users.numbers("logins").unwrap();
        let ended = ["succeeded", "gave_up"].map(|name| outcome.users.numbers(name).unwrap());
        for row in 0..logins.len() {
            prop_assert!(ended[0][row] + ended[1][row] <= logins[row]);
        }
        // Nothing gives the account's budget back here, nobody is let in unseen, and no window is evicted.
        let is_strict = !text.contains("give_back") && !text.contains("'open'");
        if is_strict && outcome.run.numbers("evicted").unwrap()[0] == 0.0 {
            let rates: Rates = account.parse().unwrap();
            let replicas: u64 = text.split("replicas = ").nth(1).unwrap()[..1].parse().unwrap();
            let local = if text.contains("'local'") { replicas * rates.max_in(Duration::from_secs(1200)) } else { 0 };
            // The store forgot once, so an account began anew once.
            let bound = 2 * rates.max_in(Duration::from_secs(3600 * HOURS)) + local;
            for most in column("most_a_day") {
                prop_assert!(*most <= bound as f64, "{most} against {bound}");
            }
        }
    }
}
