//! The memory through which numbers cross in both directions: one ArrayBuffer per copy of the package.
//!
//! Reading a slot costs JavaScript a nanosecond, a property of an object made here ten times that. The places are the
//! same as in `../lib/slots.ts`. Invariant: plain reads and writes through a raw pointer, never a reference, since
//! JavaScript writes there between calls; whatever is read here is judged before it is used.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use napi::sys;

use crate::failure::{Failure, Result};
use crate::js::check;

/// Keys that one call may pass.
pub(crate) const KEYS: usize = 16;
/// Words of one key: rule, four of digest, flags.
pub(crate) const KEY_WORDS: usize = 6;

const NUMBERS: usize = 16 + KEYS;
const BYTES: usize = NUMBERS * size_of::<f64>() + KEYS * KEY_WORDS * size_of::<u32>();

/// Where an answer's numbers lie.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// The outcome, or the only number of a small answer.
    Outcome = 0,
    Reason = 1,
    /// Number of a rule with the name of the one that denied, -1 for none.
    Rule = 2,
    /// Microseconds, -1 for never.
    RetryAfter = 3,
    /// Whole seconds as HTTP wants them, -1 for never.
    RetryAfterSeconds = 4,
    Remaining = 5,
    /// Microseconds.
    ResetAfter = 6,
    Degraded = 7,
    /// How many rules engaged their lockout; `put_engaged` says which.
    Engaged = 8,
    /// From JavaScript: the moment of the call in milliseconds, or one of the two below.
    Now = 9,
    /// From JavaScript: the cost of the call, or one of the two below.
    Cost = 10,
    /// How many keys: that the call names, or that it made.
    Keys = 11,
    /// Which call an answer belongs to that came later.
    Ticket = 12,
}

/// In the place of a moment or a cost: left out, so the core's default holds.
pub(crate) const LEFT_OUT: f64 = -1.0;
/// In the place of a moment or a cost: something that may be none; it is an argument of the call.
pub(crate) const AN_ARGUMENT: f64 = -2.0;

/// The shared memory, seen from Rust.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    numbers: NonNull<f64>,
}

impl Slots {
    /// Allocates the memory as an ArrayBuffer that lives as long as its environment.
    pub(crate) fn new(env: sys::napi_env) -> Result<(Self, sys::napi_value)> {
        let mut data: *mut c_void = ptr::null_mut();
        let mut buffer = ptr::null_mut();
        // SAFETY: both are places for one pointer each.
        check(unsafe { sys::napi_create_arraybuffer(env, BYTES, &mut data, &mut buffer) })?;
        let mut reference = ptr::null_mut();
        // SAFETY: the strong reference is never deleted, so that the buffer outlives every function that writes to it.
        check(unsafe { sys::napi_create_reference(env, buffer, 1, &mut reference) })?;
        let numbers = NonNull::new(data.cast::<f64>()).ok_or(Failure::Internal("the engine gave no memory"))?;
        Ok((Self { numbers }, buffer))
    }

    pub(crate) fn put(self, place: Place, value: f64) {
        // SAFETY: every place lies below NUMBERS, and the buffer lives (see `new`).
        unsafe { self.numbers.add(place as usize).write(value) }
    }

    /// Names the `index`th rule that engaged its lockout by its number.
    pub(crate) fn put_engaged(self, index: usize, rule: f64) {
        assert!(index < KEYS, "a call has no more rules than keys");
        // SAFETY: the list fills the numbers from place 16 on.
        unsafe { self.numbers.add(16 + index).write(rule) }
    }

    pub(crate) fn get(self, place: Place) -> f64 {
        // SAFETY: as for `put`.
        unsafe { self.numbers.add(place as usize).read() }
    }

    /// The words of the key at `index`, which is below `KEYS`.
    pub(crate) fn key(self, index: usize) -> [u32; KEY_WORDS] {
        assert!(index < KEYS, "callers bound the number of keys");
        // SAFETY: the words follow the numbers, and `index` is in bounds.
        unsafe { self.numbers.add(NUMBERS).cast::<[u32; KEY_WORDS]>().add(index).read() }
    }

    /// Writes the words of a new key at `index`, which is below `KEYS`.
    pub(crate) fn put_key(self, index: usize, words: [u32; KEY_WORDS]) {
        assert!(index < KEYS, "callers bound the number of keys");
        // SAFETY: the words follow the numbers, and `index` is in bounds.
        unsafe { self.numbers.add(NUMBERS).cast::<[u32; KEY_WORDS]>().add(index).write(words) }
    }
}
