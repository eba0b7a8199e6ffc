//! One budget for many processes: the four limiters over one Redis.
//!
//! Every call is one round trip, one script that decides all keys or none, bounded by one deadline.
//! When the store does not answer, `on_error` decides, and the decision says so. Calls must run
//! within a Tokio runtime.
//!
//! ```no_run
//! # async fn example() -> Result<(), doorkeep::Error> {
//! use doorkeep::{Rule, redis};
//!
//! let store = redis::RedisStore::new("redis://127.0.0.1/0", redis::StoreOptions::default())?;
//! let limiter = redis::Limiter::new(&store, None, 100_000)?;
//! let login_ip = Rule::new("login-ip", "20/1m,200/1h".parse()?)?;
//! let decision = limiter.decide(&[login_ip.ip_key("203.0.113.9")?], 1, None).await?;
//! # Ok(())
//! # }
//! ```

mod attempt;
mod attempt_limiter;
mod fallback;
mod fixed_window;
mod handle;
mod limiter;
mod remote;
mod single;
mod store;
mod token_bucket;

pub use attempt::Attempt;
pub use attempt_limiter::{AttemptLimiter, Reservation};
pub use fixed_window::FixedWindow;
pub use handle::RedisStore;
pub use limiter::Limiter;
pub use store::{Clock as StoreClock, Event, Options as StoreOptions};
pub use token_bucket::TokenBucket;

use crate::time::Timestamp;

/// The caller's instant, or this process's clock: for what is decided here and not in the store.
pub(crate) fn or_now(now: Option<Timestamp>) -> Timestamp {
    now.unwrap_or_else(Timestamp::now)
}
