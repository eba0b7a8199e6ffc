//! Makes JavaScript values through raw napi calls, and checks their statuses.
//!
//! Knows nothing of limiters and calls.

use std::ffi::{CStr, c_char};
use std::ptr;

use napi::sys;

use crate::failure::{Failure, Result};

/// No value: what a function returns whose result is in the slots.
pub(crate) const UNDEFINED: sys::napi_value = ptr::null_mut();

/// Turns a status of the engine into a failure.
pub(crate) fn check(status: sys::napi_status) -> Result<()> {
    if status == sys::Status::napi_ok { Ok(()) } else { Err(Failure::Internal("the engine refused a native call")) }
}

/// Makes an empty object.
pub(crate) fn object(env: sys::napi_env) -> Result {
    let mut made = ptr::null_mut();
    // SAFETY: `made` has room for one value.
    check(unsafe { sys::napi_create_object(env, &mut made) })?;
    Ok(made)
}

/// Makes a string.
pub(crate) fn string(env: sys::napi_env, text: &str) -> Result {
    let mut made = ptr::null_mut();
    // SAFETY: pointer and length belong to one live string.
    check(unsafe { sys::napi_create_string_utf8(env, text.as_ptr().cast::<c_char>(), length(text.len()), &mut made) })?;
    Ok(made)
}

/// Makes an array of strings.
pub(crate) fn strings<'a>(env: sys::napi_env, texts: impl IntoIterator<Item = &'a str>) -> Result {
    let texts = texts.into_iter().map(|text| string(env, text));
    array(env, texts.collect::<Result<Vec<_>>>()?)
}

/// Makes an array of values that belong to the running call.
pub(crate) fn array(env: sys::napi_env, values: impl IntoIterator<Item = sys::napi_value>) -> Result {
    let mut made = ptr::null_mut();
    // SAFETY: `made` has room for one value.
    check(unsafe { sys::napi_create_array(env, &mut made) })?;
    for (index, value) in (0..).zip(values) {
        // SAFETY: both values belong to the running call.
        check(unsafe { sys::napi_set_element(env, made, index, value) })?;
    }
    Ok(made)
}

/// Makes a number.
pub(crate) fn number(env: sys::napi_env, value: f64) -> Result {
    let mut made = ptr::null_mut();
    // SAFETY: `made` has room for one value.
    check(unsafe { sys::napi_create_double(env, value, &mut made) })?;
    Ok(made)
}

/// Returns whether a value is `undefined`.
pub(crate) fn is_undefined(env: sys::napi_env, value: sys::napi_value) -> Result<bool> {
    let mut kind = 0;
    // SAFETY: `kind` has room for one tag.
    check(unsafe { sys::napi_typeof(env, value, &mut kind) })?;
    Ok(kind == sys::ValueType::napi_undefined)
}

/// Sets a property of an object made by this crate.
pub(crate) fn set(env: sys::napi_env, object: sys::napi_value, name: &CStr, value: sys::napi_value) -> Result<()> {
    // SAFETY: both values belong to the running call.
    check(unsafe { sys::napi_set_named_property(env, object, name.as_ptr(), value) })
}

pub(crate) fn length(bytes: usize) -> isize {
    isize::try_from(bytes).expect("no Rust allocation is larger than isize::MAX")
}
