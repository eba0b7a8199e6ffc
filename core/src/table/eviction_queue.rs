//! Which entry of a group goes first: a heap of lower bounds.
//!
//! Counting an attempt only ever moves an entry back in the order, so the hot path leaves the heap
//! alone and the heap keeps a bound from below; whoever asks for the first entry mends the bounds
//! on the way. Invariant: no recorded rank is above its entry's true rank, so an entry that stands
//! first with its true rank is the first. Amortised O(log n), paid by inserts and removals only.

use smallvec::SmallVec;

use crate::table::slots::{Keyed, Slot, Slots};

/// The place of an entry in the order: smaller goes first, ties by `born`, the older first.
pub(crate) type Rank = (u64, u32);

pub(crate) trait Queued: Keyed {
    fn rank(&self) -> Rank;
    fn born(&self) -> u64;
    fn place(&self) -> u32;
    fn set_place(&mut self, place: u32);
}

/// Children per node: four keep the heap shallow and siblings in one cache line.
const ARITY: usize = 4;

#[derive(Clone, Copy)]
struct Node {
    whole: u64,
    part: u32,
    slot: Slot,
}

#[derive(Default)]
pub(crate) struct EvictionQueue {
    nodes: Vec<Node>,
}

impl EvictionQueue {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn push<T: Queued>(&mut self, slots: &mut Slots<T>, slot: Slot) {
        if self.nodes.len() == self.nodes.capacity() {
            // By an eighth, not by doubling: spare room counts as memory per key.
            self.nodes.reserve_exact(self.nodes.len() / 8 + 4);
        }
        let (whole, part) = slots.get(slot).rank();
        self.nodes.push(Node { whole, part, slot });
        self.sift_up(slots, self.nodes.len() - 1);
    }

    pub(crate) fn remove<T: Queued>(&mut self, slots: &mut Slots<T>, slot: Slot) {
        let place = slots.get(slot).place() as usize;
        self.nodes.swap_remove(place);
        if place < self.nodes.len() {
            let settled = self.sift_up(slots, place);
            self.sift_down(slots, settled);
        }
    }

    /// The entry's rank may have become smaller: a give back or a heal.
    pub(crate) fn lowered<T: Queued>(&mut self, slots: &mut Slots<T>, slot: Slot) {
        let (whole, part) = slots.get(slot).rank();
        let place = slots.get(slot).place() as usize;
        let node = &mut self.nodes[place];
        if (whole, part) < (node.whole, node.part) {
            (node.whole, node.part) = (whole, part);
            self.sift_up(slots, place);
        }
    }

    /// The entry was born anew in its place: its rank rose, and with it its turn among equals.
    ///
    /// Equals stand in the order of their births, so a birth must not change behind the heap's back.
    pub(crate) fn reborn<T: Queued>(&mut self, slots: &mut Slots<T>, slot: Slot) {
        let (whole, part) = slots.get(slot).rank();
        let place = slots.get(slot).place() as usize;
        self.nodes[place] = Node { whole, part, slot };
        self.sift_down(slots, place);
    }

    /// The entry that goes first.
    pub(crate) fn first<T: Queued>(&mut self, slots: &mut Slots<T>) -> Option<Slot> {
        loop {
            let node = *self.nodes.first()?;
            let (whole, part) = slots.get(node.slot).rank();
            if (whole, part) == (node.whole, node.part) {
                return Some(node.slot);
            }
            self.nodes[0] = Node { whole, part, ..node };
            self.sift_down(slots, 0);
        }
    }

    /// The entry that goes first among those that are not `held`.
    pub(crate) fn first_except<T: Queued>(&mut self, slots: &mut Slots<T>, held: &[Slot]) -> Option<Slot> {
        let mut aside: SmallVec<[Slot; 4]> = SmallVec::new();
        let first = loop {
            match self.first(slots) {
                Some(slot) if held.contains(&slot) => {
                    self.remove(slots, slot);
                    aside.push(slot);
                }
                first => break first,
            }
        };
        for slot in aside {
            self.push(slots, slot);
        }
        first
    }

    fn sift_up<T: Queued>(&mut self, slots: &mut Slots<T>, mut place: usize) -> usize {
        let node = self.nodes[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if !goes_before(slots, node, self.nodes[parent]) {
                break;
            }
            self.put(slots, place, self.nodes[parent]);
            place = parent;
        }
        self.put(slots, place, node);
        place
    }

    fn sift_down<T: Queued>(&mut self, slots: &mut Slots<T>, mut place: usize) {
        let node = self.nodes[place];
        loop {
            let first = place * ARITY + 1;
            let children = first..(first + ARITY).min(self.nodes.len());
            let Some(child) =
                children.reduce(|a, b| if goes_before(slots, self.nodes[b], self.nodes[a]) { b } else { a })
            else {
                break;
            };
            if !goes_before(slots, self.nodes[child], node) {
                break;
            }
            self.put(slots, place, self.nodes[child]);
            place = child;
        }
        self.put(slots, place, node);
    }

    fn put<T: Queued>(&mut self, slots: &mut Slots<T>, place: usize, node: Node) {
        self.nodes[place] = node;
        slots.get_mut(node.slot).set_place(u32::try_from(place).expect("a capacity is at most 2^30"));
    }
}

fn goes_before<T: Queued>(slots: &Slots<T>, a: Node, b: Node) -> bool {
    match (a.whole, a.part).cmp(&(b.whole, b.part)) {
        std::cmp::Ordering::Equal => slots.get(a.slot).born() < slots.get(b.slot).born(),
        order => order.is_lt(),
    }
}
