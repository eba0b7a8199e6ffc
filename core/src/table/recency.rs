//! A doubly linked list of slots in order of recency; the links live in the entries.

use crate::table::slots::{Keyed, Slot, Slots};

const NONE: Slot = Slot::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    /// Towards the front: used more recently.
    newer: Slot,
    /// Towards the back: used less recently.
    older: Slot,
}

impl Default for Links {
    fn default() -> Self {
        Self { newer: NONE, older: NONE }
    }
}

pub(crate) trait Linked: Keyed {
    fn links(&self) -> Links;
    fn links_mut(&mut self) -> &mut Links;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RecencyList {
    front: Slot,
    back: Slot,
    len: usize,
}

impl RecencyList {
    pub(crate) fn new() -> Self {
        Self { front: NONE, back: NONE, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn back(&self) -> Option<Slot> {
        (self.back != NONE).then_some(self.back)
    }

    pub(crate) fn push_front<T: Linked>(&mut self, slots: &mut Slots<T>, slot: Slot) {
        *slots.get_mut(slot).links_mut() = Links { newer: NONE, older: self.front };
        match self.front {
            NONE => self.back = slot,
            front => slots.get_mut(front).links_mut().newer = slot,
        }
        self.front = slot;
        self.len += 1;
    }

    pub(crate) fn remove<T: Linked>(&mut self, slots: &mut Slots<T>, slot: Slot) {
        let Links { newer, older } = slots.get(slot).links();
        match newer {
            NONE => self.front = older,
            newer => slots.get_mut(newer).links_mut().older = older,
        }
        match older {
            NONE => self.back = newer,
            older => slots.get_mut(older).links_mut().newer = newer,
        }
        self.len -= 1;
    }

    /// From the least recently used towards the front.
    pub(crate) fn iter_from_back<'a, T: Linked>(&self, slots: &'a Slots<T>) -> impl Iterator<Item = Slot> + 'a {
        let next = move |slot: Slot| (slot != NONE).then_some(slot);
        std::iter::successors(next(self.back), move |slot| next(slots.get(*slot).links().newer))
    }
}
