//! Strings from JavaScript: UTF-16 to bytes, without an allocation for the usual key, which is short and ASCII.
//!
//! Invariant: two different JavaScript strings never become equal bytes. Lone surrogates stay distinct as WTF-8, where
//! the engine's own UTF-8 conversion would turn all of them into U+FFFD: one shared bucket.

use std::ptr;

use doorkeep::host::input;
use napi::sys;

use crate::call::Call;
use crate::failure::Result;
use crate::js::check;

const INLINE: usize = 128;
const CHUNK: usize = 8;

impl<T> Call<'_, T> {
    /// Passes the bytes of the string at `index` to `take`; none when that argument is not a string.
    #[inline]
    pub(crate) fn text<R>(&self, index: usize, take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        with_text(self.env, self.arguments[index], take)
    }

    /// Returns the bytes of the first `reach` units of the string at `index`, so that one of megabytes costs nothing;
    /// none when that argument is not a string.
    pub(crate) fn start_of_text(&self, index: usize, reach: usize) -> Result<Option<Vec<u8>>> {
        let (mut units, mut length) = (vec![0_u16; reach + 1], 0);
        let value = self.arguments[index];
        // SAFETY: the buffer has room for that many units, the closing NUL included; the engine cuts the rest.
        let status =
            unsafe { sys::napi_get_value_string_utf16(self.env, value, units.as_mut_ptr(), units.len(), &mut length) };
        if status == sys::Status::napi_string_expected {
            return Ok(None);
        }
        check(status)?;
        Ok(Some(input::wtf8(&units[..length])))
    }
}

/// Passes the bytes of a string to `take`; none when the value is not a string.
#[inline]
pub(crate) fn with_text<R>(
    env: sys::napi_env,
    value: sys::napi_value,
    take: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    let mut units = [0_u16; INLINE];
    let mut length = 0;
    // SAFETY: the buffer has room for INLINE units, the closing NUL included.
    let status = unsafe { sys::napi_get_value_string_utf16(env, value, units.as_mut_ptr(), INLINE, &mut length) };
    if status == sys::Status::napi_string_expected {
        return Ok(None);
    }
    check(status)?;
    if length == INLINE - 1 {
        // Full: the string may be longer.
        return long_text(env, value).map(|units| Some(take(&input::wtf8(&units))));
    }
    let mut bytes = [0; INLINE];
    if narrow(&units, length, &mut bytes) {
        return Ok(Some(take(&bytes[..length])));
    }
    Ok(Some(take(&input::wtf8(&units[..length]))))
}

/// Writes the first `length` units as bytes. Returns whether all of them are ASCII.
///
/// Eight at a time, in one store: hashing reads eight bytes at once, and a load that spans several fresh stores stalls
/// for longer than the hash takes.
#[inline]
fn narrow(units: &[u16; INLINE], length: usize, bytes: &mut [u8; INLINE]) -> bool {
    let mut seen = 0;
    let (units, _) = units.as_chunks::<CHUNK>();
    let (places, _) = bytes.as_chunks_mut::<CHUNK>();
    for (place, &[a, b, c, d, e, f, g, h]) in places.iter_mut().zip(units).take(length.div_ceil(CHUNK)) {
        let (low, high) = (word([a, b, c, d]), word([e, f, g, h]));
        seen |= low | high;
        *place = (squeezed(high) << 32 | squeezed(low)).to_le_bytes();
    }
    seen & 0xFF80_FF80_FF80_FF80 == 0
}

fn word([a, b, c, d]: [u16; 4]) -> u64 {
    u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48
}

/// Packs four units below 256 into four bytes.
fn squeezed(word: u64) -> u64 {
    let pairs = (word | word >> 8) & 0x0000_FFFF_0000_FFFF;
    (pairs | pairs >> 16) & 0xFFFF_FFFF
}

#[cold]
fn long_text(env: sys::napi_env, value: sys::napi_value) -> Result<Vec<u16>> {
    let mut length = 0;
    // SAFETY: without a buffer the engine only measures.
    check(unsafe { sys::napi_get_value_string_utf16(env, value, ptr::null_mut(), 0, &mut length) })?;
    let mut units = vec![0_u16; length + 1];
    // SAFETY: the buffer has room for the string and its closing NUL.
    check(unsafe { sys::napi_get_value_string_utf16(env, value, units.as_mut_ptr(), units.len(), &mut length) })?;
    units.truncate(length);
    Ok(units)
}
