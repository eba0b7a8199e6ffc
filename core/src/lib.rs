//! Exact, atomic, bounded limits for endpoints that check credentials.
//!
//! Four limiters share three pure policies:
//!
//! | limiter | decides by |
//! |---|---|
//! | [`Limiter`] | several keys in one call, each under a [`Rule`] of rates or of strikes, all or nothing |
//! | [`AttemptLimiter`] | strikes and a lockout, with reserve and cancel |
//! | [`TokenBucket`] | a burst, then a steady refill |
//! | [`FixedWindow`] | a count per window, opened by the first attempt |
//!
//! Every call takes the time. Testing and counting is one step, so parallel guesses cannot pass a
//! check before any of them is counted. Memory is bounded and a flood of keys evicts itself.
//!
//! ```
//! use std::time::Duration;
//! use doorkeep::{Limiter, Rule, Settlement, Timestamp};
//!
//! let login_ip = Rule::new("login-ip", "20/1m,200/1h".parse()?)?;
//! let login_account_ip = Rule::strikes("login-account-ip", 5, Duration::from_secs(15 * 60))?;
//! let limiter = Limiter::new(100_000)?;
//!
//! let (email, ip) = ("ann@example.com", "203.0.113.9");
//! let bucket = doorkeep::network(ip, 64)?;
//! let keys = [login_ip.ip_key(ip)?, login_account_ip.key(&[email.as_bytes(), bucket.as_bytes()])?];
//! let attempt = limiter.attempt(&keys, 1, Timestamp::now())?;
//! if attempt.allowed() {
//!     // verify the password; if it is right:
//!     attempt.success(&Settlement { forgive: &["login-account-ip"], ..Settlement::default() }, Timestamp::now())?;
//! } // else answer 429 with Retry-After: attempt.decision().retry_after_seconds()
//! # Ok::<(), doorkeep::Error>(())
//! ```
//!
//! # Map of the modules
//!
//! Each may use those before it, and none after it; `tests/arrows.py` says so.
//!
//! `error` → `time`, `decision`, `stats`, `bounds`, `id` → `period_text`, `rate`, `identity` → `rule`, `key`, `policy`
//! (pure steps), `http`, `presets`, `lint`, `keys_for` → `table` (bounded, no lock), `registry`, `settlement` → `memory` (locks; test
//! all, commit all; the types above). With the feature `redis`: `redis` (connection, scripts, breaker; the same limiters
//! over a server). With the feature `host`, for bindings alone: `host` (judges what host languages pass in; memory or
//! server, chosen at run time). The crate `doorkeep-lab` runs attacks over these limiters.

#![forbid(unsafe_code)]

mod bounds;
mod decision;
mod error;
#[cfg(feature = "host")]
#[doc(hidden)]
pub mod host;
pub mod http;
mod id;
mod identity;
mod key;
mod keys_for;
pub mod lint;
mod memory;
mod period_text;
mod policy;
pub mod presets;
mod rate;
#[cfg(feature = "redis")]
pub mod redis;
mod registry;
mod rule;
mod settlement;
mod stats;
mod table;
mod time;

pub use decision::{Decision, OnError, Outcome, Reason};
pub use error::{Error, ErrorKind};
pub use identity::canonical::{EmailOptions, canonical_email, canonical_username};
pub use identity::client_ip::ClientIp;
pub use identity::network::{network, network_start};
pub use key::{Digest, Key};
pub use keys_for::keys_for;
pub use memory::{Attempt, AttemptLimiter, FixedWindow, Limiter, Reservation, Strikes, TokenBucket};
pub use policy::strikes::Cancelled;
pub use rate::{Rate, Rates};
pub use rule::Rule;
pub use settlement::Settlement;
pub use stats::Stats;
pub use time::Timestamp;
