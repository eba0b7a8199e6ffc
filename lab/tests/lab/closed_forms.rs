//! Every bound that can be computed is what a greedy attacker gets from the real limiters, to the last unit.

use std::time::Duration;

use doorkeep::Rates;
use doorkeep_lab::bounds;

use crate::{first, guesses, hours, run, whole};

fn rates(text: &str) -> Rates {
    text.parse().unwrap()
}

fn one_account(rates: &str, duration: &str, attacker: &str) -> String {
    format!(
        r#"run.duration = "{duration}"
        policy.rules = [{{ name = "account", rates = "{rates}", by = ["account"] }}]
        attackers = [{{ {attacker} }}]"#
    )
}

#[test]
fn one_rate_admits_the_burst_and_then_one_each_interval() {
    for (policy, duration, span, expected) in [
        ("5/1m", "24h", hours(24), 7204),
        ("5/1m", "1m", Duration::from_secs(60), 9),
        ("50/1h", "24h", hours(24), 1249),
        ("7/1m", "17m", Duration::from_secs(17 * 60), 125),
    ] {
        assert_eq!(rates(policy).max_in(span), expected, "{policy} in {duration}");
        assert_eq!(guesses(&one_account(policy, duration, "kind = 'vertical'")), expected, "{policy} in {duration}");
    }
}

#[test]
fn several_rates_admit_the_smallest_of_their_bounds() {
    for (duration, span, expected) in
        [("10m", Duration::from_secs(600), 54), ("1h", hours(1), 99), ("24h", hours(24), 1249)]
    {
        assert_eq!(rates("5/1m,50/1h").max_in(span), expected);
        assert_eq!(guesses(&one_account("5/1m,50/1h", duration, "kind = 'vertical'")), expected, "{duration}");
    }
}

#[test]
fn the_kth_guess_is_admitted_at_the_moment_that_the_formula_gives() {
    let text = one_account("5/1m,50/1h", "24h", "kind = 'vertical'") + "\nrun.record = 2000";
    let outcome = run(&text.replacen("run.duration", "run.seed = 3\nrun.duration", 1));
    let moments = outcome.admissions.numbers("at_s").unwrap();
    assert_eq!(moments.len(), 1249);
    for (k, at) in (1..).zip(moments) {
        let expected = bounds::admitted_at(&rates("5/1m,50/1h"), k);
        assert_eq!(*at, expected.as_secs_f64(), "guess {k}");
        assert_eq!(expected.as_secs(), (12 * k.saturating_sub(5)).max(72 * k.saturating_sub(50)), "guess {k}");
    }
}

#[test]
fn a_fixed_window_admits_its_limit_in_every_window() {
    let day = "run.duration = '24h'\npolicy.fixed_window = { limit = 100, window = '1m' }\nattackers = [{ kind = 'vertical' }]";
    assert_eq!(bounds::fixed_window(100, Duration::from_secs(60), hours(24)), 144_000);
    assert_eq!(guesses(day), 144_000);
}

#[test]
fn a_token_bucket_admits_what_its_rate_does() {
    let day =
        "run.duration = '24h'\npolicy.token_bucket = { rate = 5, window = '1m' }\nattackers = [{ kind = 'vertical' }]";
    assert_eq!(guesses(day), 7204);
}

#[test]
fn strikes_admit_their_threshold_to_a_greedy_attacker_and_one_less_to_a_quiet_one() {
    let quarter = Duration::from_secs(15 * 60);
    assert_eq!(bounds::strikes(5, quarter, hours(24)), 480);
    assert_eq!(bounds::strikes_unnoticed(5, quarter, hours(24)), 384);
    for policy in [
        "attempt_limiter = { threshold = 5, lockout_window = '15m' }",
        "rules = [{ name = 'account', strikes = 5, window = '15m', by = ['account'] }]",
    ] {
        let day = |kind| format!("run.duration = '24h'\npolicy.{policy}\nattackers = [{{ kind = '{kind}' }}]");
        assert_eq!(guesses(&day("vertical")), 480, "{policy}");
        let quiet = run(&day("low-and-slow")).attackers;
        assert_eq!(first(&quiet, "guesses"), 384.0, "{policy}");
        assert_eq!((first(&quiet, "denied"), first(&quiet, "first_locked_s").is_nan()), (0.0, true), "{policy}");
    }
}

#[test]
fn many_addresses_multiply_the_pair_s_bound_up_to_the_account_s() {
    for (addresses, expected) in [(1, 499), (2, 998), (5, 2495), (6, 2499), (50, 2499)] {
        let day = format!(
            r#"run.duration = "24h"
            policy.rules = [
                {{ name = "login-ip", rates = "20/1m,200/1h", by = ["address"] }},
                {{ name = "login-account-ip", rates = "5/1m,20/1h", by = ["account", "address"] }},
                {{ name = "login-account", rates = "100/1h", by = ["account"] }},
            ]
            attackers = [{{ kind = "botnet", addresses = {addresses} }}]"#
        );
        assert_eq!(bounds::botnet(&rates("5/1m,20/1h"), &rates("100/1h"), addresses, hours(24)), expected);
        assert_eq!(guesses(&day), expected, "{addresses} addresses");
    }
}

#[test]
fn one_address_sprays_as_many_accounts_as_its_rule_admits() {
    let day = r#"run.duration = "24h"
        policy.rules = [{ name = "login-ip", rates = "20/1m,200/1h", by = ["address"] }]
        attackers = [{ kind = "spray", accounts = 100_000 }]"#;
    let attackers = run(day).attackers;
    assert_eq!(rates("20/1m,200/1h").max_in(hours(24)), 4999);
    assert_eq!((first(&attackers, "guesses"), first(&attackers, "accounts")), (4999.0, 4999.0));
    // 4,999 · 0.892 % = 44.59; what one seed gives scatters by sqrt(4,999 · p · (1 - p)) = 6.6, here four of them.
    assert!((first(&attackers, "opened_expected") - 44.59).abs() < 0.005);
    assert!((first(&attackers, "opened") - 44.59).abs() < 4.0 * 6.65, "{}", first(&attackers, "opened"));
}

#[test]
fn a_million_stolen_pairs_take_49_hours_from_a_hundred_addresses() {
    let text = r#"run.duration = "50h"
        policy.rules = [{ name = "login-ip", rates = "200/1h", by = ["address"] }]
        policy.capacity = 10_000
        attackers = [{ kind = "stuffing", accounts = 1_000_000, addresses = 100, top_speed = 1_000_000 }]"#;
    let attackers = run(text).attackers;
    assert_eq!(bounds::stuffing(&rates("200/1h"), 1_000_000, 100), hours(49));
    assert_eq!((first(&attackers, "guesses"), first(&attackers, "last_guess_s")), (1e6, 49.0 * 3600.0));
    // 0.1 % of a million; the standard deviation is 31.6, here four of them.
    assert!((first(&attackers, "opened") - 1000.0).abs() < 127.0);
    assert_eq!(first(&attackers, "opened_expected"), 1000.0);
}

#[test]
fn a_key_flood_erases_strikes_as_often_as_its_keys_fill_the_table() {
    let six_hours = |attacker: &str| {
        format!(
            "run.duration = '6h'\npolicy.attempt_limiter = {{ threshold = 5, lockout_window = '15m', \
             max_tracked_keys = 2000 }}\nattackers = [{{ {attacker} }}]"
        )
    };
    assert_eq!(bounds::key_flood(5, 2000, (100, Duration::from_secs(1)), hours(6)), 4312);
    assert_eq!(guesses(&six_hours("kind = 'key-flood', rate = '100/1s'")), 4312);
    assert_eq!(guesses(&six_hours("kind = 'vertical'")), 120);
}

/// A day of spraying 30 accounts.
fn sprayed(policy: &str, addresses: u32) -> u64 {
    guesses(&format!("{policy}\nattackers = [{{ kind = 'spray', accounts = 30, addresses = {addresses} }}]"))
}

#[test]
fn spraying_goes_on_by_the_next_address_where_a_pair_is_limited() {
    let pair = "{ name = 'pair', rates = '5/1m,20/1h,40/1d', by = ['account', 'address'] }";
    assert_eq!(sprayed(&format!("policy.rules = [{pair}]"), 3), 30 * 3 * 79);
    // Behind a rule for each address the ways are closed one by one, too.
    let wide = format!("policy.rules = [{{ name = 'ip', rates = '10000/1m', by = ['address'] }}, {pair}]");
    assert_eq!(sprayed(&wide, 3), 30 * 3 * 79);
    let strikes = "policy.rules = [{ name = 'pair', strikes = 5, window = '1h', by = ['account', 'address'] }]";
    assert_eq!(sprayed(strikes, 3), 30 * 3 * 5 * 24);
}

#[test]
fn spraying_goes_on_at_the_next_replica_where_an_account_is_limited() {
    let policy = "policy.replicas = 4\npolicy.rules = ['preset:login-account']";
    assert_eq!(sprayed(policy, 1), 30 * 4 * 99);
    let behind = "policy.replicas = 4\npolicy.rules = ['preset:login-ip', 'preset:login-account']";
    assert_eq!(sprayed(behind, 3), 4 * 30 * 99);
}

#[test]
fn an_address_is_used_up_where_its_strikes_are_what_ends_it() {
    // One guess in 90 s on the account: spread over both addresses, fewer strikes would lapse in an hour.
    let policy = "run.duration = '1h'\npolicy.rules = [
        { name = 'account', rates = '2/3m', by = ['account'] },
        { name = 'ip', strikes = 2, window = '14m', by = ['address'] },
    ]";
    assert_eq!(guesses(&format!("{policy}\nattackers = [{{ kind = 'botnet', addresses = 2 }}]")), 2 * 2 * 5);
}

#[test]
fn one_time_codes_fall_as_often_as_the_guesses_say() {
    let year = r#"run.duration = "365d"
        policy.fixed_window = { limit = 720, window = "1d" }
        attackers = [{ kind = "otp", digits = 6, valid = 3 }]"#;
    let attackers = run(year).attackers;
    assert_eq!(first(&attackers, "guesses"), 720.0 * 365.0);
    assert_eq!(first(&attackers, "opened_expected"), bounds::codes(6, 3, 720 * 365));
    assert_eq!((1000.0 * bounds::codes(6, 3, 720 * 365)).round(), 545.0);
}

#[test]
fn the_chance_of_long_codes_keeps_its_digits() {
    // For so small a chance the sum of the binomial series: n·p - n(n-1)/2·p².
    let (guesses, hit) = (1e6, 3e-12);
    let expected = guesses * hit - guesses * (guesses - 1.0) / 2.0 * hit * hit;
    let found = bounds::codes(12, 3, 1_000_000);
    assert!((found / expected - 1.0).abs() < 1e-11, "{found} {expected}");
    assert_eq!((bounds::codes(1, 10, 0), bounds::codes(1, 10, 1)), (0.0, 1.0));
}

#[test]
fn sampled_codes_fall_as_often_as_expected() {
    // Each of 200 seeds is one account that is guessed at for a day. The standard error of the share is below 2.9 points.
    let day = |seed| {
        format!(
            r#"run = {{ duration = "24h", seed = {seed} }}
            policy.fixed_window = {{ limit = 720, window = "1d" }}
            attackers = [{{ kind = "otp", digits = 4, valid = 3 }}]"#
        )
    };
    let opened: f64 = (1..=200).map(|seed| first(&run(&day(seed)).attackers, "opened")).sum();
    assert!((opened / 200.0 - bounds::codes(4, 3, 720)).abs() < 4.0 * 0.029, "{opened}");
}

#[test]
fn replicas_that_count_for_themselves_admit_their_number_times_the_bound() {
    let day = one_account("5/1m", "24h", "kind = 'vertical'") + "\n";
    let day = day.replacen("run.duration", "policy.replicas = 4\nrun.duration", 1);
    assert_eq!(bounds::replicas(4, rates("5/1m").max_in(hours(24))), 28_816);
    assert_eq!(guesses(&day), 28_816);
}

#[test]
fn a_store_makes_one_budget_of_four_replicas() {
    let day = one_account("5/1m", "24h", "kind = 'vertical'");
    let day = day.replacen("run.duration", "policy.replicas = 4\nstore.on_error = 'local'\nrun.duration", 1);
    assert_eq!(guesses(&day), 7204);
}

#[test]
fn an_outage_adds_at_most_what_the_replicas_admit_while_it_lasts() {
    let day = |on_error: &str| {
        one_account("5/1m", "24h", "kind = 'vertical', top_speed = 100").replacen(
            "run.duration",
            &format!(
                "policy.replicas = 4\nstore = {{ on_error = '{on_error}', outages = [{{ at = '6h', duration = '30m' }}] }}\n\
                 run.duration"
            ),
            1,
        )
    };
    let half_hour = rates("5/1m").max_in(Duration::from_secs(1800));
    let ideal = rates("5/1m").max_in(hours(24));
    // The store's own window is full again when it comes back: 30 minutes are longer than a minute.
    let without = rates("5/1m").max_in(hours(6)) + rates("5/1m").max_in(Duration::from_secs(17 * 3600 + 1800));
    let local = run(&day("local")).attackers;
    assert_eq!(whole(first(&local, "guesses")), without + 4 * half_hour);
    assert!(whole(first(&local, "guesses")) <= ideal + 4 * half_hour);
    let closed = run(&day("closed")).attackers;
    assert_eq!(whole(first(&closed, "guesses")), without);
    assert!(first(&closed, "unavailable") > 0.0);
    // Open has no bound but the attacker's own: 100 a second.
    assert_eq!(whole(first(&run(&day("open")).attackers, "guesses")), without + 100 * 1800);
}

#[test]
fn an_outage_is_used_by_an_attacker_whose_wait_is_longer_than_the_run() {
    let day = r#"run.duration = "24h"
        policy.fixed_window = { limit = 5, window = "48h" }
        policy.replicas = 3
        store.outages = [{ at = "6h", duration = "1h" }]
        attackers = [{ kind = "vertical" }]"#;
    assert_eq!(guesses(day), 5 + 3 * 5);
}

#[test]
fn whoever_owns_a_prefix_has_as_many_budgets_as_the_rule_tells_subnets_apart() {
    let hour = |owned: u8, rule: u8| {
        guesses(&format!(
            r#"run.duration = "1h"
            policy.rules = [{{ name = "ip", rates = "5/1h", by = ["address"], ipv6_prefix = {rule} }}]
            attackers = [{{ kind = "ipv6-rotation", prefix = {owned}, top_speed = 100 }}]"#
        ))
    };
    assert_eq!(hour(64, 64), 9);
    assert_eq!(hour(48, 48), 9);
    assert_eq!(hour(60, 64), 16 * 9);
    assert_eq!(hour(60, 62), 4 * 9);
    assert_eq!(hour(48, 56), 256 * 9);
    // Each address has a budget of its own: nothing holds the attacker but its speed.
    assert_eq!(hour(64, 128), 3600 * 100);
}
