//! The only way in from JavaScript: a raw napi callback around a Rust function.
//!
//! In comparison, a `#[napi]` function costs eight times as much and a closure of the napi crate five times. Knows
//! nothing of limiters. Invariant: `enter` returns, whatever the body does; a panic becomes a failure value.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use napi::sys;

use crate::failure::{Failure, Result};
use crate::js::{UNDEFINED, check, length};
use crate::realm::Realm;

/// The maximal number of arguments of a function; missing ones read as `undefined`.
pub(crate) const ARGUMENTS: usize = 5;

/// A function that JavaScript may call, over state that it shares with its siblings.
pub(crate) type Body<T> = fn(&Call<'_, T>) -> Result;

/// One running call: its arguments, and what its function belongs to.
pub(crate) struct Call<'a, T> {
    pub(crate) env: sys::napi_env,
    pub(crate) arguments: &'a [sys::napi_value; ARGUMENTS],
    pub(crate) realm: &'a Rc<Realm>,
    pub(crate) state: &'a T,
}

struct Bound<T> {
    body: Body<T>,
    realm: Rc<Realm>,
    state: Rc<T>,
}

/// Makes a JavaScript function that owns a share of `state` while it lives.
pub(crate) fn function<T>(env: sys::napi_env, name: &CStr, body: Body<T>, realm: &Rc<Realm>, state: &Rc<T>) -> Result {
    let bound = Box::into_raw(Box::new(Bound { body, realm: Rc::clone(realm), state: Rc::clone(state) }));
    let mut made = ptr::null_mut();
    // SAFETY: `bound` outlives the function, since only the finalizer of the function frees it. When either call fails
    // it is left allocated: a function that exists must never find it freed.
    check(unsafe {
        sys::napi_create_function(
            env,
            name.as_ptr(),
            length(name.count_bytes()),
            Some(enter::<T>),
            bound.cast(),
            &mut made,
        )
    })?;
    // SAFETY: as above; `release::<T>` gets the pointer of the type that it expects, once.
    check(unsafe {
        sys::napi_add_finalizer(env, made, bound.cast(), Some(release::<T>), ptr::null_mut(), ptr::null_mut())
    })?;
    Ok(made)
}

unsafe extern "C" fn enter<T>(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut arguments = [ptr::null_mut(); ARGUMENTS];
    let mut count = ARGUMENTS;
    let mut data = ptr::null_mut();
    // SAFETY: `info` is that of the running call, and `arguments` has room for `count` values.
    let read =
        unsafe { sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), ptr::null_mut(), &mut data) };
    if read != sys::Status::napi_ok {
        return UNDEFINED;
    }
    // SAFETY: `data` is the `Bound<T>` passed to `napi_create_function` together with `enter::<T>`, and lives as long as
    // its function.
    let bound = unsafe { &*data.cast::<Bound<T>>() };
    let call = Call { env, arguments: &arguments, realm: &bound.realm, state: bound.state.as_ref() };
    // A panic leaves no broken state behind in this crate: only the core changes realm and limiters, under its own
    // locks, and every call writes the slots anew.
    match catch_unwind(AssertUnwindSafe(|| (bound.body)(&call))) {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => failure.into_js(env),
        Err(_) => Failure::Internal("the native module panicked, please report it").into_js(env),
    }
}

unsafe extern "C" fn release<T>(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: runs once, for the pointer that `function` made from a box of this type.
    let bound = unsafe { Box::from_raw(data.cast::<Bound<T>>()) };
    // A panic in a destructor could not be reported to the host, and must not unwind into it.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(bound)));
}
