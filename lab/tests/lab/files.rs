//! A scenario that cannot be run is refused with its line and its field.

use doorkeep_lab::Scenario;

fn error(text: &str) -> String {
    Scenario::read(text).unwrap_err().to_string()
}

/// A policy on lines 1 and 2, then `rest` from line 3 on.
fn after_policy(rest: &str) -> String {
    error(&format!("[policy]\nrules = [\"preset:login-ip\"]\n{rest}"))
}

#[track_caller]
fn says(found: String, expected: &str) {
    assert!(found.starts_with(expected), "found:    {found}\nexpected: {expected}");
}

#[test]
fn an_unknown_attacker_is_named_with_its_line() {
    says(
        after_policy("\n[[attackers]]\nkind = \"vertical\"\n\n[[attackers]]\nkind = \"wizard\""),
        "scenario line 8, attackers[1].kind: unknown attacker, use vertical, spray, stuffing, low-and-slow, botnet, \
         ipv6-rotation, key-flood, lockout, own-success, race, outage, otp, value=`wizard`",
    );
    says(
        after_policy("[[users]]\nkind = \"wizard\""),
        "scenario line 4, users[0].kind: unknown kind of users, use typo,",
    );
}

#[test]
fn a_negative_rate_is_named_with_its_line() {
    for (rate, expected) in [
        ("-1", "must read like 10/1s, or be a number a second above 0, value=`-1`"),
        ("-0.5", "must read like 10/1s, or be a number a second above 0, value=`-0.5`"),
        ("0", "must read like 10/1s"),
        ("nan", "must read like 10/1s"),
        ("\"-1/1s\"", "rate count must be a whole number from 1 to 67108864, rate=`-1/1s`"),
        ("\"1/1s,2/1s\"", "must read like 10/1s"),
        ("\"2/1us\"", "must be at most 1000000 a second, value=`\"2/1us\"`"),
    ] {
        says(
            after_policy(&format!("[[attackers]]\nkind = \"lockout\"\nrate = {rate}")),
            &format!("scenario line 5, attackers[0].rate: {expected}"),
        );
    }
}

#[test]
fn a_missing_policy_is_said() {
    says(error("[[attackers]]\nkind = \"vertical\""), "scenario line 1, policy: is required");
    says(
        error("[run]\n[policy]\nreplicas = 2\n[[attackers]]\nkind = \"vertical\""),
        "scenario line 2, policy: must hold one of rules, attempt_limiter, token_bucket, fixed_window, found none",
    );
}

#[test]
fn an_impossible_mix_is_said() {
    says(
        error("[policy]\nrules = [\"preset:vault\"]\ntoken_bucket = {}\n"),
        "scenario line 1, policy: must hold one of rules, attempt_limiter, token_bucket, fixed_window, found rules and token_bucket",
    );
    says(after_policy(""), "scenario line 1, the whole: nobody attacks and nobody logs in");
    says(
        after_policy("[[attackers]]\nkind = \"outage\""),
        "scenario line 3, attackers[0]: an attack during an outage needs store.outages",
    );
    says(
        after_policy("[[attackers]]\nkind = \"vertical\"\nstart = \"2h\"\nend = \"1h\""),
        "scenario line 3, attackers[0]: start must be before end",
    );
    says(
        after_policy("[[attackers]]\nkind = \"vertical\"\naddresses = 1\nrate = 1\ntop_speed = 5"),
        "scenario line 7, attackers[0].top_speed: only a greedy attacker has a top speed",
    );
    says(
        error(
            "[policy]\nattempt_limiter = { threshold = 1, lockout_window = \"1m\" }\n[[attackers]]\nkind = \"low-and-slow\"",
        ),
        "scenario line 3, attackers[0]: a single attempt locks the account",
    );
    says(
        after_policy("[store]\noutages = [{ at = \"1h\", duration = \"1h\" },\n  { at = \"90m\", duration = \"1h\" }]"),
        "scenario line 5, store.outages[1]: outages must follow each other",
    );
    for start in ["24h", "2d"] {
        says(
            after_policy(&format!("[[users]]\nkind = \"stale-client\"\nstart = \"{start}\"\nend = \"3d\"")),
            "scenario line 5, users[0].start: must be before the run ends",
        );
        says(
            after_policy(&format!("[[attackers]]\nkind = \"vertical\"\nstart = \"{start}\"\nend = \"3d\"")),
            "scenario line 5, attackers[0].start: must be before the run ends",
        );
    }
}

#[test]
fn what_a_success_does_is_refused_at_its_own_field() {
    let attack = "[[attackers]]\nkind = \"vertical\"";
    says(
        after_policy(&format!("forgive = [\"login-ip\"]\n{attack}")),
        "scenario line 3, policy.forgive: the rule is keyed by an address, name it under forgive address to forgive it",
    );
    says(
        after_policy(&format!("capacity = 9\nforgive_address = [\"nobody\"]\n{attack}")),
        "scenario line 4, policy.forgive_address: the policy has no such rule, rule=`nobody`",
    );
    says(
        after_policy(&format!("give_back = [\"nobody\"]\n{attack}")),
        "scenario line 3, policy.give_back: the policy has no such rule, rule=`nobody`",
    );
}

#[test]
fn an_unknown_field_is_named_wherever_it_stands() {
    says(
        after_policy("burst = 5"),
        "scenario line 3, policy: unknown field, use rules, capacity, forgive, give_back, forgive_address, replicas, \
         field=`burst`",
    );
    says(
        after_policy("[[attackers]]\nkind = \"vertical\"\naccounts = 5"),
        "scenario line 5, attackers[0]: unknown field, use kind, rate,",
    );
    says(
        after_policy("[runs]\nseed = 1\n[[attackers]]\nkind = \"race\""),
        "scenario line 3, the whole: unknown field, use run,",
    );
}

#[test]
fn bounds_are_those_of_the_limiters_themselves() {
    says(
        error("[policy]\nrules = [\n  { name = \"a\", strikes = 0, window = \"1m\", by = [\"account\"] },\n]"),
        "scenario line 3, policy.rules[0].strikes: threshold must be a whole number from 1 to 1024, value=`0`",
    );
    says(
        error("[policy]\nrules = [{ name = \"a\", rates = \"5/1x\", by = [\"account\"] }]"),
        "scenario line 2, policy.rules[0].rates: rate period has an unknown unit",
    );
    says(
        error("[policy]\nrules = [{ name = \"a\", rates = \"5/1m\" }]"),
        "scenario line 2, policy.rules[0]: by must say what the rule is keyed by",
    );
    says(
        error("[policy]\nrules = [\"preset:login\"]"),
        "scenario line 2, policy.rules[0]: unknown preset, use preset:login-ip,",
    );
    says(
        error("[policy]\nrules = [\"preset:vault\"]\ncapacity = 0"),
        "scenario line 3, policy.capacity: capacity must be",
    );
    says(
        after_policy("[[users]]\nkind = \"poisson\"\nusers = 1000\nlogins = 10000"),
        "scenario line 6, users[0].logins: all users together must log in at most 1000000 times a second",
    );
    says(
        after_policy("[[users]]\nkind = \"poisson\"\nstart = \"0x\""),
        "scenario line 5, users[0].start: start must read like 15m",
    );
    for (every, expected) in [
        ("0", "every must be a whole number of microseconds from 1 "),
        ("\"1us\"", "all users together must try at most 1000000 times a second, value=`\"1us\"`"),
    ] {
        says(
            after_policy(&format!("[[users]]\nkind = \"stale-client\"\nusers = 2\nevery = {every}")),
            &format!("scenario line 6, users[0].every: {expected}"),
        );
    }
    says(
        error("run.duration = 1e300"),
        "scenario line 1, run.duration: duration must be a whole number of microseconds from 1 to 281474976710656, value=`1e300`",
    );
    says(error("run.duration = \"soon\"\npolicy = 1"), "scenario line 1, run.duration: duration must read like 15m");
}

#[test]
fn what_is_no_toml_or_json_is_named_with_its_line() {
    says(error("[policy]\nrules = ["), "scenario line 2: not TOML, ");
    says(error("a = 1\nb = = 2"), "scenario line 2: not TOML, ");
    says(error("{\n\"run\": }"), "scenario line 2: not JSON, expected value");
}

#[test]
fn json_errors_name_the_field() {
    says(
        error(r#"{"policy": {"rules": ["preset:vault"]}, "attackers": [{"kind": "vertical", "rate": -1}]}"#),
        "scenario attackers[0].rate: must read like 10/1s",
    );
}

#[test]
fn no_text_makes_the_reader_panic() {
    for text in [
        "",
        "{}",
        "[]",
        "null",
        "policy = []",
        "attackers = 5\npolicy = {}",
        "{\"policy\": 5}",
        "\u{feff}",
        "run = 1979-05-27",
    ] {
        assert!(Scenario::read(text).is_err(), "{text}");
    }
}
