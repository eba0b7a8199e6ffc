//! The table of one strike rule as a vector of keys, each with the list of its counted attempts.

use doorkeep::Cancelled;

use super::Strikes;

#[derive(Clone, Debug)]
struct Entry {
    key: u32,
    last: u64,
    counted: Vec<u64>,
    engager: Option<u64>,
    /// When it came to the front of its list; smaller is nearer to the back.
    activity: u64,
}

/// What an attempt on a key meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Nothing,
    Counting { counted: u32, last: u64 },
    Locked { last: u64 },
}

#[derive(Clone, Debug)]
pub(crate) struct Table {
    policy: Strikes,
    capacity: usize,
    all: Vec<Entry>,
    activities: u64,
    pub(crate) evicted: u64,
}

impl Table {
    pub(crate) fn new(policy: Strikes, capacity: usize) -> Self {
        Self { policy, capacity, all: Vec::new(), activities: 0, evicted: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn has(&self, key: u32) -> bool {
        self.find(key).is_some()
    }

    fn find(&self, key: u32) -> Option<usize> {
        self.all.iter().position(|entry| entry.key == key)
    }

    fn end(&self, at: usize) -> u64 {
        self.all[at].last + self.policy.window
    }

    fn live(&self, key: u32, now: u64) -> Option<usize> {
        self.find(key).filter(|at| now < self.end(*at))
    }

    pub(crate) fn standing(&self, key: u32, now: u64) -> Standing {
        let Some(at) = self.live(key, now) else { return Standing::Nothing };
        let entry = &self.all[at];
        let last = if entry.last > now + self.policy.window { now } else { entry.last };
        match entry.engager {
            Some(_) => Standing::Locked { last },
            None => Standing::Counting { counted: u32::try_from(entry.counted.len()).expect("few"), last },
        }
    }

    /// The wait until the named keys that are not there find room.
    pub(crate) fn saturated(&self, named: &[u32], now: u64) -> Option<u64> {
        let new = named.iter().filter(|key| self.find(**key).is_none()).count();
        let others = || (0..self.all.len()).filter(|at| !named.contains(&self.all[*at].key));
        let mut ends: Vec<u64> = others().filter(|at| self.all[*at].engager.is_some()).map(|at| self.end(at)).collect();
        ends.sort_unstable();
        let counting = others().count() - ends.len();
        let missing = (self.all.len() + new).saturating_sub(self.capacity + counting);
        let end = ends.get(missing.checked_sub(1)?)?;
        end.checked_sub(now).filter(|wait| *wait > 0)
    }

    pub(crate) fn make_room(&mut self, named: &[u32], now: u64) {
        let new = named.iter().filter(|key| self.find(**key).is_none()).count();
        while self.all.len() + new > self.capacity {
            let others = || (0..self.all.len()).filter(|at| !named.contains(&self.all[*at].key));
            let counting =
                others().filter(|at| self.all[*at].engager.is_none()).min_by_key(|at| self.all[*at].activity);
            let locked = others().filter(|at| self.all[*at].engager.is_some());
            let locked = locked.min_by_key(|at| (self.end(*at), self.all[*at].activity));
            let expired = [counting, locked].into_iter().flatten().find(|at| self.end(*at) <= now);
            self.evicted += u64::from(expired.is_none());
            self.all.remove(expired.or(counting).expect("tested before"));
        }
    }

    /// Counts an attempt; whether it engaged the lockout.
    pub(crate) fn commit(&mut self, key: u32, id: u64, now: u64) -> bool {
        self.activities += 1;
        let before = match self.standing(key, now) {
            Standing::Nothing => None,
            Standing::Counting { last, .. } | Standing::Locked { last } => Some(last),
        };
        if let Some(at) = self.find(key).filter(|_| before.is_none()) {
            self.all.remove(at);
        }
        let at = self.find(key).unwrap_or_else(|| {
            self.all.push(Entry { key, last: now, counted: Vec::new(), engager: None, activity: 0 });
            self.all.len() - 1
        });
        let entry = &mut self.all[at];
        entry.last = before.unwrap_or(now).max(now);
        entry.counted.push(id);
        entry.activity = self.activities;
        let engages = entry.counted.len() == self.policy.threshold as usize;
        entry.engager = engages.then_some(id);
        engages
    }

    pub(crate) fn heal(&mut self, key: u32, now: u64) {
        let Some(at) = self.find(key).filter(|at| self.all[*at].last > now + self.policy.window) else { return };
        self.all[at].last = now;
        if self.all[at].engager.is_some() {
            self.activities += 1;
            self.all[at].activity = self.activities;
        }
    }

    pub(crate) fn cancel(&mut self, key: u32, id: u64, now: u64) -> Cancelled {
        let Some(at) = self.live(key, now).filter(|at| self.all[*at].counted.contains(&id)) else {
            return Cancelled::Nothing;
        };
        let entry = &mut self.all[at];
        entry.counted.retain(|counted| *counted != id);
        let lifts = entry.engager == Some(id);
        if lifts {
            self.activities += 1;
            (entry.engager, entry.activity) = (None, self.activities);
        }
        if entry.counted.is_empty() {
            self.all.remove(at);
        }
        if lifts { Cancelled::Lifted } else { Cancelled::GivenBack }
    }

    pub(crate) fn refund(&mut self, key: u32, now: u64) {
        let Some(at) = self.live(key, now).filter(|at| self.all[*at].engager.is_none()) else { return };
        self.all[at].counted.remove(0);
        if self.all[at].counted.is_empty() {
            self.all.remove(at);
        }
    }

    pub(crate) fn reset(&mut self, key: u32) {
        self.all.retain(|entry| entry.key != key);
    }
}
