//! Texts from JavaScript: UTF-16 into bytes, without an allocation for the short ASCII ones that keys are.
//!
//! Invariant: two different JavaScript strings never become equal bytes. Lone surrogates stay apart as WTF-8, where
//! the engine's own UTF-8 conversion would turn all of them into U+FFFD: one shared bucket.

use std::mem::MaybeUninit;
use std::ptr;

use doorkeep::input;
use napi::sys;

use crate::call::{Call, check};
use crate::failure::Failure;

const INLINE: usize = 128;

impl<T> Call<'_, T> {
    /// Hands the bytes of the text at `index` to `take`; none when that argument is not a text.
    #[inline]
    pub(crate) fn text<R>(&self, index: usize, take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Failure> {
        with_text(self.env, self.arguments[index], take)
    }
}

/// Hands the bytes of a text to `take`; none when the value is not a text.
#[inline]
pub(crate) fn with_text<R>(
    env: sys::napi_env,
    value: sys::napi_value,
    take: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>, Failure> {
    let mut units = [MaybeUninit::<u16>::uninit(); INLINE];
    let mut length = 0;
    // SAFETY: the buffer has room for INLINE units, the closing NUL included.
    let status =
        unsafe { sys::napi_get_value_string_utf16(env, value, units.as_mut_ptr().cast(), INLINE, &mut length) };
    if status == sys::Status::napi_string_expected {
        return Ok(None);
    }
    check(status)?;
    if length == INLINE - 1 {
        // Full: the text may go on.
        return long_text(env, value).map(|units| Some(take(&input::wtf8(&units))));
    }
    // SAFETY: the engine wrote `length` units.
    let units = unsafe { std::slice::from_raw_parts(units.as_ptr().cast::<u16>(), length) };
    let mut bytes = [MaybeUninit::<u8>::uninit(); INLINE];
    let mut seen = 0;
    for (byte, unit) in bytes.iter_mut().zip(units) {
        seen |= unit;
        byte.write(unit.to_le_bytes()[0]);
    }
    if seen >= 0x80 {
        return Ok(Some(take(&input::wtf8(units))));
    }
    // SAFETY: the loop wrote one byte for each of the `length` units.
    Ok(Some(take(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), length) })))
}

#[cold]
fn long_text(env: sys::napi_env, value: sys::napi_value) -> Result<Vec<u16>, Failure> {
    let mut length = 0;
    // SAFETY: without a buffer the engine only measures.
    check(unsafe { sys::napi_get_value_string_utf16(env, value, ptr::null_mut(), 0, &mut length) })?;
    let mut units = vec![0_u16; length + 1];
    // SAFETY: the buffer has room for the text and its closing NUL.
    check(unsafe { sys::napi_get_value_string_utf16(env, value, units.as_mut_ptr(), units.len(), &mut length) })?;
    units.truncate(length);
    Ok(units)
}
