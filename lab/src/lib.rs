//! The lab of doorkeep: try an attack on a policy before it is shipped.
//!
//! Attackers and honest users ask the very limiters that run in production, by a virtual clock. A [`Scenario`] says who
//! they are; [`Scenario::run`] gives columns; [`bounds`] has what can be computed without a run. The same seed gives the
//! same result in every language.
//!
//! ```
//! use doorkeep_lab::Scenario;
//!
//! let outcome = Scenario::read(r#"
//!     [run]
//!     duration = "24h"
//!     seed = 1
//!
//!     [policy]
//!     rules = [
//!         { name = "login-ip", rates = "20/1m,200/1h", by = ["address"] },
//!         { name = "login-account", strikes = 5, window = "15m", by = ["account"] },
//!     ]
//!
//!     [[attackers]]
//!     kind = "botnet"
//!     addresses = 50
//!
//!     [[users]]
//!     kind = "typo"
//!     logins = "2/1d"
//! "#)?.run()?;
//! assert_eq!(outcome.attackers.numbers("guesses"), Some(&[480.0][..]));
//! # Ok::<(), doorkeep_lab::Error>(())
//! ```
//!
//! # Map of the modules
//!
//! `scenario` (what is asked for; the file) → `subject` (what a limiter looks like from here) → `subjects` (ours) →
//! `fleet` (replicas, a store that fails) → `attacker`, `users` (who asks) → `run` (one queue of moments) → `columns`.

#![forbid(unsafe_code)]

mod ask;
mod attacker;
pub mod bounds;
mod columns;
mod error;
mod fleet;
mod histogram;
mod lanes;
mod passwords;
mod policy;
mod rng;
mod run;
pub mod scenario;
mod subject;
mod subjects;
mod tally;
mod targets;
mod users;

pub use ask::{bound, bounds_of};
pub use columns::{Column, Table};
pub use error::Error;
pub use passwords::{Counts, Passwords};
pub use policy::{By, Policy, Rules};
pub use run::{Outcome, Progress};
pub use scenario::Scenario;
pub use subject::{Answer, Request, Subject};
