//! Fixed windows in a vector.

use doorkeep::{Outcome, Reason};

use super::Answer;

#[derive(Clone, Copy, Debug)]
struct Window {
    key: u32,
    start: u64,
    count: u32,
    born: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct FixedWindows {
    limit: u32,
    window: u64,
    capacity: usize,
    all: Vec<Window>,
    born: u64,
    pub(crate) evicted: u64,
}

impl FixedWindows {
    pub(crate) fn new(limit: u32, window: u64, capacity: usize) -> Self {
        Self { limit, window, capacity, all: Vec::new(), born: 0, evicted: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn consume(&mut self, key: u32, now: u64) -> Answer {
        if !self.all.iter().any(|window| window.key == key) {
            self.make_room(now);
        }
        let old = self.all.iter().position(|window| window.key == key).map(|at| self.all.remove(at));
        let mut window = match old {
            Some(old) if old.start > now + self.window => Window { start: now, ..old },
            Some(old) if now < old.start + self.window => old,
            _ => {
                self.born += 1;
                Window { key, start: now, count: 0, born: self.born }
            }
        };
        let admits = window.count < self.limit;
        window.count += u32::from(admits);
        self.all.push(window);
        let reset_after = window.start + self.window - now;
        Answer {
            outcome: if admits { Outcome::Allowed } else { Outcome::Denied },
            reason: (!admits).then_some(Reason::Limited),
            rule: (!admits).then(|| "fixed-window".to_owned()),
            retry_after: Some(if admits { 0 } else { reset_after }),
            remaining: self.limit - window.count,
            reset_after,
            engaged: Vec::new(),
        }
    }

    pub(crate) fn reset(&mut self, key: u32) {
        self.all.retain(|window| window.key != key);
    }

    /// The elapsed go first, then the one with budget left that ends soonest, the exhausted last.
    fn make_room(&mut self, now: u64) {
        while self.all.len() >= self.capacity {
            let elapsed = |window: &Window| window.start + self.window <= now;
            let turn = |window: &Window| match (elapsed(window), window.count < self.limit) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 2,
            };
            let first = (0..self.all.len()).min_by_key(|at| {
                let window = &self.all[*at];
                (turn(window), window.start, window.born)
            });
            let first = first.expect("a capacity is at least 1");
            self.evicted += u64::from(!elapsed(&self.all[first]));
            self.all.remove(first);
        }
    }
}
