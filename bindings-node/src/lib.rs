//! The native half of the npm package: the core's public types behind raw functions.
//!
//! Knows nothing of promises, classes and errors; those are TypeScript (`../lib`). Has no formula and no default value:
//! `doorkeep::host::input` checks every number. Invariant: no panic leaves a function, and a failure is a value.
//!
//! `call` is the only way in, `js` makes values, `bridge` returns answers that arrive later, `slots` is the memory
//! through which numbers cross in both directions, and `realm` is what one copy of the package owns. The other files
//! are named after their public type.

#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod advice;
mod attempt;
mod attempt_limiter;
mod bridge;
mod call;
mod canonical;
mod client_ip;
mod decision;
mod external;
mod failure;
mod fixed_window;
mod http;
mod js;
mod key;
mod keys_for;
mod limiter;
mod methods;
mod options;
mod rate;
mod realm;
mod rule;
mod slots;
mod stats;
mod store;
mod text;
mod token_bucket;
mod value;

use std::rc::Rc;

use napi::bindgen_prelude::{Env, FromNapiValue, JsObjectValue, Object};
use napi_derive::napi;

use methods::Methods;
use realm::Realm;

/// Fills the exports of the module, which the engine keeps once per process or worker thread.
///
/// `open` returns the functions, over a realm of their own: a runner that loads the package anew for each test, such as
/// jest, passes it the module that it had before, and two copies of the package must not take each other's answers.
#[napi(module_exports)]
#[allow(unreachable_pub, reason = "the macro registers the function from outside of the crate's own modules")]
pub fn fill(mut exports: Object, env: Env) -> napi::Result<()> {
    exports.set_named_property("version", env!("CARGO_PKG_VERSION"))?;
    let open = env.create_function_from_closure::<(), _, _>("open", |context| {
        let env = context.env.raw();
        let opened = open(env).map_err(|failure| napi::Error::from_reason(failure.to_string()))?;
        // SAFETY: `open` made it in this environment.
        unsafe { Object::from_napi_value(env, opened) }
    })?;
    exports.set_named_property("open", open)
}

/// Returns the functions of one copy of the package.
fn open(env: napi::sys::napi_env) -> failure::Result {
    let (realm, memory) = Realm::new(env)?;
    let nothing = Rc::new(());
    let mut methods = Methods::new(env, &Rc::new(realm))?;
    methods.value(c"memory", memory)?;
    for (name, body) in [
        (c"attemptLimiter", attempt_limiter::create as call::Body<()>),
        (c"limiter", limiter::create),
        (c"tokenBucket", token_bucket::create),
        (c"fixedWindow", fixed_window::create),
        (c"rule", rule::create),
        (c"strikeRule", rule::create_strikes),
        (c"ruleMaxIn", rule::max_in),
        (c"key", key::one_part),
        (c"keyOfParts", key::parts),
        (c"ipKey", key::address),
        (c"keysFor", keys_for::create),
        (c"network", key::network),
        (c"preset", advice::preset),
        (c"lint", advice::lint),
        (c"refuseClaim", advice::refuse_claim),
        (c"httpStatus", http::status),
        (c"httpHeaders", http::headers),
        (c"httpRoundUp", http::round_up),
        (c"clientIp", client_ip::create),
        (c"clientIpResolve", client_ip::resolve),
        (c"clientIpWarning", client_ip::warning),
        (c"notHeaders", client_ip::not_headers),
        (c"canonicalEmail", canonical::email),
        (c"canonicalUsername", canonical::username),
        (c"rate", rate::rate),
        (c"rates", rate::rates),
        (c"ratesMaxIn", rate::max_in),
        (c"attemptSuccess", attempt::success),
        (c"attemptFailure", attempt::failure),
        (c"attemptCancel", attempt::cancel),
        (c"attemptRelease", attempt::release),
        (c"attemptExtend", attempt::extend),
        (c"span", options::span),
        (c"now", options::now),
        (c"unknownOption", options::unknown),
        (c"store", store::create),
        (c"storeClose", store::close),
        (c"storeEvents", store::events),
        (c"openBridge", bridge::open),
        (c"takeCompletions", bridge::take),
        (c"nextCompletion", bridge::next),
    ] {
        methods.method(name, body, &nothing)?;
    }
    methods.with(&nothing, [])
}
