//! The bounded table of fixed windows.
//!
//! `&mut self` only: no lock, no clock. Invariant: at capacity an elapsed window goes first, then,
//! of those with budget left, the one that ends soonest, the exhausted last; so a flood of
//! keys that come once cannot reopen a spent window. Specified by `tests/vectors/fixed-window.json`.

use smallvec::SmallVec;

use crate::key::Digest;
use crate::policy::fixed_window::{Policy, View, Window};
use crate::table::eviction_queue::{EvictionQueue, Queued, Rank};
use crate::table::slots::{Keyed, Slot, Slots};
use crate::time::Timestamp;

#[derive(Default)]
struct Entry {
    key: Digest,
    window: Window,
    /// Stands in the queue of the exhausted.
    is_exhausted: bool,
    place: u32,
    born: u64,
}

impl Keyed for Entry {
    fn key(&self) -> (Digest, u32) {
        (self.key, 0)
    }
}

impl Queued for Entry {
    fn rank(&self) -> Rank {
        (self.window.start, 0)
    }

    fn born(&self) -> u64 {
        self.born
    }

    fn place(&self) -> u32 {
        self.place
    }

    fn set_place(&mut self, place: u32) {
        self.place = place;
    }
}

pub(crate) struct FixedWindows {
    policy: Policy,
    capacity: usize,
    slots: Slots<Entry>,
    /// Windows with budget left, and exhausted ones: one length for all, so the earliest start ends soonest.
    queues: [EvictionQueue; 2],
    inserted: u64,
    evicted: u64,
}

impl FixedWindows {
    pub(crate) fn new(policy: Policy, capacity: usize) -> Self {
        let queues = [EvictionQueue::default(), EvictionQueue::default()];
        Self { policy, capacity, slots: Slots::new(), queues, inserted: 0, evicted: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Counts one attempt, or tells the wait. Returns the window as it stands after the call.
    pub(crate) fn consume(&mut self, key: Digest, now: Timestamp) -> (Result<(), u64>, View) {
        let slot = self.slots.find(&key, 0);
        let view = self.policy.load(slot.map(|slot| self.slots.get(slot).window), now);
        let tested = self.policy.test(&view, now);
        let window = tested.unwrap_or(view.window);
        match slot {
            Some(slot) if tested.is_ok() || view.healed => self.write(slot, window, view.is_open),
            Some(_) => {}
            None => self.insert(key, window, now),
        }
        (tested.map(drop), View { window, is_open: true, ..view })
    }

    /// What [`FixedWindows::consume`] would answer, and the window as it stands. Counts nothing.
    pub(crate) fn peek(&self, key: &Digest, now: Timestamp) -> (Result<(), u64>, View) {
        let view = self.policy.load(self.slots.find(key, 0).map(|slot| self.slots.get(slot).window), now);
        (self.policy.test(&view, now).map(drop), view)
    }

    pub(crate) fn reset(&mut self, key: &Digest) {
        if let Some(slot) = self.slots.find(key, 0) {
            self.forget(slot);
        }
    }

    fn write(&mut self, slot: Slot, window: Window, was_open: bool) {
        if !was_open {
            self.inserted += 1;
        }
        let (inserted, is_exhausted) = (self.inserted, self.is_exhausted(window));
        let entry = self.slots.get_mut(slot);
        let (before, moves) = (usize::from(entry.is_exhausted), entry.is_exhausted != is_exhausted);
        let lowered = window.start < entry.window.start;
        entry.window = window;
        if !was_open {
            entry.born = inserted;
        }
        if moves {
            entry.is_exhausted = is_exhausted;
            self.queues[before].remove(&mut self.slots, slot);
            self.queues[usize::from(is_exhausted)].push(&mut self.slots, slot);
        } else if !was_open {
            self.queues[before].reborn(&mut self.slots, slot);
        } else if lowered {
            self.queues[before].lowered(&mut self.slots, slot);
        }
    }

    fn insert(&mut self, key: Digest, window: Window, now: Timestamp) {
        while self.slots.len() >= self.capacity {
            let Some((slot, elapsed)) = self.next_to_go(now) else { return };
            self.forget(slot);
            self.evicted += u64::from(!elapsed);
        }
        self.inserted += 1;
        let is_exhausted = self.is_exhausted(window);
        let slot = self.slots.insert(Entry { key, window, is_exhausted, place: 0, born: self.inserted });
        self.queues[usize::from(is_exhausted)].push(&mut self.slots, slot);
    }

    /// The window that goes next, and whether it had elapsed.
    fn next_to_go(&mut self, now: Timestamp) -> Option<(Slot, bool)> {
        let [with_budget, exhausted] = &mut self.queues;
        let firsts = [with_budget.first(&mut self.slots), exhausted.first(&mut self.slots)];
        let mut firsts: SmallVec<[Slot; 2]> = firsts.into_iter().flatten().collect();
        let is_elapsed = |slot: Slot| !self.policy.load(Some(self.slots.get(slot).window), now).is_open;
        // The elapsed by the earliest end; of the rest those with budget stay in front.
        firsts.sort_by_key(|slot| {
            let entry = self.slots.get(*slot);
            if is_elapsed(*slot) { (false, entry.window.start, entry.born) } else { (true, 0, 0) }
        });
        firsts.first().map(|slot| (*slot, is_elapsed(*slot)))
    }

    fn forget(&mut self, slot: Slot) {
        let queue = usize::from(self.slots.get(slot).is_exhausted);
        self.queues[queue].remove(&mut self.slots, slot);
        self.slots.remove(slot);
    }

    fn is_exhausted(&self, window: Window) -> bool {
        self.policy.remaining(window) == 0
    }
}
