//! Prints the goals for the Rust core beside what this machine measured, as ratios taken in one run.
//!
//! `cargo run --release --manifest-path benches/rust/Cargo.toml`. Absolute times wander with the
//! machine and its load; nothing here is asserted.

mod growth;
mod lab;
mod memory;
mod peer;
mod refusal;
mod table;
mod timing;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |goal: &str| only.is_empty() || only.iter().any(|name| name == goal);
    let mut table = table::Table::new();
    if wanted("P4") {
        memory::measure(&mut table);
    }
    if wanted("P3") {
        peer::measure(&mut table);
    }
    if wanted("P5") {
        growth::measure(&mut table);
    }
    if wanted("P10") {
        refusal::measure(&mut table);
    }
    if wanted("P11") {
        lab::measure(&mut table);
    }
    table.print();
}
