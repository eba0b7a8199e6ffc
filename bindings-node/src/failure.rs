//! A failure on its way to JavaScript: a code and the core's own text, as data.
//!
//! Knows no Error class: an error made by an addon fails `instanceof` under jest, so TypeScript makes it.

use std::fmt;

use doorkeep::{Error, ErrorKind};
use napi::sys;

use crate::js;

/// What a function returns to JavaScript, unless it fails: a value, or `UNDEFINED` when the result is in the slots.
pub(crate) type Result<T = sys::napi_value, E = Failure> = std::result::Result<T, E>;

/// Why a call has no result.
pub(crate) enum Failure {
    /// The core refused the call.
    Refused(Error),
    /// A bug of this package: a panic, or an engine that returned what it never should.
    Internal(&'static str),
}

impl Failure {
    fn code(&self) -> &'static str {
        match self {
            Failure::Refused(error) => match error.kind() {
                ErrorKind::InvalidKey => "DOORKEEP_INVALID_KEY",
                _ => "DOORKEEP_CONFIG",
            },
            Failure::Internal(_) => "DOORKEEP_INTERNAL",
        }
    }

    /// Makes `{ failure: { code, message } }`; `undefined` when the engine is shutting down and makes no objects.
    pub(crate) fn into_js(self, env: sys::napi_env) -> sys::napi_value {
        let make = || -> Result<sys::napi_value> {
            let inner = js::object(env)?;
            js::set(env, inner, c"code", js::string(env, self.code())?)?;
            js::set(env, inner, c"message", js::string(env, &self.to_string())?)?;
            let outer = js::object(env)?;
            js::set(env, outer, c"failure", inner)?;
            Ok(outer)
        };
        make().unwrap_or(std::ptr::null_mut())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(error) => error.fmt(f),
            Failure::Internal(what) => f.write_str(what),
        }
    }
}
