//! A run that is stopped gives what is there, and a run of any length stays small.

use std::ops::ControlFlow;

use doorkeep_lab::Scenario;

use crate::{first, run};

const LONG: &str = r#"run = { duration = "365d", bins = 10 }
    policy.rules = [{ name = "account", rates = "60/1m", by = ["account"] }]
    attackers = [{ kind = "vertical", rate = "1/1s" }]"#;

#[test]
fn a_stopped_run_gives_what_is_there() {
    let mut looks = Vec::new();
    let outcome = Scenario::read(LONG).unwrap().run_watched(|progress| {
        looks.push(progress.done);
        if looks.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let outcome = outcome.unwrap();
    assert_eq!(looks.len(), 3);
    assert!(looks.is_sorted() && looks[2] < 0.1, "{looks:?}");
    assert_eq!(first(&outcome.run, "complete"), 0.0);
    assert_eq!(first(&outcome.attackers, "guesses"), first(&outcome.run, "events"));
    assert_eq!(first(&outcome.run, "duration_s") + 1.0, first(&outcome.run, "events"));
}

#[test]
fn a_run_without_attempts_can_be_stopped_too() {
    // Whoever is in the middle of a login begins no second one.
    let busy = r#"run.duration = "24h"
        policy.rules = ["preset:login-ip"]
        users = [{ kind = "typo", logins = "1000000/1s", wrong = 1, repeat = 1, pause = "1d" }]"#;
    let mut looks = 0;
    let outcome = Scenario::read(busy).unwrap().run_watched(|_| {
        looks += 1;
        if looks == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let outcome = outcome.unwrap();
    assert_eq!(first(&outcome.run, "complete"), 0.0);
    assert_eq!(first(&outcome.run, "events"), 1.0);
}

#[test]
fn an_attacker_with_no_account_left_rests_for_the_rest_of_the_run() {
    for random in [false, true] {
        let outcome = run(&format!(
            r#"run.duration = "3000d"
            policy.rules = ["preset:login-ip"]
            attackers = [
                {{ kind = "vertical", rate = "1000000/1s", random = {random}, guesses = 1 }},
                {{ kind = "stuffing", rate = "1000000/1s", random = {random}, accounts = 10 }},
            ]"#
        ));
        assert_eq!(first(&outcome.run, "events"), 11.0);
        assert_eq!(first(&outcome.run, "complete"), 1.0);
    }
}

#[test]
fn the_table_of_a_flood_never_passes_the_capacity() {
    let outcome = run(r#"run.duration = "1h"
        policy.capacity = 500
        policy.rules = [{ name = "account", rates = "5/1h", by = ["account"] }]
        attackers = [{ kind = "spray", accounts = 100_000, rate = "100/1s" }]"#);
    assert_eq!(first(&outcome.run, "tracked_keys_max"), 500.0);
    assert_eq!(first(&outcome.run, "evicted"), 100_000.0 - 500.0 + 260_000.0);
}
