//! Opaque Rust values in JavaScript: a store, an attempt, a reservation.
//!
//! Invariant: a handle is read only while it lives, and only as the type that it was made from. A handle of another
//! addon is never read.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::sys;

use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::js::check;

thread_local! {
    // The handles that live on this thread, which they never leave. A tag in front of the value would have to be read
    // before anything is known of it, and the engine puts tags on externals only from Node 20.12.
    static LIVING: RefCell<HashMap<*mut c_void, TypeId, BuildHasherDefault<Address>>> = RefCell::default();
}

/// The hash of an address that the allocator chose, so that no caller can pick addresses that collide.
#[derive(Default)]
struct Address(u64);

impl Hasher for Address {
    fn write_usize(&mut self, address: usize) {
        // The low bits of an address are its alignment: let all bits reach all of the hash.
        let product = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("an address hashes as one number");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Makes a handle of `value`, which is dropped when its handle is collected.
pub(crate) fn handle<V: 'static>(env: sys::napi_env, value: V) -> Result {
    const { assert!(size_of::<V>() > 0, "a value without a size has no address of its own") };
    let data: *mut c_void = Box::into_raw(Box::new(value)).cast();
    let mut made = ptr::null_mut();
    // SAFETY: only the finalizer frees `data`.
    check(unsafe { sys::napi_create_external(env, data, Some(release::<V>), ptr::null_mut(), &mut made) })?;
    LIVING.with_borrow_mut(|living| living.insert(data, TypeId::of::<V>()));
    Ok(made)
}

impl<T> Call<'_, T> {
    /// Returns the value behind the handle at `index`.
    pub(crate) fn behind<V: 'static>(&self, index: usize) -> Result<&V> {
        self.behind_value(self.arguments[index])
    }

    /// Returns the value behind a handle that is an argument or a member of one.
    pub(crate) fn behind_value<V: 'static>(&self, value: sys::napi_value) -> Result<&V> {
        let mut data: *mut c_void = ptr::null_mut();
        // SAFETY: a value that is not a handle fails with a status.
        check(unsafe { sys::napi_get_value_external(self.env, value, &mut data) })?;
        if LIVING.with_borrow(|living| living.get(&data) != Some(&TypeId::of::<V>())) {
            return Err(Failure::Internal("a handle of another kind"));
        }
        // SAFETY: `handle` made it from a `V`, and it is not freed yet: the argument keeps it alive during the call.
        Ok(unsafe { &*data.cast::<V>() })
    }
}

unsafe extern "C" fn release<V>(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // At the end of the thread it may already have forgotten all of them.
    let _ = LIVING.try_with(|living| living.borrow_mut().remove(&data));
    // SAFETY: runs once, for the pointer that `handle` made from a box of this type.
    let value = unsafe { Box::from_raw(data.cast::<V>()) };
    // A panic in a destructor could not be reported to the host, and must not unwind into it.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}
