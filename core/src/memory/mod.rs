//! The four public limiters in memory: `engine` tests all and commits all, `tables` has the locks and their order.

mod attempt;
mod attempt_limiter;
pub(crate) mod engine;
mod fixed_window;
mod limiter;
mod tables;
mod token_bucket;

pub use attempt::Attempt;
pub use attempt_limiter::{AttemptLimiter, Reservation, Strikes};
pub use fixed_window::FixedWindow;
pub use limiter::Limiter;
pub use token_bucket::TokenBucket;

use siphasher::sip128::SipHasher13;

use crate::id::secret_words;
use crate::key::Digest;

/// Digests of single-key limiters: a keyed hash, so that crafted keys cannot collide, and cheaper than SHA-256.
struct TextDigests(SipHasher13);

impl TextDigests {
    fn new() -> Self {
        let [a, b] = secret_words();
        Self(SipHasher13::new_with_keys(a, b))
    }

    /// The same in every process.
    fn seeded(seed: u64) -> Self {
        Self(SipHasher13::new_with_keys(1 ^ seed, 2 ^ seed))
    }

    fn of(&self, key: &[u8]) -> Digest {
        Digest::from_bytes(self.0.hash(key).as_bytes())
    }
}
