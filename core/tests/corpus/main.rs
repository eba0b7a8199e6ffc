//! Replays the corpus of `tests/vectors` against the limiters.
//!
//! Invariant: a field that the runner does not know fails it, so a vector cannot be half understood.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test fails by panicking")]

mod answers;
mod fields;
mod limiter;
#[cfg(feature = "redis")]
mod over_redis;
#[cfg(feature = "redis")]
#[path = "../support/server.rs"]
#[allow(dead_code, reason = "each test binary uses its part")]
mod server;
mod single;
mod texts;

use fields::Fields;

/// What a step answered, in the corpus's own words.
type Answer = serde_json::Value;

/// A limiter of a case, driven by steps.
trait Subject {
    fn step(&mut self, op: &str, fields: &mut Fields) -> Answer;
}

#[test]
fn every_trace_of_the_corpus_is_answered_as_written() {
    let mut failures = Vec::new();
    let mut steps = 0;
    for file in fields::files().into_iter().filter(|file| !texts::FILES.contains(&file.name.as_str())) {
        for mut case in file.cases {
            let name = format!("{}: {}", file.name, case.text("name"));
            let mut subject = subject(case.fields("limiter"));
            for (i, mut step) in case.list("steps").into_iter().map(Fields::new).enumerate() {
                let op = step.text("op");
                let expected = step.take_if_any("expect");
                let answer = subject.step(&op, &mut step);
                step.done(&name);
                steps += 1;
                if expected.as_ref().is_some_and(|expected| *expected != answer) {
                    let expected = expected.unwrap_or_default();
                    failures.push(format!("{name}, step {i} ({op})\n  expected {expected}\n  answered {answer}"));
                    break;
                }
            }
            case.done(&name);
        }
    }
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
    assert!(steps > 1000, "the corpus was not found: {steps} steps");
}

fn subject(mut limiter: Fields) -> Box<dyn Subject> {
    let kind = limiter.text("kind");
    let subject: Box<dyn Subject> = match kind.as_str() {
        "limiter" => Box::new(limiter::Limiters::new(&mut limiter)),
        "attempt_limiter" => Box::new(single::Attempts::new(&mut limiter)),
        "token_bucket" => Box::new(single::Tokens(single::token_bucket(&mut limiter))),
        "fixed_window" => Box::new(single::Windows(single::fixed_window(&mut limiter))),
        kind => panic!("unknown kind of limiter: {kind}"),
    };
    limiter.done("limiter");
    subject
}
