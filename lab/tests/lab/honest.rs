//! Honest people: how many are turned away, and by whom.

use doorkeep_lab::bounds;

use crate::{first, run};

/// Poisson arrivals at `load` per interval of a rate `burst`/1h.
fn denied_percent(burst: u32, load: f64, seed: u32) -> (f64, f64) {
    // An interval is 1h / burst, so `load` arrivals in it are load · burst an hour.
    let logins = load * f64::from(burst) / 3600.0;
    let outcome = run(&format!(
        r#"run = {{ duration = "{hours}h", seed = {seed} }}
        policy.rules = [{{ name = "account", rates = "{burst}/1h", by = ["account"] }}]
        users = [{{ kind = "poisson", logins = {logins} }}]"#,
        hours = (200_000.0 / (load * f64::from(burst))).ceil(),
    ));
    (first(&outcome.users, "denied_percent"), first(&outcome.users, "logins"))
}

#[test]
fn the_denial_of_honest_people_has_the_published_numbers() {
    let percent = |burst, load| format!("{:.4}", 100.0 * bounds::honest_denial(burst, load));
    assert_eq!(percent(5, 1.0), "10.3449");
    assert_eq!(percent(20, 1.0), "2.5210");
    assert_eq!(percent(20, 1.5), "33.3333");
    assert_eq!(percent(1, 1.0), "50.0000");
}

#[test]
fn the_stable_form_of_the_denial_is_the_alternating_sum() {
    for burst in 1..=8_u32 {
        for load in [0.1, 0.5, 0.9, 1.0, 1.3] {
            let (mut g, mut factorial) = (0.0, 1.0);
            for j in 0..burst {
                factorial *= f64::from(j.max(1));
                let x = load * f64::from(burst - 1 - j);
                g += (-x).powi(i32::try_from(j).unwrap()) * x.exp() / factorial;
            }
            let sum = 1.0 - g / (1.0 + load * g);
            assert!((bounds::honest_denial(burst, load) - sum).abs() < 1e-9, "{burst} {load}");
        }
    }
}

#[test]
fn the_denial_stays_a_share_however_long_the_burst_and_heavy_the_load() {
    for burst in [1, 100, 1000] {
        for load in [0.0, 0.5, 1.0, 2.0, 50.0, 800.0] {
            let denied = bounds::honest_denial(burst, load);
            assert!((0.0..1.0).contains(&denied), "{burst} {load} {denied}");
        }
    }
    assert!((bounds::honest_denial(100, 2.0) - 0.5).abs() < 1e-12);
    // Beyond 745 the chance of no arrival in an interval is no float anymore.
    for load in [700.0, 740.0, 746.0, 1000.0, 1e6] {
        for burst in [2, 5, 10_000] {
            assert!((bounds::honest_denial(burst, load) - (1.0 - 1.0 / load)).abs() < 1e-12, "{burst} {load}");
        }
        assert!((bounds::honest_denial(1, load) - load / (1.0 + load)).abs() < 1e-12, "{load}");
    }
}

#[test]
fn simulated_denial_is_within_its_sampling_error() {
    for (burst, load) in [(5, 1.0), (20, 1.0), (20, 1.5)] {
        let expected = 100.0 * bounds::honest_denial(burst, load);
        let (denied, logins) = denied_percent(burst, load, 11);
        // Denials come in clusters: their variance is that of independent ones times about 2 · burst at most. Three
        // standard errors of that are 0.65 to 2 points at 200,000 logins.
        let p = expected / 100.0;
        let error = 100.0 * (p * (1.0 - p) / logins * 2.0 * f64::from(burst)).sqrt();
        assert!((denied - expected).abs() < 3.0 * error, "{burst} {load}: {denied} against {expected} +- {error}");
    }
}

#[test]
fn a_request_a_second_leaves_the_owner_of_an_account_2_8_percent_of_the_attempts() {
    let outcome = run(r#"run.duration = "30d"
        policy.rules = [{ name = "account", rates = "100/1h", by = ["account"] }]
        attackers = [{ kind = "lockout", random = true }]
        users = [{ kind = "poisson", logins = "1/2m" }]"#);
    // 100 of 3,600 seconds, and the owner's own attempts are among those that take them.
    let admitted = 100.0 - first(&outcome.users, "denied_percent");
    assert!((admitted - 2.78).abs() < 0.45, "{admitted}");
}

#[test]
fn a_stale_client_is_denied_by_strikes_and_leaves_its_owner_waiting() {
    let outcome = run(r#"run.duration = "24h"
        policy.rules = [{ name = "account", strikes = 5, window = "1h", by = ["account"] }]
        users = [{ kind = "stale-client" }, { kind = "typo", logins = "5/1h", tries = 1 }]"#);
    assert_eq!(outcome.users.numbers("logins").unwrap()[0], 288.0);
    assert!(outcome.users.numbers("denied_percent").unwrap()[1] > 50.0);
}

#[test]
fn people_behind_one_address_share_its_budget() {
    let denied = |kind: &str| {
        let outcome = run(&format!(
            r#"run.duration = "10d"
            policy.rules = [{{ name = "ip", rates = "20/1h", by = ["address"] }}]
            users = [{{ kind = "{kind}", users = 1000, logins = "1/1d" }}]"#
        ));
        first(&outcome.users, "denied_percent")
    };
    assert_eq!(denied("typo"), 0.0);
    assert!(denied("nat") > 10.0);
}

#[test]
fn recovery_is_the_wait_that_the_victim_is_told_when_the_attack_is_over() {
    let outcome = run(r#"run.duration = "2h"
        policy.rules = [{ name = "account", strikes = 5, window = "15m", by = ["account"] }]
        attackers = [{ kind = "lockout", rate = "1/1s", end = "1h" }]
        users = [{ kind = "typo" }]"#);
    // Locked by the fifth attempt of every round, at 4 s, 908 s, 1,812 s and 2,716 s: that lockout ends at 3,616 s.
    assert_eq!(first(&outcome.attackers, "first_locked_s"), 4.0);
    assert_eq!(first(&outcome.users, "recovery_s"), 16.0);
}
