//! The lab: what can be computed is hit to the last unit, what was published is reproduced, and a broken limiter shows.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod closed_forms;
mod files;
mod golden;
mod honest;
mod mixes;
mod planted;
mod published;
mod stopping;

use std::time::Duration;

use doorkeep_lab::{Outcome, Scenario, Table};

fn run(text: &str) -> Outcome {
    Scenario::read(text).unwrap_or_else(|error| panic!("{error}\n{text}")).run().unwrap()
}

/// The first row of a column.
fn first(table: &Table, column: &str) -> f64 {
    table.numbers(column).unwrap_or_else(|| panic!("no column {column}"))[0]
}

fn guesses(text: &str) -> u64 {
    whole(first(&run(text).attackers, "guesses"))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
fn whole(count: f64) -> u64 {
    assert!(count.fract() == 0.0 && count >= 0.0, "{count}");
    count as u64
}

fn hours(hours: u64) -> Duration {
    Duration::from_secs(3600 * hours)
}
