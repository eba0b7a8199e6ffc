//! Identities that the library makes itself: attempts, and the secrets of the tables' hashes.
//!
//! The one place that draws randomness.

use std::sync::atomic::{AtomicU64, Ordering};

/// Names one admitted attempt, so that exactly that one can be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AttemptId(pub(crate) u64);

#[cfg(feature = "redis")]
impl AttemptId {
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }
}

/// Makes ids that no other process has, without a system call for each: a keyed hash of a count.
///
/// One for each process: a forked child that went on with its parent's would repeat its ids, and an
/// attempt with a known id is not counted.
#[cfg(feature = "redis")]
pub(crate) struct ProcessIds {
    hash: siphasher::sip::SipHasher13,
    count: AtomicU64,
}

#[cfg(feature = "redis")]
impl ProcessIds {
    pub(crate) fn new() -> Self {
        let [a, b] = secret_words();
        Self { hash: siphasher::sip::SipHasher13::new_with_keys(a, b), count: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> AttemptId {
        AttemptId(self.hash.hash(&self.count.fetch_add(1, Ordering::Relaxed).to_le_bytes()))
    }
}

/// Makes the ids of the attempts on one limiter's memory: unique there, which is all that its tables need.
#[derive(Debug, Default)]
pub(crate) struct AttemptIds(AtomicU64);

impl AttemptIds {
    pub(crate) fn next(&self) -> AttemptId {
        AttemptId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Two secret words, drawn anew for every table, so that nobody outside can aim keys at one bucket.
#[allow(clippy::disallowed_methods, reason = "the one place that draws randomness")]
pub(crate) fn secret_words() -> [u64; 2] {
    let mut bytes = [0; 16];
    // Without entropy the tables still decide exactly; only the defence against aimed keys would be gone.
    // Every platform that we build for has it, so its absence is a broken host: say so at once.
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    let (low, high) = bytes.split_at(8);
    [low, high].map(|half| half.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}
