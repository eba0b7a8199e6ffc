//! A slab of entries with an index from key to slot.
//!
//! Slots are stable while an entry lives, so queues and lists may hold them. Invariant: storage
//! grows by small chunks and is never copied, so no call pays for the growth of the whole table.

use hashbrown::HashTable;

use crate::id::secret_words;
use crate::key::Digest;

/// The place of an entry. Stable until the entry is removed.
pub(crate) type Slot = u32;

/// An entry knows its own key, since the index holds slots only.
pub(crate) trait Keyed: Default {
    fn key(&self) -> (Digest, u32);
}

const CHUNK: usize = 256;

pub(crate) struct Slots<T> {
    index: HashTable<Slot>,
    chunks: Vec<Box<[T]>>,
    /// Slots of removed entries, to be used again.
    vacant: Vec<Slot>,
    used: usize,
    hash: KeyedHash,
}

impl<T: Keyed> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { index: HashTable::new(), chunks: Vec::new(), vacant: Vec::new(), used: 0, hash: KeyedHash::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn find(&self, digest: &Digest, group: u32) -> Option<Slot> {
        self.index.find(self.hash.of(digest, group), |slot| at(&self.chunks, *slot).key() == (*digest, group)).copied()
    }

    /// Adds an entry whose key is not in the table.
    pub(crate) fn insert(&mut self, entry: T) -> Slot {
        let (digest, group) = entry.key();
        let slot = self.vacant.pop().unwrap_or_else(|| self.grow());
        *self.get_mut(slot) = entry;
        let (chunks, hash) = (&self.chunks, self.hash);
        self.index.insert_unique(hash.of(&digest, group), slot, |slot| {
            let (digest, group) = at(chunks, *slot).key();
            hash.of(&digest, group)
        });
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> T {
        let entry = std::mem::take(self.get_mut(slot));
        let (digest, group) = entry.key();
        if let Ok(indexed) = self.index.find_entry(self.hash.of(&digest, group), |other| *other == slot) {
            indexed.remove();
        }
        self.vacant.push(slot);
        entry
    }

    pub(crate) fn get(&self, slot: Slot) -> &T {
        at(&self.chunks, slot)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        let (chunk, place) = split(slot);
        &mut self.chunks[chunk][place]
    }

    fn grow(&mut self) -> Slot {
        if self.used == self.chunks.len() * CHUNK {
            self.chunks.push((0..CHUNK).map(|_| T::default()).collect());
        }
        let slot = Slot::try_from(self.used).expect("a capacity is at most 2^30");
        self.used += 1;
        slot
    }
}

fn at<T>(chunks: &[Box<[T]>], slot: Slot) -> &T {
    let (chunk, place) = split(slot);
    &chunks[chunk][place]
}

fn split(slot: Slot) -> (usize, usize) {
    (slot as usize / CHUNK, slot as usize % CHUNK)
}

/// A hash of digests under secret words, since a digest may be an unkeyed SHA-256: an attacker must
/// not be able to aim keys at one bucket or one shard.
#[derive(Clone, Copy)]
pub(crate) struct KeyedHash([u64; 2]);

impl KeyedHash {
    pub(crate) fn new() -> Self {
        Self(secret_words())
    }

    /// The same in every process: digits of pi, apart from the seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344].map(|word| word ^ seed))
    }

    pub(crate) fn of(&self, digest: &Digest, group: u32) -> u64 {
        let word = |half: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&digest.as_bytes()[half * 8..half * 8 + 8]);
            u64::from_le_bytes(bytes)
        };
        let product = u128::from(word(0) ^ self.0[0]) * u128::from(word(1) ^ self.0[1]);
        // Both halves, folded: the high one carries what the low bits mixed upwards, and the reverse.
        #[allow(clippy::cast_possible_truncation, reason = "the fold wants the low half")]
        let folded = (product >> 64) as u64 ^ product as u64;
        // The groups of one key side by side in the index: a key of several rates costs one cache miss there, not one
        // for each. The top bits, which the index compares, tell them apart.
        folded.wrapping_add(u64::from(group)) ^ u64::from(group) << 57
    }
}
