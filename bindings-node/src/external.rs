//! Rust values that JavaScript holds without seeing inside: a store, an attempt, a reservation.
//!
//! Invariant: a handle is read only as the type that it was made from; each carries its type's tag.

use std::any::TypeId;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::sys;

use crate::call::{Answer, Call, check};
use crate::failure::Failure;

#[repr(C)]
struct Tagged<V> {
    tag: TypeId,
    value: V,
}

/// Gives `value` to JavaScript; it is dropped when its handle is collected.
pub(crate) fn handle<V: 'static>(env: sys::napi_env, value: V) -> Answer {
    let data = Box::into_raw(Box::new(Tagged { tag: TypeId::of::<V>(), value }));
    let mut made = ptr::null_mut();
    // SAFETY: `data` is freed by the finalizer alone.
    let status = unsafe { sys::napi_create_external(env, data.cast(), Some(release::<V>), ptr::null_mut(), &mut made) };
    check(status)?;
    Ok(made)
}

impl<T> Call<'_, T> {
    /// The value behind the handle at `index`.
    pub(crate) fn behind<V: 'static>(&self, index: usize) -> Result<&V, Failure> {
        self.behind_value(self.arguments[index])
    }

    /// The value behind a handle that an argument is or holds.
    pub(crate) fn behind_value<V: 'static>(&self, value: sys::napi_value) -> Result<&V, Failure> {
        let mut data: *mut c_void = ptr::null_mut();
        // SAFETY: a value that is no handle fails with a status.
        check(unsafe { sys::napi_get_value_external(self.env, value, &mut data) })?;
        // SAFETY: the package passes only handles that `handle` made, all of which begin with the tag.
        if data.is_null() || unsafe { *data.cast::<TypeId>() } != TypeId::of::<V>() {
            return Err(Failure::Internal("a handle of another kind"));
        }
        // SAFETY: the tag says that it is a `Tagged<V>`; the argument keeps it alive for as long as the call runs.
        Ok(unsafe { &(*data.cast::<Tagged<V>>()).value })
    }
}

unsafe extern "C" fn release<V>(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: runs once, for the pointer that `handle` made from a box of this type.
    let tagged = unsafe { Box::from_raw(data.cast::<Tagged<V>>()) };
    // The host could not be told of a panic in a destructor, and it must not unwind into it.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(tagged)));
}
