//! The lab runs by a virtual clock over memory; runtimes, servers and host languages stay outside.
//!
//! Asks cargo for the crates that it links. Invariant: whoever adds one of these as a dependency must meet this test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

const OUTSIDE: [&str; 8] = ["tokio", "redis", "pyo3", "napi", "async", "futures", "hyper", "mio"];

#[test]
fn the_lab_links_no_runtime_and_no_server() {
    let arguments = ["tree", "-p", "doorkeep-lab", "-e", "normal", "--offline", "--prefix", "none", "--format", "{p}"];
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let crates: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains(&"doorkeep") && crates.contains(&"toml"), "{crates:?}");
    let is_outside = |name: &&str| OUTSIDE.iter().any(|outside| name.split('-').next() == Some(outside));
    let outside: Vec<&str> = crates.into_iter().filter(is_outside).collect();
    assert!(outside.is_empty(), "{outside:?}");
}

#[test]
fn the_lab_asks_no_clock_and_draws_no_randomness_of_the_system() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let found = ["Timestamp::now", "Instant", "SystemTime", "secret_words", "getrandom", "doorkeep::redis"];
            let found: Vec<&str> = found.into_iter().filter(|word| text.contains(word)).collect();
            assert!(found.is_empty(), "{} holds {found:?}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 15);
}
