//! The core decides; runtimes, servers and host languages stay outside.
//!
//! Asks cargo for the crates that the default build links. Invariant: whoever adds one of these as
//! a dependency of the core must meet this test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

const OUTSIDE: [&str; 8] = ["tokio", "redis", "pyo3", "napi", "async", "futures", "hyper", "mio"];

#[test]
fn the_default_build_links_no_runtime_no_server_and_no_host_language() {
    let arguments = ["tree", "-p", "doorkeep", "-e", "normal", "--offline", "--prefix", "none", "--format", "{p}"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let crates: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains(&"doorkeep") && crates.contains(&"parking_lot"), "the tree was not read: {tree}");
    let is_outside = |name: &str| OUTSIDE.iter().any(|outside| name.split('-').next() == Some(outside));
    let found: Vec<&&str> = crates.iter().filter(|name| is_outside(name)).collect();
    assert!(found.is_empty(), "{found:?} came in:\n{tree}");
}
