//! The bounded table of gcra windows, one entry per key and rate.
//!
//! `&mut self` only: no lock, no clock. Invariant: at capacity an expired window goes first, then,
//! in the group (one rate of one rule) that holds the most windows, the one nearest to full; so a
//! flood of keys that come once evicts itself and a spent window is the last to go.
//! Specified by `tests/vectors/windows-capacity.json`.

use crate::decision::Wait;
use crate::key::Digest;
use crate::policy::gcra::{FullAt, Gcra, View};
use crate::table::eviction_queue::{EvictionQueue, Queued, Rank};
use crate::table::slots::{Keyed, Slot, Slots};
use crate::time::Timestamp;

/// One rate of one rule, as numbered by whoever owns the table.
pub(crate) type Group = u32;

#[derive(Default)]
struct Window {
    key: Digest,
    group: Group,
    place: u32,
    part: u32,
    whole: u64,
    /// The commit that created the state after absence; also the order of insertion.
    born: u64,
    /// The latest commit, heal or give back.
    serial: u64,
}

impl Window {
    fn full_at(&self) -> FullAt {
        FullAt { whole: self.whole, part: self.part }
    }
}

impl Keyed for Window {
    fn key(&self) -> (Digest, u32) {
        (self.key, self.group)
    }
}

impl Queued for Window {
    fn rank(&self) -> Rank {
        (self.whole, self.part)
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

/// One window of a running call: where it is, what the call sees, and what it becomes if all allow.
pub(crate) struct Checked {
    pub(crate) group: Group,
    pub(crate) slot: Option<Slot>,
    pub(crate) view: View,
    /// The state after counting, or the wait until that is possible.
    pub(crate) tested: Result<FullAt, Wait>,
}

impl Checked {
    /// The state after the call, if all of it is counted.
    pub(crate) fn after(&self) -> FullAt {
        self.tested.unwrap_or(self.view.full_at)
    }
}

/// What a commit took from one window, remembered so that it can be given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    born: u64,
    serial: u64,
    n: u32,
    taken_at: Timestamp,
    before: Restore,
}

/// The state of a window before a commit.
#[derive(Clone, Copy, Debug)]
enum Restore {
    Forgotten,
    To(FullAt),
}

/// The windows of one group, and the order in which they go.
struct GroupOfWindows {
    gcra: Gcra,
    queue: EvictionQueue,
}

pub(crate) struct WindowTable {
    capacity: usize,
    slots: Slots<Window>,
    groups: Vec<GroupOfWindows>,
    serial: u64,
    evicted: u64,
}

impl WindowTable {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, slots: Slots::new(), groups: Vec::new(), serial: 0, evicted: 0 }
    }

    /// Adds a group; groups are numbered in the order in which they are added.
    pub(crate) fn add_group(&mut self, gcra: Gcra) {
        self.groups.push(GroupOfWindows { gcra, queue: EvictionQueue::default() });
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    fn find(&self, key: &Digest, group: Group) -> Option<Slot> {
        self.slots.find(key, group)
    }

    pub(crate) fn gcra(&self, group: Group) -> &Gcra {
        &self.groups[group as usize].gcra
    }

    /// What a call at `now` that costs `n` meets at a key.
    pub(crate) fn check(&self, key: &Digest, group: Group, now: Timestamp, n: u32) -> Checked {
        let slot = self.find(key, group);
        let gcra = self.gcra(group);
        let view = gcra.load(slot.map(|slot| self.slots.get(slot).full_at()), now);
        Checked { group, slot, view, tested: gcra.test(view.full_at, now, n) }
    }

    /// Makes room for `new` windows without touching the `held` ones.
    pub(crate) fn make_room(&mut self, new: usize, held: &[Slot], now: Timestamp) {
        while self.slots.len() + new > self.capacity {
            let Some((slot, expired)) = self.next_to_go(held, now) else { return };
            self.forget(slot);
            self.evicted += u64::from(!expired);
        }
    }

    /// Counts `n`: stores the state `after` that the policy computed from `view`.
    pub(crate) fn commit(&mut self, key: &Digest, window: &Checked, n: u32, now: Timestamp) -> Charge {
        self.serial += 1;
        let serial = self.serial;
        let fresh = window.view.full_at.is_past(now);
        let before = if fresh { Restore::Forgotten } else { Restore::To(window.view.full_at) };
        let born = match window.slot {
            Some(slot) => {
                let entry = self.slots.get_mut(slot);
                if fresh {
                    entry.born = serial;
                }
                let born = entry.born;
                self.write(slot, window.after());
                if fresh {
                    self.groups[window.group as usize].queue.reborn(&mut self.slots, slot);
                }
                born
            }
            None => {
                self.insert(key, window, serial);
                serial
            }
        };
        Charge { born, serial, n, taken_at: now, before }
    }

    /// Stores the mended state of a window from the far future.
    pub(crate) fn heal(&mut self, window: &Checked) {
        let Some(slot) = window.slot.filter(|_| window.view.healed) else { return };
        // A birth: the heal took away more than any charge from before it, so none of them is given back.
        let group = window.group as usize;
        self.groups[group].queue.remove(&mut self.slots, slot);
        self.serial += 1;
        let FullAt { whole, part } = window.view.full_at;
        let healed = self.slots.get_mut(slot);
        (healed.whole, healed.part, healed.born, healed.serial) = (whole, part, self.serial, self.serial);
        self.groups[group].queue.push(&mut self.slots, slot);
    }

    /// Gives back a charge: exactly when nothing came after it, else without minting budget.
    pub(crate) fn give_back(&mut self, key: &Digest, group: Group, charge: &Charge, now: Timestamp) {
        let Some(slot) = self.find(key, group) else { return };
        let window = self.slots.get(slot);
        if window.born != charge.born || window.full_at().is_past(now) {
            return;
        }
        // Serials are compared, not values: a value can come back, and then restoring would mint budget.
        let after = match charge.before {
            _ if window.serial != charge.serial => {
                self.gcra(group).give_back(window.full_at(), charge.n, now.since(charge.taken_at), now)
            }
            Restore::Forgotten => None,
            Restore::To(full_at) => Some(full_at).filter(|full_at| !full_at.is_past(now)),
        };
        match after {
            Some(full_at) => {
                self.serial += 1;
                self.write(slot, full_at);
            }
            None => self.forget(slot),
        }
    }

    pub(crate) fn reset(&mut self, key: &Digest, group: Group) {
        if let Some(slot) = self.find(key, group) {
            self.forget(slot);
        }
    }

    fn insert(&mut self, key: &Digest, window: &Checked, serial: u64) {
        let FullAt { whole, part } = window.after();
        let (key, group) = (*key, window.group);
        let slot = self.slots.insert(Window { key, group, place: 0, part, whole, born: serial, serial });
        self.groups[group as usize].queue.push(&mut self.slots, slot);
    }

    /// Stores a state under the running serial.
    fn write(&mut self, slot: Slot, full_at: FullAt) {
        let window = self.slots.get_mut(slot);
        let lowered = full_at < window.full_at();
        (window.whole, window.part, window.serial) = (full_at.whole, full_at.part, self.serial);
        if lowered {
            let group = window.group as usize;
            self.groups[group].queue.lowered(&mut self.slots, slot);
        }
    }

    fn forget(&mut self, slot: Slot) {
        let group = self.slots.get(slot).group as usize;
        self.groups[group].queue.remove(&mut self.slots, slot);
        self.slots.remove(slot);
    }

    /// The window that goes next, and whether it had expired.
    fn next_to_go(&mut self, held: &[Slot], now: Timestamp) -> Option<(Slot, bool)> {
        let mut next: Option<(Turn, Slot)> = None;
        for GroupOfWindows { gcra, queue } in &mut self.groups {
            let Some(slot) = queue.first_except(&mut self.slots, held) else { continue };
            let window = self.slots.get(slot);
            let expired = window.full_at().is_past(now);
            let size = if expired { 0 } else { queue.len() };
            let turn = Turn { expired, size, full_at: window.full_at(), q: gcra.q(), born: window.born };
            if next.as_ref().is_none_or(|(best, _)| turn.comes_before(best)) {
                next = Some((turn, slot));
            }
        }
        next.map(|(turn, slot)| (slot, turn.expired))
    }
}

/// What decides between the first windows of the groups.
struct Turn {
    expired: bool,
    size: usize,
    full_at: FullAt,
    q: u32,
    born: u64,
}

impl Turn {
    /// The expired before the live, then the largest group, the nearest to full, the oldest.
    fn comes_before(&self, other: &Self) -> bool {
        // Parts of different rates have different denominators.
        let part = |turn: &Self, q: u32| u64::from(turn.full_at.part) * u64::from(q);
        let ours = (other.expired, other.size, self.full_at.whole, part(self, other.q), self.born);
        ours < (self.expired, self.size, other.full_at.whole, part(other, self.q), other.born)
    }
}
