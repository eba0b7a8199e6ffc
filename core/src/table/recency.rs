//! A doubly linked list of slots in the order in which its owner puts them; the links live in the entries.

use crate::table::slots::{Keyed, Slot, Slots};

const NONE: Slot = Slot::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    /// Towards the front.
    newer: Slot,
    /// Towards the back.
    older: Slot,
}

impl Links {
    pub(crate) fn older(self) -> Option<Slot> {
        some(self.older)
    }
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

    pub(crate) fn front(&self) -> Option<Slot> {
        some(self.front)
    }

    /// Links `slot` on the newer side of `older`; without one, as the last of all.
    pub(crate) fn insert_in_front_of<T: Linked>(&mut self, slots: &mut Slots<T>, slot: Slot, older: Option<Slot>) {
        let newer = older.map_or(self.back, |older| slots.get(older).links().newer);
        let older = older.unwrap_or(NONE);
        *slots.get_mut(slot).links_mut() = Links { newer, older };
        match newer {
            NONE => self.front = slot,
            newer => slots.get_mut(newer).links_mut().older = slot,
        }
        match older {
            NONE => self.back = slot,
            older => slots.get_mut(older).links_mut().newer = slot,
        }
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

    /// From the back towards the front.
    pub(crate) fn iter_from_back<'a, T: Linked>(&self, slots: &'a Slots<T>) -> impl Iterator<Item = Slot> + 'a {
        std::iter::successors(some(self.back), move |slot| some(slots.get(*slot).links().newer))
    }
}

fn some(slot: Slot) -> Option<Slot> {
    (slot != NONE).then_some(slot)
}
