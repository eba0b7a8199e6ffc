//! The run: one queue of moments, a clock that jumps from one to the next, and the result.
//!
//! Reads no system clock. Invariant: what happens at one moment happens in the order of the scenario, attackers first,
//! so that a seed repeats a run bit by bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use crate::attacker::{self, Attacker};
use crate::columns::{Table, count, seconds};
use crate::error::Error;
use crate::fleet::{Fleet, Make};
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::tally::{Series, World};
use crate::users::{self, Users};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Attempts so far.
    pub events: u64,
    /// The share of the run's time that has passed: 0 to 1.
    pub done: f64,
}

/// What came of a run, as columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// One row: the run as a whole.
    pub run: Table,
    /// A row for each attacker.
    pub attackers: Table,
    /// A row for each group of users.
    pub users: Table,
    /// A row for each equal part of the run.
    pub series: Table,
    /// A row for each of the first admitted guesses of each attacker.
    pub admissions: Table,
}

impl Outcome {
    /// The tables by name, in a fixed order.
    #[must_use]
    pub fn tables(&self) -> [(&'static str, &Table); 5] {
        [
            ("run", &self.run),
            ("attackers", &self.attackers),
            ("users", &self.users),
            ("series", &self.series),
            ("admissions", &self.admissions),
        ]
    }
}

/// How often a run looks up from its work, in attempts or in steps without any: some 30 ms.
const LOOKS_UP_EVERY: u64 = 1 << 16;

impl Scenario {
    /// Runs the scenario to its end.
    ///
    /// ```
    /// use doorkeep_lab::Scenario;
    ///
    /// let scenario = Scenario::read(r#"
    ///     run.duration = "24h"
    ///     policy.rules = [{ name = "account", rates = "5/1m,50/1h", by = ["account"] }]
    ///     attackers = [{ kind = "vertical" }]
    /// "#)?;
    /// let guesses = scenario.run()?.attackers.numbers("guesses").map(<[f64]>::to_vec);
    /// assert_eq!(guesses, Some(vec![1249.0]));
    /// # Ok::<(), doorkeep_lab::Error>(())
    /// ```
    ///
    /// # Errors
    /// The policy cannot be made; not for a scenario that was read.
    pub fn run(&self) -> Result<Outcome, Error> {
        self.run_watched(|_| ControlFlow::Continue(()))
    }

    /// Runs the scenario; `look` is told the progress every 65,536 attempts, or moments without
    /// one, and may stop it with what is there.
    ///
    /// # Errors
    /// As for [`Scenario::run`].
    pub fn run_watched(&self, look: impl FnMut(Progress) -> ControlFlow<()>) -> Result<Outcome, Error> {
        self.run_against(&|| self.policy.subject(), look)
    }

    /// Runs the scenario against another limiter than its policy's. Whoever doubts the lab brings a broken one.
    ///
    /// # Errors
    /// `make` fails.
    pub fn run_against(
        &self,
        make: &dyn Fn() -> Result<Box<dyn Subject>, Error>,
        look: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Outcome, Error> {
        Run::new(self, make)?.go(look)
    }
}

struct Run<'a> {
    scenario: &'a Scenario,
    world: World<'a>,
    attackers: Vec<Attacker>,
    users: Vec<Users>,
    /// When each actor is due; attackers are numbered before users.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// When the last attacker ends, until that was noticed.
    attack_ends: Option<u64>,
    /// When something other than an attempt is due.
    next_notice: u64,
    now: u64,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, make: Make<'a>) -> Result<Self, Error> {
        let Scenario { run, replicas, store, attackers, users, .. } = scenario;
        let fleet = Fleet::new(make, *replicas, store.as_ref())?;
        let visible = fleet.replicas();
        let attackers: Vec<Attacker> =
            (0..).zip(attackers).map(|(index, _)| Attacker::new(index, scenario, visible)).collect();
        let users: Vec<Users> = (0..).zip(users).map(|(index, spec)| Users::new(index, spec, run.seed)).collect();
        let starts = attackers.iter().map(Attacker::start).chain(users.iter().map(Users::start));
        let queue = starts.enumerate().map(|(actor, start)| Reverse((start, actor))).collect();
        let attack_ends = attackers.iter().map(Attacker::end).max().map(|end| end.min(run.duration));
        let series = Series::new(run.duration, run.bins, attackers.len());
        let world = World { fleet, series, events: 0 };
        let mut run = Self { scenario, world, attackers, users, queue, attack_ends, next_notice: 0, now: 0 };
        run.plan_notice();
        Ok(run)
    }

    fn go(mut self, mut look: impl FnMut(Progress) -> ControlFlow<()>) -> Result<Outcome, Error> {
        let duration = self.scenario.run.duration;
        let (mut steps, mut looks_up_at) = (0, LOOKS_UP_EVERY);
        let mut is_complete = true;
        loop {
            let due = self.queue.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            if due.min(self.next_notice) >= duration {
                break;
            }
            if self.next_notice <= due {
                self.notice()?;
                continue;
            }
            self.now = due;
            self.step(due);
            steps += 1;
            // A step may make no attempt or many; a run that makes none must end when it is told to, too.
            let work = self.world.events.max(steps);
            if work >= looks_up_at {
                looks_up_at = work + LOOKS_UP_EVERY;
                let progress = Progress { events: self.world.events, done: count(due) / count(duration) };
                if look(progress).is_break() {
                    is_complete = false;
                    break;
                }
            }
        }
        if is_complete {
            self.now = duration;
            if self.attack_ends.is_some() {
                self.recover(duration);
            }
        }
        Ok(self.outcome(is_complete))
    }

    fn step(&mut self, now: u64) {
        let Some(mut due) = self.queue.peek_mut() else { return };
        let Reverse((_, actor)) = *due;
        let next = match actor.checked_sub(self.attackers.len()) {
            None => self.attackers[actor].step(now, &mut self.world),
            Some(users) => self.users[users].step(now, &mut self.world),
        };
        match next {
            Some(next) => *due = Reverse((next, actor)),
            None => {
                std::collections::binary_heap::PeekMut::pop(due);
            }
        }
    }

    /// Does what is due that is no attempt: a row of the series ends, the store fails or comes back, the attack is over.
    fn notice(&mut self) -> Result<(), Error> {
        let now = self.next_notice;
        self.world.series.advance(now, self.world.fleet.table());
        if self.world.fleet.next_change() == Some(now) {
            self.world.fleet.change()?;
            self.wake(now);
        }
        if self.attack_ends == Some(now) {
            self.recover(now);
        }
        self.plan_notice();
        Ok(())
    }

    fn plan_notice(&mut self) {
        let changes = [Some(self.world.series.row_ends()), self.world.fleet.next_change(), self.attack_ends];
        self.next_notice = changes.into_iter().flatten().min().unwrap_or(u64::MAX);
    }

    /// Attackers that wait for something may go on when the store changes.
    fn wake(&mut self, now: u64) {
        let replicas = self.world.fleet.replicas();
        self.attackers.iter_mut().for_each(|attacker| attacker.wake(replicas));
        let is_attacker = |actor: usize| actor < self.attackers.len();
        let woken = std::mem::take(&mut self.queue).into_iter().map(|Reverse((at, actor))| {
            let waits = is_attacker(actor) && self.attackers[actor].start() <= now && self.attackers[actor].is_greedy();
            Reverse((if waits { at.min(now) } else { at }, actor))
        });
        self.queue = woken.collect();
    }

    fn recover(&mut self, now: u64) {
        self.attack_ends = None;
        self.users.iter_mut().for_each(|users| users.recover(now, &mut self.world));
    }

    fn outcome(mut self, is_complete: bool) -> Outcome {
        let (tracked_keys, evicted) = self.world.fleet.table();
        self.world.series.advance(self.now, (tracked_keys, evicted));
        let mut run = Table::default();
        let (attackers, users) = (attacker::table(&self.attackers), users::table(&self.users));
        let degraded: f64 = [&attackers, &users].iter().filter_map(|table| table.numbers("degraded")).flatten().sum();
        run.push("complete", [f64::from(u8::from(is_complete))]);
        run.push("duration_s", [seconds(Some(self.now))]);
        run.push("events", [count(self.world.events)]);
        run.push("degraded_percent", [100.0 * degraded / count(self.world.events.max(1))]);
        run.push("tracked_keys", [count(tracked_keys)]);
        run.push("tracked_keys_max", [count(self.world.series.most_tracked_keys().max(tracked_keys))]);
        run.push("evicted", [count(evicted)]);
        let admissions = attacker::admissions(&self.attackers);
        Outcome { run, attackers, users, series: self.world.series.table(), admissions }
    }
}
