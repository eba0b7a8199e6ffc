//! Published figures, reproduced.

use doorkeep_lab::{Passwords, bounds};

use crate::{first, guesses, run};

/// No limit that a run of this size meets.
const OPEN: &str = r#"policy.rules = [{ name = "open", rates = "60000000/1s", by = ["account"] }]"#;

#[test]
fn rockyou_falls_as_imperva_counted() {
    // Imperva, Consumer Password Worst Practices (2010): 116 guesses open 5 %, 683 open 10 %, 5,000 open 20 %.
    for (tries, published) in [(116_u32, 0.05), (683, 0.10), (5000, 0.20)] {
        let text = format!(
            "run.duration = '24h'\n{OPEN}\nattackers = [{{ kind = 'spray', accounts = 500, guesses = {tries}, top_speed = 1_000_000 }}]"
        );
        let attackers = run(&text).attackers;
        assert_eq!(first(&attackers, "guesses"), 500.0 * f64::from(tries));
        let expected = first(&attackers, "opened_expected") / 500.0;
        assert!((expected - Passwords::Head.opened(tries.into())).abs() < 1e-12);
        assert!((expected - published).abs() <= 0.0035, "{tries}: {expected}");
        // The standard error of 500 accounts is below 1.8 points; four of them.
        let sampled = first(&attackers, "opened") / 500.0;
        assert!((sampled - expected).abs() < 4.0 * (expected * (1.0 - expected) / 500.0).sqrt(), "{tries}: {sampled}");
    }
}

#[test]
fn one_line_at_110_tries_a_second_opens_1000_accounts_in_just_under_17_minutes() {
    // Imperva, the same report: a DSL line of 55 KB/s makes 110 attempts of 0.5 KB a second, and one account in 111 has
    // the first password: one opens each second.
    let spray = |minutes: u32| {
        format!(
            "run.duration = '{minutes}m'\n{OPEN}\nattackers = [{{ kind = 'spray', accounts = 1_000_000, rate = '110/1s' }}]"
        )
    };
    let opened = |minutes| first(&run(&spray(minutes)).attackers, "opened_expected");
    assert!(opened(17) >= 1000.0 && opened(16) < 1000.0);
    let seconds = 1000.0 / Passwords::Head.opened(1) / 110.0;
    assert!(16.9 * 60.0 < seconds && seconds < 17.0 * 60.0, "{seconds}");
}

#[test]
fn half_of_the_people_need_three_tries_and_nearly_all_ten() {
    // Brostoff and Sasse, Ten strikes and you're out (2003): 54 % get in within three tries, 93 % within ten.
    for (strikes, published) in [(3, 0.54), (10, 0.93)] {
        let text = format!(
            r#"run = {{ duration = "1000d", seed = 5 }}
            policy.rules = [{{ name = "account", strikes = {strikes}, window = "1h", by = ["account"] }}]
            policy.forgive = ["account"]
            users = [{{ kind = "forgetful", users = 100, logins = "1/5d", tries = 100 }}]"#
        );
        let users = run(&text).users;
        let (logins, succeeded) = (first(&users, "logins"), first(&users, "succeeded"));
        let model = 1.0 - 0.77_f64.powi(strikes);
        assert!((model - published).abs() < 0.005);
        let share = succeeded / logins;
        assert!(
            (share - model).abs() < 4.0 * (model * (1.0 - model) / logins).sqrt(),
            "{strikes}: {share} of {logins}"
        );
    }
}

#[test]
fn a_flood_that_erases_strikes_is_stopped_by_an_address_rule_in_front() {
    // The shape of CVE-2024-21662: a table of 1,000 keys, five strikes, and fresh names to push the victim's out.
    let six_hours = |rules: &str| {
        format!(
            r#"run.duration = "6h"
            policy.capacity = 1000
            policy.rules = [{rules} {{ name = "account", strikes = 5, window = "15m", by = ["account"] }}]
            attackers = [{{ kind = "key-flood", rate = "100/1s" }}]"#
        )
    };
    let alone = guesses(&six_hours(""));
    let flood = (100, std::time::Duration::from_secs(1));
    assert_eq!(alone, bounds::key_flood(5, 1000, flood, std::time::Duration::from_secs(6 * 3600)));
    assert_eq!(alone, 8608);
    // 20/1m,200/1h admits 1,399 attempts in six hours: one whole round of 1,004, and the guesses of the next.
    let behind = guesses(&six_hours(r#"{ name = "login-ip", rates = "20/1m,200/1h", by = ["address"] },"#));
    assert_eq!(behind, 8);
    assert!(behind < bounds::strikes(5, std::time::Duration::from_secs(900), std::time::Duration::from_secs(6 * 3600)));
}
