//! A raw napi function that does nothing: it reads a string and answers a number. The floor under a call from Node.
//!
//! Written against the engine alone, so that it owes nothing to how the package crosses.

use std::ffi::c_char;
use std::ptr;

use napi_sys as sys;

const ROOM: usize = 128;

unsafe extern "C" fn noop(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut argument = ptr::null_mut();
    let mut count = 1;
    let mut text = [0_u8; ROOM];
    let mut length = 0;
    let mut answer = ptr::null_mut();
    // SAFETY: every pointer is to a place of the size that is said beside it, alive during the call.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, &mut argument, ptr::null_mut(), ptr::null_mut());
        sys::napi_get_value_string_utf8(env, argument, text.as_mut_ptr().cast::<c_char>(), ROOM, &mut length);
        sys::napi_create_uint32(env, u32::from(length > 0), &mut answer);
    }
    answer
}

#[unsafe(no_mangle)]
unsafe extern "C" fn napi_register_module_v1(env: sys::napi_env, exports: sys::napi_value) -> sys::napi_value {
    let mut function = ptr::null_mut();
    // SAFETY: the name is a text with its length, and the function lives as long as the module.
    unsafe {
        sys::napi_create_function(env, c"noop".as_ptr(), 4, Some(noop), ptr::null_mut(), &mut function);
        sys::napi_set_named_property(env, exports, c"noop".as_ptr(), function);
    }
    exports
}
