//! What is counted while a run goes on: by attacker, by group of users, and over time.
//!
//! Invariant: its size depends on the scenario, never on the number of events.

use doorkeep::Reason;

use crate::columns::{self, Table};
use crate::histogram::Histogram;
use crate::subject::Answer;

/// What the attempts of one actor met.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) attempts: u64,
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) unavailable: u64,
    pub(crate) degraded: u64,
    pub(crate) first_denied: Option<u64>,
    pub(crate) first_locked: Option<u64>,
    pub(crate) last_admitted: Option<u64>,
    pub(crate) waits: Histogram,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            attempts: 0,
            admitted: 0,
            denied: 0,
            unavailable: 0,
            degraded: 0,
            first_denied: None,
            first_locked: None,
            last_admitted: None,
            waits: Histogram::new(),
        }
    }

    fn count(&mut self, answer: &Answer, now: u64) {
        self.attempts += 1;
        self.degraded += u64::from(answer.degraded);
        match answer.denied {
            None => {
                self.admitted += 1;
                self.last_admitted = Some(now);
            }
            Some(reason) => {
                self.denied += 1;
                self.unavailable += u64::from(reason == Reason::Unavailable);
                self.first_denied.get_or_insert(now);
                if let Some(wait) = answer.wait {
                    self.waits.add(wait);
                }
            }
        }
        if answer.engaged || answer.denied == Some(Reason::Locked) {
            self.first_locked.get_or_insert(now);
        }
    }
}

/// Whose attempt it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Attacker(usize),
    Users(usize),
}

/// Counts in rows of equal length.
pub(crate) struct Series {
    length: u64,
    row: usize,
    row_ends: u64,
    attackers: Vec<Vec<u64>>,
    attackers_denied: Vec<u64>,
    users_admitted: Vec<u64>,
    users_denied: Vec<u64>,
    degraded: Vec<u64>,
    tracked_keys: Vec<u64>,
    evicted: Vec<u64>,
}

impl Series {
    pub(crate) fn new(duration: u64, bins: u32, attackers: usize) -> Self {
        let length = duration.div_ceil(u64::from(bins)).max(1);
        let rows = usize::try_from(duration.div_ceil(length)).expect("at most 10,000");
        let row = || vec![0; rows];
        Self {
            length,
            row: 0,
            row_ends: length,
            attackers: (0..attackers).map(|_| row()).collect(),
            attackers_denied: row(),
            users_admitted: row(),
            users_denied: row(),
            degraded: row(),
            tracked_keys: row(),
            evicted: row(),
        }
    }

    pub(crate) fn row_ends(&self) -> u64 {
        self.row_ends
    }

    /// Ends rows up to the one that `now` lies in; `table` is what the limiter holds meanwhile.
    pub(crate) fn advance(&mut self, now: u64, table: (u64, u64)) {
        let last = self.degraded.len() - 1;
        while now >= self.row_ends {
            (self.tracked_keys[self.row], self.evicted[self.row]) = table;
            if self.row == last {
                self.row_ends = u64::MAX;
                return;
            }
            self.row += 1;
            self.row_ends += self.length;
        }
        (self.tracked_keys[self.row], self.evicted[self.row]) = table;
    }

    pub(crate) fn count(&mut self, who: Who, answer: &Answer) {
        let column = match (who, answer.allowed()) {
            (Who::Attacker(index), true) => &mut self.attackers[index],
            (Who::Attacker(_), false) => &mut self.attackers_denied,
            (Who::Users(_), true) => &mut self.users_admitted,
            (Who::Users(_), false) => &mut self.users_denied,
        };
        column[self.row] += 1;
        self.degraded[self.row] += u64::from(answer.degraded);
    }

    pub(crate) fn most_tracked_keys(&self) -> u64 {
        self.tracked_keys.iter().copied().max().unwrap_or(0)
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::default();
        let numbers = |counts: &[u64]| counts.iter().copied().map(columns::count).collect::<Vec<_>>();
        table
            .push("start_s", (0..).take(self.degraded.len()).map(|row: u64| columns::seconds(Some(row * self.length))));
        for (index, admitted) in self.attackers.iter().enumerate() {
            table.push(format!("attacker_{index}_admitted"), numbers(admitted));
        }
        table.push("attackers_denied", numbers(&self.attackers_denied));
        table.push("users_admitted", numbers(&self.users_admitted));
        table.push("users_denied", numbers(&self.users_denied));
        table.push("degraded", numbers(&self.degraded));
        table.push("tracked_keys", numbers(&self.tracked_keys));
        table.push("evicted", numbers(&self.evicted));
        table
    }
}

/// The limiter with everything that is counted about it.
pub(crate) struct World<'a> {
    pub(crate) fleet: crate::fleet::Fleet<'a>,
    pub(crate) series: Series,
    pub(crate) events: u64,
}

impl World<'_> {
    /// One attempt arrives at a replica.
    pub(crate) fn arrive(
        &mut self,
        who: Who,
        tally: &mut Tally,
        replica: u32,
        request: &crate::subject::Request,
        now: u64,
    ) -> (Answer, crate::fleet::Place) {
        let (answer, place) = self.fleet.arrive(replica, request, now);
        self.events += 1;
        tally.count(&answer, now);
        self.series.count(who, &answer);
        (answer, place)
    }
}
