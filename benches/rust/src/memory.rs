//! P4: bytes that a tracked key costs, the spare room of the tables included.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorkeep::{AttemptLimiter, Digest, FixedWindow, Key, Limiter, Rule, Strikes, Timestamp, TokenBucket};

use crate::table::Table;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with the live bytes counted.
pub(crate) struct Counting;

// SAFETY: every call is passed on unchanged; the counter is beside the point of all contracts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `memory` came from `alloc` above with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

const KEYS: u32 = 1_000_000;
const WINDOW: Duration = Duration::from_secs(900);

pub(crate) fn digest(value: u32) -> Digest {
    let mut bytes = [0; 16];
    let spread = u128::from(value).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    bytes.copy_from_slice(&spread.to_le_bytes());
    Digest::from_bytes(bytes)
}

pub(crate) fn now(micros: u64) -> Timestamp {
    Timestamp::from_micros(micros).expect("far below 2^52")
}

/// Live bytes a tracked entry, after `fill` has filled what it returns.
fn bytes_each<T>(entries: u32, fill: impl FnOnce() -> T) -> (f64, String) {
    let before = LIVE.load(Ordering::Relaxed);
    let filled = fill();
    let live = LIVE.load(Ordering::Relaxed) - before;
    drop(filled);
    (live as f64 / f64::from(entries), format!("{} MB", live / 1_000_000))
}

fn windows(rates: &str, keys: u32) -> Limiter {
    let rule = Rule::new("login", rates.parse().expect("a rate")).expect("a name");
    // Room for a quarter more: no shard is at its cap and nothing is evicted.
    let limiter = Limiter::new(KEYS as usize * 5 / 4).expect("a capacity");
    for value in 0..keys {
        let key = [Key::from_digest(rule.clone(), digest(value), false)];
        assert!(limiter.decide(&key, 1, now(1)).expect("a call").allowed());
    }
    assert_eq!(limiter.len(), KEYS as usize);
    limiter
}

fn strikes(each: u32) -> AttemptLimiter {
    let strikes = Strikes { threshold: 5, lockout_window: WINDOW, max_tracked_keys: KEYS as usize };
    let limiter = AttemptLimiter::new(strikes).expect("bounds");
    for value in 0..KEYS {
        for _ in 0..each {
            assert!(limiter.attempt(value.to_le_bytes(), now(1)).is_allowed());
        }
    }
    limiter
}

pub(crate) fn measure(table: &mut Table) {
    let (bytes, detail) = bytes_each(KEYS, || windows("5/1m", KEYS));
    table.bytes("P4", "1 M keys, one rate: a window", 88.0, bytes, detail);
    let (bytes, detail) = bytes_each(KEYS, || windows("5/1m,50/1h", KEYS / 2));
    table.bytes("P4", "500 k keys, two rates: a window", 88.0, bytes, detail);
    for (each, what) in
        [(1, "1 M keys, threshold 5, 1 strike each"), (5, "1 M keys, threshold 5, 5 strikes each (locked)")]
    {
        let (bytes, detail) = bytes_each(KEYS, || strikes(each));
        table.bytes("P4", what, 96.0, bytes, detail);
    }
    let (bytes, detail) = bytes_each(KEYS, || {
        let bucket = TokenBucket::new(5, WINDOW, KEYS as usize * 5 / 4).expect("bounds");
        (0..KEYS).for_each(|value| assert!(bucket.allow(value.to_le_bytes(), now(1))));
        bucket
    });
    table.bytes("P4", "1 M token buckets", 88.0, bytes, detail);
    let (bytes, detail) = bytes_each(KEYS, || {
        let windows = FixedWindow::new(5, WINDOW, KEYS as usize).expect("bounds");
        (0..KEYS).for_each(|value| assert!(windows.consume(value.to_le_bytes(), now(1)).allowed()));
        windows
    });
    table.bytes("P4", "1 M fixed windows", 88.0, bytes, detail);
}
