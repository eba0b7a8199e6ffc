//! The same seed gives the same result in every language: `tests/vectors/lab.json` has runs with all their columns.

use std::path::Path;

use doorkeep_lab::{Column, Outcome, Scenario};
use serde_json::{Map, Value, json};

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/lab.json")
}

/// NaN has no number in JSON and stands as null.
fn to_json(outcome: &Outcome) -> Value {
    let tables = outcome.tables().into_iter().map(|(name, table)| {
        let columns = table.0.iter().map(|(name, column)| {
            let values = match column {
                Column::Numbers(numbers) => json!(numbers),
                Column::Texts(texts) => json!(texts),
            };
            (name.clone(), values)
        });
        (name.to_owned(), Value::Object(columns.collect()))
    });
    Value::Object(tables.collect::<Map<_, _>>())
}

#[test]
fn every_run_has_the_columns_of_its_vector() {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        let outcome = Scenario::read(case["scenario"].as_str().unwrap()).unwrap().run().unwrap();
        assert_eq!(to_json(&outcome), case["outcome"], "{}", case["name"]);
    }
}

#[test]
fn two_runs_of_one_seed_are_equal_and_another_seed_differs() {
    let text = |seed| {
        format!(
            r#"run = {{ duration = "2d", seed = {seed} }}
            policy.rules = ["preset:login-ip", "preset:login-account-ip", "preset:login-account"]
            attackers = [{{ kind = "spray", accounts = 500 }}]
            users = [{{ kind = "nat" }}, {{ kind = "wrong-account", users = 20 }}]"#
        )
    };
    let run = |seed| format!("{:?}", Scenario::read(&text(seed)).unwrap().run().unwrap());
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn json_and_toml_of_one_scenario_are_one_scenario() {
    let toml = r#"
        [run]
        duration = "1h"
        [policy]
        rules = [{ name = "a", strikes = 5, window = "15m", by = ["account"] }]
        [[attackers]]
        kind = "vertical"
    "#;
    let json = r#"{"run": {"duration": 3600}, "store": null,
        "policy": {"rules": [{"name": "a", "strikes": 5, "window": 900, "by": ["account"]}]},
        "attackers": [{"kind": "vertical"}]}"#;
    assert_eq!(Scenario::read(toml).unwrap(), Scenario::read(json).unwrap());
}

#[test]
fn a_fraction_means_the_same_number_in_both() {
    // 17 digits, which a reader that does not round correctly reads as a neighbour.
    let toml = "policy.rules = ['preset:vault']\nusers = [{ kind = 'forgetful', success = 0.09715133754057297 }]";
    let json =
        r#"{"policy": {"rules": ["preset:vault"]}, "users": [{"kind": "forgetful", "success": 0.09715133754057297}]}"#;
    assert_eq!(Scenario::read(toml).unwrap(), Scenario::read(json).unwrap());
}
