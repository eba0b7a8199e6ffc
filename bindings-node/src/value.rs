//! Values of any type from JavaScript, in the form that `doorkeep::host::input` checks.

use std::ptr;

use doorkeep::Timestamp;
use doorkeep::host::input::{self, Unit, Value};
use napi::sys;

use crate::call::Call;
use crate::failure::Result;
use crate::js::check;
use crate::slots::{IN_ARGUMENT, LEFT_OUT, Slot};
use crate::text::with_text;

/// The unit of a plain number as a duration or as `now`.
pub(crate) const UNIT: Unit = Unit::Milliseconds;

/// Replaces a value that is not a string where only a string can be named: it matches no rule name and no option.
pub(crate) const NOT_A_TEXT: &str = "a value of another type";

/// A value that owns its string.
pub(crate) enum Given {
    Number(f64),
    Text(String),
    Bool(bool),
    Missing,
    Other,
}

impl Given {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Given::Number(number) => whole_or_float(*number),
            Given::Text(text) => Value::Text(text),
            Given::Bool(flag) => Value::Bool(*flag),
            Given::Missing => Value::Missing,
            Given::Other => Value::Other,
        }
    }

    /// Returns the string, or one that every check of a name refuses; none when the value is missing.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Given::Missing => None,
            Given::Text(text) => Some(text),
            _ => Some(NOT_A_TEXT),
        }
    }
}

impl<T> Call<'_, T> {
    /// Returns the argument at `index`, of any type.
    pub(crate) fn given(&self, index: usize) -> Result<Given> {
        given(self.env, self.arguments[index])
    }

    /// Returns the strings of the array at `index`; an element that is not a string becomes one that every check
    /// refuses.
    pub(crate) fn texts(&self, index: usize) -> Result<Vec<String>> {
        let elements = self.elements(index)?;
        let name = |value| Ok(given(self.env, value)?.name().unwrap_or(NOT_A_TEXT).to_owned());
        elements.into_iter().map(name).collect()
    }

    /// Returns the whole numbers of the array at `index`, which TypeScript made itself.
    pub(crate) fn numbers(&self, index: usize) -> Result<Vec<u32>> {
        self.elements(index)?.into_iter().map(|value| whole(self.env, value)).collect()
    }

    /// Returns the elements of the array at `index`.
    pub(crate) fn elements(&self, index: usize) -> Result<Vec<sys::napi_value>> {
        let array = self.arguments[index];
        let mut length = 0;
        // SAFETY: a value that is not an array fails with a status.
        check(unsafe { sys::napi_get_array_length(self.env, array, &mut length) })?;
        let element = |position| {
            let mut value = ptr::null_mut();
            // SAFETY: `value` has room for one value.
            check(unsafe { sys::napi_get_element(self.env, array, position, &mut value) })?;
            Ok(value)
        };
        (0..length).map(element).collect()
    }

    /// Returns one member of the array at `index`.
    pub(crate) fn member(&self, index: usize, member: usize) -> Result<Given> {
        match self.elements(index)?.get(member) {
            Some(&value) => given(self.env, value),
            None => Ok(Given::Missing),
        }
    }

    /// Returns the bytes of the Uint8Array or string at `index`; none when it is missing, no bytes for any other value.
    pub(crate) fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>> {
        let value = self.arguments[index];
        if let Some(bytes) = with_text(self.env, value, <[u8]>::to_vec)? {
            return Ok(Some(bytes));
        }
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        // SAFETY: each has room for what it is named after; a value of another type fails with a status.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                self.env,
                value,
                &mut kind,
                &mut length,
                &mut data,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if status != sys::Status::napi_ok || kind != sys::TypedarrayType::uint8_array {
            let missing = matches!(self.given(index)?, Given::Missing);
            return Ok(if missing { None } else { Some(Vec::new()) });
        }
        if length == 0 {
            return Ok(Some(Vec::new()));
        }
        // SAFETY: the engine reports `length` bytes there, and no JavaScript runs before they are copied.
        Ok(Some(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) }.to_vec()))
    }

    /// Returns the moment of the call; none for the clock of memory or store. A valid moment is in the slots, which is
    /// cheaper than an argument; a value to be refused is the argument at `index`.
    #[inline]
    pub(crate) fn now(&self, index: usize) -> Result<Option<Timestamp>> {
        match self.realm.slots.get(Slot::Now) {
            IN_ARGUMENT => self.moment(index).map(Some),
            LEFT_OUT => Ok(None),
            now => Ok(Some(input::now(Value::Float(now), UNIT)?)),
        }
    }

    /// Returns the moment in the argument at `index`.
    #[cold]
    pub(crate) fn moment(&self, index: usize) -> Result<Timestamp> {
        Ok(input::now(self.given(index)?.value(), UNIT)?)
    }

    /// Returns the cost of the call, from the slots or the argument at `index`, like [`now`](Self::now).
    #[inline]
    pub(crate) fn cost(&self, index: usize) -> Result<u32> {
        let given = match self.realm.slots.get(Slot::Cost) {
            IN_ARGUMENT => return self.cost_argument(index),
            LEFT_OUT => Value::Missing,
            cost => whole_or_float(cost),
        };
        Ok(input::cost(given)?)
    }

    #[cold]
    fn cost_argument(&self, index: usize) -> Result<u32> {
        Ok(input::cost(self.given(index)?.value())?)
    }

    /// Returns a number that TypeScript made itself.
    pub(crate) fn count(&self, index: usize) -> Result<u32> {
        whole(self.env, self.arguments[index])
    }
}

fn whole(env: sys::napi_env, value: sys::napi_value) -> Result<u32> {
    let mut number = 0;
    // SAFETY: `number` has room for one number.
    check(unsafe { sys::napi_get_value_uint32(env, value, &mut number) })?;
    Ok(number)
}

fn given(env: sys::napi_env, value: sys::napi_value) -> Result<Given> {
    let mut kind = 0;
    // SAFETY: `kind` has room for one tag.
    check(unsafe { sys::napi_typeof(env, value, &mut kind) })?;
    Ok(match kind {
        sys::ValueType::napi_undefined | sys::ValueType::napi_null => Given::Missing,
        sys::ValueType::napi_boolean => {
            let mut flag = false;
            // SAFETY: `flag` has room for one boolean.
            check(unsafe { sys::napi_get_value_bool(env, value, &mut flag) })?;
            Given::Bool(flag)
        }
        sys::ValueType::napi_number => {
            let mut number = 0.0;
            // SAFETY: `number` has room for one number.
            check(unsafe { sys::napi_get_value_double(env, value, &mut number) })?;
            Given::Number(number)
        }
        sys::ValueType::napi_string => {
            let text = with_text(env, value, |bytes| String::from_utf8_lossy(bytes).into_owned())?;
            Given::Text(text.unwrap_or_default())
        }
        _ => Given::Other,
    })
}

/// JavaScript has one kind of number; the core distinguishes whole numbers from the rest.
fn whole_or_float(number: f64) -> Value<'static> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return Value::Integer(number as i128);
    }
    Value::Float(number)
}
