//! Honest people: when they log in, and what they do with an answer.
//!
//! Knows the answers that it is given and no limiter. Invariant: a person has one login under way at most, so what is
//! kept is bounded by their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::Ipv4Addr;

use crate::columns::{Table, count, seconds};
use crate::rng::{Rng, mean_gap};
use crate::scenario::{self, Habit};
use crate::subject::Request;
use crate::tally::{Tally, Who, World};

/// The first byte of honest addresses; attackers have those below.
const FIRST_NETWORK: u32 = 128;

pub(crate) struct Users {
    index: u32,
    spec: scenario::Users,
    tally: Tally,
    rng: Rng,
    /// The mean time between two logins of the whole group, in µs.
    mean_gap: f64,
    /// When the next one begins; of a stale client: the time and place of its next try.
    next_login: u64,
    /// Logins that go on later.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    logins_under_way: Vec<Login>,
    logins: u64,
    logins_denied: u64,
    succeeded: u64,
    gave_up: u64,
    /// The wait of the first of them once the attack was over.
    recovery: Option<u64>,
}

/// One login of one person.
#[derive(Clone, Copy, Debug, Default)]
struct Login {
    is_under_way: bool,
    was_denied: bool,
    /// Passwords that were looked at.
    tries: u32,
    /// Passwords of other accounts that will be tried first.
    others: u32,
}

impl Users {
    pub(crate) fn new(index: u32, spec: &scenario::Users, seed: u64) -> Self {
        let mut rng = Rng::new(seed, u64::from(index) << 1 | 1);
        let mean_gap = mean_gap(&spec.logins) / f64::from(spec.users);
        let next_login = match spec.kind {
            Habit::StaleClient { .. } => spec.start,
            _ => spec.start.saturating_add(rng.gap(mean_gap)),
        };
        Self {
            index,
            tally: Tally::new(),
            rng,
            mean_gap,
            next_login,
            waiting: BinaryHeap::new(),
            logins_under_way: vec![Login::default(); spec.users as usize],
            logins: 0,
            logins_denied: 0,
            succeeded: 0,
            gave_up: 0,
            recovery: None,
            spec: spec.clone(),
        }
    }

    /// When to be asked first.
    pub(crate) fn start(&self) -> u64 {
        self.next_login
    }

    /// What the first of them would be told, now that the attack is over.
    pub(crate) fn recover(&mut self, now: u64, world: &mut World<'_>) {
        self.recovery = world.fleet.peek(&self.request(0, true), now).wait;
    }

    /// Makes what is due at `now`. Returns when to be asked again; none when there is nothing left to do.
    pub(crate) fn step(&mut self, now: u64, world: &mut World<'_>) -> Option<u64> {
        if let Some(Reverse((_, user))) = self.waiting.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.waiting.pop();
            self.go_on(user, now, world);
        } else if self.next_login <= now && self.next_login < self.spec.end {
            self.begin(now, world);
        }
        let waiting = self.waiting.peek().map(|Reverse((at, _))| *at);
        let beginning = Some(self.next_login).filter(|at| *at < self.spec.end);
        waiting.into_iter().chain(beginning).min()
    }

    fn begin(&mut self, now: u64, world: &mut World<'_>) {
        let user = match self.spec.kind {
            Habit::StaleClient { every } => {
                // Each in its turn, spread over the time between two tries.
                let turn = self.logins;
                let after = u128::from(every) * u128::from(turn + 1) / u128::from(self.spec.users);
                self.next_login = self.spec.start.saturating_add(u64::try_from(after).unwrap_or(u64::MAX));
                u32::try_from(turn % u64::from(self.spec.users)).expect("below a number of 32 bits")
            }
            _ => {
                self.next_login = now.saturating_add(self.rng.gap(self.mean_gap));
                self.rng.below(self.spec.users)
            }
        };
        if self.logins_under_way[user as usize].is_under_way {
            return;
        }
        self.logins += 1;
        let others = match self.spec.kind {
            Habit::WrongAccount { wrong, others } if self.rng.happens(wrong) => 1 + self.rng.below(others),
            _ => 0,
        };
        self.logins_under_way[user as usize] = Login { is_under_way: true, others, ..Login::default() };
        self.go_on(user, now, world);
    }

    /// Types a password.
    fn go_on(&mut self, user: u32, now: u64, world: &mut World<'_>) {
        let login = self.logins_under_way[user as usize];
        let correct = self.is_right(&login);
        let request = self.request(user, correct);
        let who = Who::Users(self.index as usize);
        let (answer, place) = world.arrive(who, &mut self.tally, self.rng.below(world.fleet.replicas()), &request, now);
        let tries_again = !matches!(self.spec.kind, Habit::Poisson | Habit::StaleClient { .. });
        let login = &mut self.logins_under_way[user as usize];
        if !answer.allowed() {
            if !std::mem::replace(&mut login.was_denied, true) {
                self.logins_denied += 1;
            }
            match answer.wait.filter(|wait| tries_again && *wait <= self.spec.patience) {
                Some(wait) => self.waiting.push(Reverse((now + wait.max(1), user))),
                None => login.is_under_way = false,
            }
            return;
        }
        world.fleet.verified(place, &request, now);
        login.tries += 1;
        if correct {
            self.succeeded += 1;
            login.is_under_way = false;
        } else if tries_again && login.tries < self.spec.tries {
            self.waiting.push(Reverse((now.saturating_add(self.spec.pause.max(1)), user)));
        } else {
            self.gave_up += 1;
            login.is_under_way = false;
        }
    }

    /// Whether the next password of a login is the right one.
    fn is_right(&mut self, login: &Login) -> bool {
        match self.spec.kind {
            Habit::Typo { wrong, repeat } => !self.rng.happens(if login.tries == 0 { wrong } else { repeat }),
            Habit::WrongAccount { .. } => login.tries >= login.others,
            Habit::StaleClient { .. } => false,
            Habit::Forgetful { success } => self.rng.happens(success),
            Habit::Poisson => true,
        }
    }

    fn request(&self, user: u32, correct: bool) -> Request {
        let host = if self.spec.shared_address { 0 } else { user };
        let address = Ipv4Addr::from_bits((FIRST_NETWORK + self.index) << 24 | host).into();
        Request { account: self.spec.account + user, address, correct }
    }
}

/// One row for each group.
pub(crate) fn table(users: &[Users]) -> Table {
    let mut table = Table::default();
    table.push_texts("kind", users.iter().map(|users| users.spec.kind.name()));
    let mut add = |name: &str, of: &dyn Fn(&Users) -> f64| table.push(name, users.iter().map(of));
    add("logins", &|users| count(users.logins));
    add("logins_denied", &|users| count(users.logins_denied));
    add("denied_percent", &|users| 100.0 * count(users.logins_denied) / count(users.logins));
    add("succeeded", &|users| count(users.succeeded));
    add("gave_up", &|users| count(users.gave_up));
    add("attempts", &|users| count(users.tally.attempts));
    add("admitted", &|users| count(users.tally.admitted));
    add("denied", &|users| count(users.tally.denied));
    add("unavailable", &|users| count(users.tally.unavailable));
    add("degraded", &|users| count(users.tally.degraded));
    add("first_denied_s", &|users| seconds(users.tally.first_denied));
    add("first_locked_s", &|users| seconds(users.tally.first_locked));
    add("wait_p50_s", &|users| seconds(users.tally.waits.quantile(50)));
    add("wait_p95_s", &|users| seconds(users.tally.waits.quantile(95)));
    add("wait_max_s", &|users| seconds(users.tally.waits.max()));
    add("recovery_s", &|users| seconds(users.recovery));
    table
}
