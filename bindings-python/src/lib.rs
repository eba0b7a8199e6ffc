//! The native module of the Python package: conversions and error mapping over the core, one file per public type.
//!
//! Contains no formula and no default value. Invariants: every class is frozen and safe to share between threads
//! without the GIL; a call waits only for a store, without the GIL; no argument of any type causes a panic.

#![forbid(unsafe_code)]

mod advice;
mod aio;
mod answer;
mod attempt;
mod attempt_limiter;
mod bridge;
mod call;
mod canonical;
mod client_ip;
mod clock;
mod config;
mod convert;
mod decision;
mod error;
mod events;
mod fixed_window;
mod http;
mod interpreter;
mod key;
mod lab;
mod limiter;
mod options;
mod outcome;
mod pending;
mod rate;
mod reservation;
mod rule;
mod stats;
mod store;
mod token_bucket;
mod waker;

use doorkeep::host::keys;
use pyo3::prelude::*;

/// The classes have their public names here, except those of `doorkeep.aio`, which have a prefix.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreter::refuse_a_second(module.py())?;
    module.add_class::<attempt_limiter::AttemptLimiter>()?;
    module.add_class::<reservation::Reservation>()?;
    module.add_class::<limiter::Limiter>()?;
    module.add_class::<attempt::Attempt>()?;
    module.add_class::<token_bucket::TokenBucket>()?;
    module.add_class::<fixed_window::FixedWindow>()?;
    module.add_class::<rule::Rule>()?;
    module.add_class::<rule::StrikeRule>()?;
    module.add_class::<rate::Rate>()?;
    module.add_class::<rate::Rates>()?;
    module.add_class::<key::Key>()?;
    module.add_class::<decision::Decision>()?;
    module.add_class::<clock::ManualClock>()?;
    module.add_class::<answer::Answer>()?;
    module.add_class::<aio::attempt::PendingAttempt>()?;
    module.add_class::<store::RedisStore>()?;
    module.add_class::<client_ip::ClientIp>()?;
    add_aio(module)?;
    module.add_function(wrap_pyfunction!(key::network, module)?)?;
    module.add_function(wrap_pyfunction!(key::keys_for, module)?)?;
    module.add("_NO_ADDRESS", keys::NO_ADDRESS)?;
    module.add_function(wrap_pyfunction!(advice::lint, module)?)?;
    module.add_function(wrap_pyfunction!(advice::presets, module)?)?;
    module.add_function(wrap_pyfunction!(advice::refuse_claim, module)?)?;
    module.add_function(wrap_pyfunction!(http::status, module)?)?;
    module.add_function(wrap_pyfunction!(http::headers, module)?)?;
    module.add_function(wrap_pyfunction!(http::wait, module)?)?;
    module.add_function(wrap_pyfunction!(http::round_up, module)?)?;
    module.add_function(wrap_pyfunction!(canonical::canonical_email, module)?)?;
    module.add_function(wrap_pyfunction!(canonical::canonical_username, module)?)?;
    module.add_function(wrap_pyfunction!(decision::restore, module)?)?;
    module.add_function(wrap_pyfunction!(lab::run, module)?)?;
    module.add_function(wrap_pyfunction!(lab::check, module)?)?;
    module.add_function(wrap_pyfunction!(lab::json, module)?)?;
    module.add_function(wrap_pyfunction!(lab::bounds, module)?)?;
    module.add_function(wrap_pyfunction!(lab::bound, module)?)?;
    // The public names are listed in `doorkeep` and `doorkeep.aio`; a second list could only disagree.
    module.delattr("__all__")
}

fn add_aio(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("AioAttemptLimiter", py.get_type::<aio::attempt_limiter::AioAttemptLimiter>())?;
    module.add("AioLimiter", py.get_type::<aio::limiter::AioLimiter>())?;
    module.add("AioAttempt", py.get_type::<aio::attempt::AioAttempt>())?;
    module.add("AioTokenBucket", py.get_type::<aio::token_bucket::AioTokenBucket>())?;
    module.add("AioFixedWindow", py.get_type::<aio::fixed_window::AioFixedWindow>())
}
