//! A bug planted in a limiter shows in the lab.

use std::collections::HashMap;
use std::ops::ControlFlow;

use doorkeep::{AttemptLimiter, Reason, Strikes, Timestamp};
use doorkeep_lab::{Answer, Outcome, Request, Scenario, Subject};

use crate::first;

const THRESHOLD: u32 = 5;
const WINDOW: u64 = 900_000_000;

/// Counts strikes as so many do: looks first, and records when the password turned out wrong.
#[derive(Default)]
struct ChecksThenCounts {
    strikes: HashMap<u32, (u32, u64)>,
}

impl Subject for ChecksThenCounts {
    fn arrive(&mut self, request: &Request, now: u64) -> Answer {
        self.peek(request, now)
    }

    fn verified(&mut self, request: &Request, now: u64) {
        let entry = self.strikes.entry(request.account).or_default();
        if now >= entry.1 + WINDOW {
            entry.0 = 0;
        }
        *entry = (entry.0 + 1, now);
    }

    fn peek(&mut self, request: &Request, now: u64) -> Answer {
        match self.strikes.get(&request.account) {
            Some((count, last)) if *count >= THRESHOLD && now < last + WINDOW => Answer {
                denied: Some(Reason::Locked),
                wait: Some(last + WINDOW - now),
                by_account: true,
                ..Answer::ALLOWED
            },
            _ => Answer::ALLOWED,
        }
    }

    fn table(&self) -> (u64, u64) {
        (self.strikes.len() as u64, 0)
    }
}

/// The real limiter, but a wrong attempt is cancelled as if it had been right.
struct ForgivesEverything(AttemptLimiter);

impl Subject for ForgivesEverything {
    fn arrive(&mut self, request: &Request, now: u64) -> Answer {
        let decision = self.0.decide(request.account.to_string(), Timestamp::from_micros(now).unwrap()).unwrap();
        let wait = decision.retry_after.map(|wait| u64::try_from(wait.as_micros()).unwrap());
        Answer { denied: decision.reason, wait, by_account: true, ..Answer::ALLOWED }
    }

    fn verified(&mut self, request: &Request, _now: u64) {
        self.0.reset(request.account.to_string()).unwrap();
    }

    fn peek(&mut self, _request: &Request, _now: u64) -> Answer {
        Answer::ALLOWED
    }

    fn table(&self) -> (u64, u64) {
        (self.0.len() as u64, 0)
    }
}

fn race() -> Scenario {
    Scenario::read(
        r#"run.duration = "15m"
        policy.attempt_limiter = { threshold = 5, lockout_window = "15m" }
        attackers = [{ kind = "race", parallel = 500 }]"#,
    )
    .unwrap()
}

fn against(scenario: &Scenario, make: impl Fn() -> Box<dyn Subject>) -> Outcome {
    scenario.run_against(&|| Ok(make()), |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn of_500_guesses_at_one_moment_5_pass() {
    assert_eq!(first(&race().run().unwrap().attackers, "guesses"), 5.0);
}

#[test]
fn a_limiter_that_checks_and_then_counts_lets_all_500_through() {
    let broken = against(&race(), || Box::<ChecksThenCounts>::default());
    assert_eq!(first(&broken.attackers, "guesses"), 500.0);
}

#[test]
fn without_a_race_that_limiter_looks_sound_which_is_why_the_lab_races() {
    let day = Scenario::read(
        r#"policy.attempt_limiter = { threshold = 5, lockout_window = "15m" }
        attackers = [{ kind = "vertical" }]"#,
    )
    .unwrap();
    let broken = against(&day, || Box::<ChecksThenCounts>::default());
    assert_eq!(first(&broken.attackers, "guesses"), 480.0);
}

#[test]
fn a_limiter_that_forgives_wrong_guesses_admits_all_of_them() {
    let hour = Scenario::read(
        r#"run.duration = "1h"
        policy.attempt_limiter = { threshold = 5, lockout_window = "15m" }
        attackers = [{ kind = "vertical", rate = "1/1s" }]"#,
    )
    .unwrap();
    let strikes = Strikes { threshold: 5, lockout_window: std::time::Duration::from_secs(900), max_tracked_keys: 100 };
    let broken = against(&hour, || Box::new(ForgivesEverything(AttemptLimiter::new(strikes).unwrap())));
    assert_eq!(first(&broken.attackers, "guesses"), 3600.0);
    assert_eq!(first(&hour.run().unwrap().attackers, "guesses"), 20.0);
}

#[test]
fn forgiving_the_address_lets_an_attacker_with_an_account_of_their_own_wash_it_clean() {
    let day = |forgive: &str| {
        let text = format!(
            r#"run.duration = "24h"
            policy.rules = [{{ name = "ip", strikes = 5, window = "15m", by = ["address"] }}]
            {forgive}
            attackers = [{{ kind = "own-success", every = 4, top_speed = 1 }}]"#
        );
        first(&Scenario::read(&text).unwrap().run().unwrap().attackers, "guesses")
    };
    // Four guesses and one own login lock the address; forgiven, four of every five attempts are guesses.
    assert_eq!(day(""), 4.0 * 96.0);
    assert_eq!(day("policy.forgive_address = ['ip']"), 86_400.0 * 4.0 / 5.0);
}
