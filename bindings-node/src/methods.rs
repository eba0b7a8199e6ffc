//! The functions of one native object, all over the same state.

use std::ffi::CStr;
use std::rc::Rc;

use napi::sys;

use crate::call::{self, Body};
use crate::failure::Result;
use crate::js;
use crate::realm::Realm;

/// An object under construction.
pub(crate) struct Methods {
    env: sys::napi_env,
    object: sys::napi_value,
    realm: Rc<Realm>,
}

impl Methods {
    /// Starts a new object.
    pub(crate) fn new(env: sys::napi_env, realm: &Rc<Realm>) -> Result<Self> {
        Ok(Self { env, object: js::object(env)?, realm: Rc::clone(realm) })
    }

    /// Adds a function over `state`.
    pub(crate) fn method<T>(&mut self, name: &CStr, body: Body<T>, state: &Rc<T>) -> Result<()> {
        let function = call::function(self.env, name, body, &self.realm, state)?;
        self.value(name, function)
    }

    /// Adds a plain value.
    pub(crate) fn value(&mut self, name: &CStr, value: sys::napi_value) -> Result<()> {
        js::set(self.env, self.object, name, value)
    }

    /// Returns the finished object, with all of `bodies` added.
    pub(crate) fn with<T, const N: usize>(mut self, state: &Rc<T>, bodies: [(&CStr, Body<T>); N]) -> Result {
        for (name, body) in bodies {
            self.method(name, body, state)?;
        }
        Ok(self.object)
    }
}
