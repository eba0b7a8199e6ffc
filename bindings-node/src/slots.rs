//! The memory through which numbers cross in both directions: one ArrayBuffer per copy of the package.
//!
//! Reading a slot costs JavaScript a nanosecond, a property of an object made here ten times that. The layout is the
//! same as in `../lib/native/slots.ts`, which `tests/node/slots.test.mjs` checks. Invariant: plain reads and writes
//! through a raw pointer, never a reference, since JavaScript writes there between calls; a value that is read here is
//! checked before it is used.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use napi::sys;

use crate::failure::{Failure, Result};
use crate::js::check;

/// Keys that fit; a call may pass as many.
pub(crate) const KEYS: usize = 16;
/// Words of one key: rule, four of digest, flags.
pub(crate) const KEY_WORDS: usize = 6;

/// Where the list of the rules that engaged a lockout begins.
const ENGAGED: usize = 16;
const NUMBERS: usize = ENGAGED + KEYS;
const BYTES: usize = NUMBERS * size_of::<f64>() + KEYS * KEY_WORDS * size_of::<u32>();

/// A number, by its index.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    /// The outcome, or the only number of a small result.
    Outcome = 0,
    Reason = 1,
    /// The number of a rule with the name of the rule that denied; -1 for none.
    Rule = 2,
    /// Microseconds; -1 for never.
    RetryAfter = 3,
    /// Whole seconds as in HTTP; -1 for never.
    RetryAfterSeconds = 4,
    Remaining = 5,
    /// Microseconds.
    ResetAfter = 6,
    Degraded = 7,
    /// How many rules engaged their lockout; `put_engaged` writes which.
    Engaged = 8,
    /// From JavaScript: the moment of the call in milliseconds, or one of the two constants below.
    Now = 9,
    /// From JavaScript: the cost of the call, or one of the two constants below.
    Cost = 10,
    /// How many keys the call passes, or made.
    Keys = 11,
    /// The call that an answer from the queue belongs to.
    CallId = 12,
}

/// Instead of a moment or a cost: it was left out, so the core's default applies.
pub(crate) const LEFT_OUT: f64 = -1.0;
/// Instead of a moment or a cost: a value that may be invalid, passed as an argument of the call.
pub(crate) const IN_ARGUMENT: f64 = -2.0;

/// The shared memory, as seen from Rust.
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    numbers: NonNull<f64>,
}

impl Slots {
    /// Allocates the memory as an ArrayBuffer that lives as long as its environment.
    pub(crate) fn new(env: sys::napi_env) -> Result<(Self, sys::napi_value)> {
        let mut data: *mut c_void = ptr::null_mut();
        let mut buffer = ptr::null_mut();
        // SAFETY: each has room for one pointer.
        check(unsafe { sys::napi_create_arraybuffer(env, BYTES, &mut data, &mut buffer) })?;
        let mut reference = ptr::null_mut();
        // SAFETY: the strong reference is never deleted, so that the buffer outlives every function that writes to it.
        check(unsafe { sys::napi_create_reference(env, buffer, 1, &mut reference) })?;
        let numbers = NonNull::new(data.cast::<f64>()).ok_or(Failure::Internal("the engine gave no memory"))?;
        Ok((Self { numbers }, buffer))
    }

    pub(crate) fn put(self, slot: Slot, value: f64) {
        // SAFETY: every slot is below NUMBERS, and the buffer lives (see `new`).
        unsafe { self.numbers.add(slot as usize).write(value) }
    }

    /// Writes the number of the `index`th rule that engaged its lockout.
    pub(crate) fn put_engaged(self, index: usize, rule: f64) {
        assert!(index < KEYS, "a call has no more rules than keys");
        // SAFETY: the list fills the numbers from ENGAGED on.
        unsafe { self.numbers.add(ENGAGED + index).write(rule) }
    }

    pub(crate) fn get(self, slot: Slot) -> f64 {
        // SAFETY: as for `put`.
        unsafe { self.numbers.add(slot as usize).read() }
    }

    /// Reads the words of the key at `index`, which is below `KEYS`.
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
