//! The core decides; runtimes, servers and host languages stay outside.
//!
//! Asks cargo for the crates that the default build links. Invariant: whoever adds one of these as
//! a dependency of the core must meet this test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

const OUTSIDE: [&str; 8] = ["tokio", "redis", "pyo3", "napi", "async", "futures", "hyper", "mio"];

/// The crates that a build with these features links.
fn crates_of(features: &str) -> Vec<String> {
    let arguments = ["tree", "-p", "doorkeep", "-e", "normal", "--offline", "--prefix", "none", "--format", "{p}"];
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(arguments).args(["--features", features]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    tree.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

fn outside(crates: &[String]) -> Vec<&String> {
    let is_outside = |name: &str| OUTSIDE.iter().any(|outside| name.split('-').next() == Some(outside));
    crates.iter().filter(|name| is_outside(name)).collect()
}

#[test]
fn the_default_build_links_no_runtime_no_server_and_no_host_language() {
    let crates = crates_of("");
    assert!(crates.iter().any(|name| name == "doorkeep") && crates.iter().any(|name| name == "parking_lot"));
    assert!(outside(&crates).is_empty(), "{crates:?}");
    let readers = ["libm", "serde_json", "toml"];
    assert!(!crates.iter().any(|name| readers.contains(&name.as_str())), "what the lab reads with came in: {crates:?}");
}
