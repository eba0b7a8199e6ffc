//! The one way in from JavaScript: a raw napi callback around a Rust function.
//!
//! Measured beside it: a `#[napi]` function costs eight times as much and a closure of the napi crate five times.
//! Knows nothing of limiters. Invariant: `enter` returns, whatever the body does; a panic becomes a failure value.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use napi::sys;

use crate::failure::Failure;
use crate::realm::Realm;

/// The most arguments a function takes; absent ones read as `undefined`.
pub(crate) const ARGUMENTS: usize = 5;

/// What a function answers: a JavaScript value (`UNDEFINED` when the answer lies in the slots) or a failure.
pub(crate) type Answer = Result<sys::napi_value, Failure>;

/// A function that JavaScript may call, over a state that it shares with its siblings.
pub(crate) type Body<T> = fn(&Call<'_, T>) -> Answer;

/// The answer of a function that wrote its result into the slots.
pub(crate) const UNDEFINED: sys::napi_value = ptr::null_mut();

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

/// Makes a JavaScript function that owns a share of `state` for as long as it lives itself.
pub(crate) fn function<T>(env: sys::napi_env, name: &CStr, body: Body<T>, realm: &Rc<Realm>, state: &Rc<T>) -> Answer {
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
    // SAFETY: `data` is the `Bound<T>` given to `napi_create_function` beside `enter::<T>`, alive while its function is.
    let bound = unsafe { &*data.cast::<Bound<T>>() };
    let call = Call { env, arguments: &arguments, realm: &bound.realm, state: bound.state.as_ref() };
    // A panic leaves no broken state behind in this crate: realm and limiters are changed by the core, which keeps its
    // own locks, and the slots are written anew by every call.
    match catch_unwind(AssertUnwindSafe(|| (bound.body)(&call))) {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => failure.into_js(env),
        Err(_) => Failure::Internal("the native module panicked, please report it").into_js(env),
    }
}

unsafe extern "C" fn release<T>(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: runs once, for the pointer that `function` made from a box of this type.
    let bound = unsafe { Box::from_raw(data.cast::<Bound<T>>()) };
    // The host could not be told of a panic in a destructor, and it must not unwind into it.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(bound)));
}

/// Turns a status of the engine into a failure.
pub(crate) fn check(status: sys::napi_status) -> Result<(), Failure> {
    if status == sys::Status::napi_ok { Ok(()) } else { Err(Failure::Internal("the engine refused a native call")) }
}

/// Makes an empty object.
pub(crate) fn object(env: sys::napi_env) -> Answer {
    let mut made = ptr::null_mut();
    // SAFETY: `made` is a place for one value.
    check(unsafe { sys::napi_create_object(env, &mut made) })?;
    Ok(made)
}

/// Makes a string.
pub(crate) fn string(env: sys::napi_env, text: &str) -> Answer {
    let mut made = ptr::null_mut();
    // SAFETY: pointer and length are those of one live text.
    check(unsafe { sys::napi_create_string_utf8(env, text.as_ptr().cast::<c_char>(), length(text.len()), &mut made) })?;
    Ok(made)
}

/// Makes an array of strings.
pub(crate) fn strings<'a>(env: sys::napi_env, texts: impl IntoIterator<Item = &'a str>) -> Answer {
    let texts = texts.into_iter().map(|text| string(env, text));
    array(env, texts.collect::<Result<Vec<_>, Failure>>()?)
}

/// Makes an array of values that belong to the running call.
pub(crate) fn array(env: sys::napi_env, values: impl IntoIterator<Item = sys::napi_value>) -> Answer {
    let mut made = ptr::null_mut();
    // SAFETY: `made` is a place for one value.
    check(unsafe { sys::napi_create_array(env, &mut made) })?;
    for (index, value) in (0..).zip(values) {
        // SAFETY: both values belong to the running call.
        check(unsafe { sys::napi_set_element(env, made, index, value) })?;
    }
    Ok(made)
}

/// Makes a number.
pub(crate) fn number(env: sys::napi_env, value: f64) -> Answer {
    let mut made = ptr::null_mut();
    // SAFETY: `made` is a place for one value.
    check(unsafe { sys::napi_create_double(env, value, &mut made) })?;
    Ok(made)
}

/// Whether a value is left out.
pub(crate) fn is_undefined(env: sys::napi_env, value: sys::napi_value) -> Result<bool, Failure> {
    let mut kind = 0;
    // SAFETY: `kind` is a place for one tag.
    check(unsafe { sys::napi_typeof(env, value, &mut kind) })?;
    Ok(kind == sys::ValueType::napi_undefined)
}

/// Sets a property of an object made by this crate.
pub(crate) fn set(
    env: sys::napi_env,
    object: sys::napi_value,
    name: &CStr,
    value: sys::napi_value,
) -> Result<(), Failure> {
    // SAFETY: both values belong to the running call.
    check(unsafe { sys::napi_set_named_property(env, object, name.as_ptr(), value) })
}

pub(crate) fn length(bytes: usize) -> isize {
    isize::try_from(bytes).expect("no Rust allocation is larger than isize::MAX")
}
