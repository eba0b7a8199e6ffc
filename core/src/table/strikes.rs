//! The bounded table of one strike policy, with a list of its counting and one of its locked keys.
//!
//! `&mut self` only: no lock, no clock. Invariant: a lockout is never evicted. Room for new keys is
//! made by dropping what has expired, then the least recently active counting key; when every slot
//! holds a live lockout, new keys are denied. Specified by `tests/vectors/strikes-capacity.json`.

use crate::decision::Outcome;
use crate::id::AttemptId;
use crate::key::Digest;
use crate::policy::strikes::{Cancelled, Policy, Strikes, Verdict};
use crate::table::recency::{Linked, Links, RecencyList};
use crate::table::slots::{Keyed, Slot, Slots};
use crate::time::Timestamp;

#[derive(Default)]
struct Entry {
    key: Digest,
    links: Links,
    strikes: Strikes,
}

impl Keyed for Entry {
    fn key(&self) -> (Digest, u32) {
        (self.key, 0)
    }
}

impl Linked for Entry {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

const COUNTING: usize = 0;
const LOCKED: usize = 1;
const MOST_STEPS: usize = 64;

pub(crate) struct StrikeTable {
    policy: Policy,
    capacity: usize,
    slots: Slots<Entry>,
    /// Counting keys, the most recently active in front; locked keys, the one that ends last in front.
    lists: [RecencyList; 2],
    evicted: u64,
    ids: u64,
}

impl StrikeTable {
    pub(crate) fn new(policy: Policy, capacity: usize) -> Self {
        Self { policy, capacity, slots: Slots::new(), lists: [RecencyList::new(); 2], evicted: 0, ids: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// An id that no other attempt on this table has.
    pub(crate) fn next_id(&mut self) -> AttemptId {
        self.ids += 1;
        AttemptId(self.ids)
    }

    pub(crate) fn find(&self, key: &Digest) -> Option<Slot> {
        self.slots.find(key, 0)
    }

    /// The live strikes behind a slot.
    pub(crate) fn live(&self, slot: Option<Slot>, now: Timestamp) -> Option<&Strikes> {
        slot.map(|slot| &self.slots.get(slot).strikes).filter(|strikes| self.policy.is_live(strikes, now))
    }

    pub(crate) fn test(&self, slot: Option<Slot>, repeats: Option<AttemptId>, now: Timestamp) -> Verdict {
        self.policy.test(self.live(slot, now), repeats, now)
    }

    /// What a key has left: attempts, and µs until it is forgotten.
    pub(crate) fn left(&self, slot: Option<Slot>, now: Timestamp) -> (u32, u64) {
        let strikes = self.live(slot, now);
        (self.policy.remaining(strikes), strikes.map_or(0, |strikes| self.policy.reset_after(strikes, now)))
    }

    /// The wait until `new_keys` find room that is not there, if it is not; `held` are the slots of the running call.
    pub(crate) fn saturated(&self, new_keys: usize, held: &[Slot], now: Timestamp) -> Option<u64> {
        let held_counting = held.iter().filter(|slot| self.list_of(**slot) == COUNTING).count();
        let evictable = self.lists[COUNTING].len() - held_counting;
        let missing = new_keys.checked_sub(self.capacity - self.slots.len() + evictable)?;
        // Lockouts stand in the order of their ends, so the missing-th to end makes the last place.
        let mut lockouts = self.lists[LOCKED].iter_from_back(&self.slots).filter(|slot| !held.contains(slot));
        let ends_at = self.policy.ends_at(&self.slots.get(lockouts.nth(missing.checked_sub(1)?)?).strikes);
        ends_at.checked_sub(now.as_micros()).filter(|wait| *wait > 0)
    }

    /// Counts `id` on live strikes or new ones. [`StrikeTable::make_room`] went before.
    pub(crate) fn commit(&mut self, slot: Option<Slot>, key: Digest, id: AttemptId, now: Timestamp) -> (Slot, Outcome) {
        let list = slot.map(|slot| self.list_of(slot));
        let is_live = self.live(slot, now).is_some();
        let slot = slot.unwrap_or_else(|| self.slots.insert(Entry { key, ..Entry::default() }));
        let strikes = &mut self.slots.get_mut(slot).strikes;
        if !is_live {
            *strikes = Strikes::default();
        }
        self.policy.heal(strikes, now);
        let outcome = self.policy.commit(strikes, id, now);
        let is_in_place =
            list == Some(COUNTING) && outcome == Outcome::Allowed && self.lists[COUNTING].front() == Some(slot);
        if !is_in_place {
            if let Some(list) = list {
                self.unlink(slot, list);
            }
            self.link(slot);
        }
        (slot, outcome)
    }

    /// Makes room for new keys without touching the `held` ones: what has expired goes first.
    pub(crate) fn make_room(&mut self, new_keys: usize, held: &[Slot], now: Timestamp) {
        while self.slots.len() + new_keys > self.capacity {
            let [counting, locked] = [0, 1]
                .map(|list: usize| self.lists[list].iter_from_back(&self.slots).find(|slot| !held.contains(slot)));
            let has_expired = |slot: &Slot| self.live(Some(*slot), now).is_none();
            if let Some(expired) = [counting, locked].into_iter().flatten().find(has_expired) {
                self.forget(expired);
            } else if let Some(least_recent) = counting {
                self.forget(least_recent);
                self.evicted += 1;
            } else {
                return;
            }
        }
    }

    /// Mends live strikes from the far future.
    pub(crate) fn heal(&mut self, slot: Option<Slot>, now: Timestamp) {
        let needs_heal = |slot: &Slot| self.policy.needs_heal(&self.slots.get(*slot).strikes, now);
        let Some(slot) = slot.filter(needs_heal) else { return };
        self.policy.heal(&mut self.slots.get_mut(slot).strikes, now);
        if self.list_of(slot) == LOCKED {
            self.unlink(slot, LOCKED);
            self.link(slot);
        }
    }

    pub(crate) fn cancel(&mut self, key: &Digest, id: AttemptId, now: Timestamp) -> Cancelled {
        let Some(slot) = self.find(key).filter(|slot| self.live(Some(*slot), now).is_some()) else {
            return Cancelled::Nothing;
        };
        let list = self.list_of(slot);
        let strikes = &mut self.slots.get_mut(slot).strikes;
        let cancelled = strikes.cancel(id);
        if strikes.is_empty() {
            self.unlink(slot, list);
            self.slots.remove(slot);
        } else if cancelled == Cancelled::Lifted {
            self.unlink(slot, list);
            self.link(slot);
        }
        cancelled
    }

    pub(crate) fn refund(&mut self, key: &Digest, now: Timestamp) {
        if let Some(slot) = self.find(key).filter(|slot| self.live(Some(*slot), now).is_some()) {
            let strikes = &mut self.slots.get_mut(slot).strikes;
            strikes.refund();
            if strikes.is_empty() {
                self.forget(slot);
            }
        }
    }

    pub(crate) fn reset(&mut self, key: &Digest) {
        if let Some(slot) = self.find(key) {
            self.forget(slot);
        }
    }

    fn forget(&mut self, slot: Slot) {
        self.unlink(slot, self.list_of(slot));
        self.slots.remove(slot);
    }

    fn list_of(&self, slot: Slot) -> usize {
        if self.slots.get(slot).strikes.is_locked() { LOCKED } else { COUNTING }
    }

    /// Counting keys stand by recency, lockouts by their ends: the same as long as time does not go back.
    fn link(&mut self, slot: Slot) {
        let list = self.list_of(slot);
        let mut at = self.lists[list].front();
        if list == LOCKED {
            let end = |slot: Slot| self.policy.ends_at(&self.slots.get(slot).strikes);
            if self.lists[LOCKED].iter_from_back(&self.slots).next().is_some_and(|back| end(slot) < end(back)) {
                at = None;
            }
            // Only a clock that went back makes steps here. They are bounded: then the order may suffer, never the time.
            for _ in 0..MOST_STEPS {
                let Some(later) = at.filter(|other| end(*other) > end(slot)) else { break };
                at = self.slots.get(later).links.older();
            }
        }
        self.lists[list].insert_in_front_of(&mut self.slots, slot, at);
    }

    fn unlink(&mut self, slot: Slot, list: usize) {
        self.lists[list].remove(&mut self.slots, slot);
    }
}
