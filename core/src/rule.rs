//! Rules: a name and the policy that stands behind it.
//!
//! Pure. Invariant: two rules are equal exactly if they may share a budget: same name, kind,
//! policy, prefix length and secret.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::bounds;
use crate::error::Error;
use crate::period_text;
use crate::rate::Rates;
use crate::time::Period;

const PLACE_BITS: u32 = 10;

/// A named policy. Cheap to clone.
///
/// ```
/// use doorkeep::Rule;
///
/// let login_ip = Rule::new("login-ip", "20/1m,200/1h".parse()?)?;
/// let key = login_ip.ip_key("203.0.113.9")?;
/// assert_eq!(key.digest().to_string(), "6c63b13d3aa664d9cfb2d6cd47380ae1");
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Rule(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: Arc<str>,
    policy: Policy,
    ipv6_prefix: u8,
    secret: Option<Box<[u8]>>,
    by: Vec<String>,
    seen: Seen,
}

/// Where the limiter that met the rule last keeps it: `registry << 10 | position`, or 0. Spares it a look-up by name.
#[derive(Default)]
struct Seen(AtomicU64);

impl Clone for Seen {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What a rule decides by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Policy {
    Rates(Rates),
    Strikes { threshold: u32, window: Period },
}

impl Rule {
    /// The prefix length unless another is given: one subscriber is usually handed a whole /64.
    pub const DEFAULT_IPV6_PREFIX: u8 = 64;

    /// The word for a client's address in [`Rule::with_by`].
    pub const ADDRESS: &'static str = "address";

    /// A rule of rates, all of which must allow.
    ///
    /// # Errors
    /// The name does not match `[a-z0-9-]{1,32}`.
    pub fn new(name: &str, rates: Rates) -> Result<Self, Error> {
        Self::with_policy(name, Policy::Rates(rates))
    }

    /// A rule of strikes: the `threshold`-th attempt (1 to 1024) locks the key for `lockout_window`.
    ///
    /// # Errors
    /// The name does not match `[a-z0-9-]{1,32}`, or a bound is passed.
    pub fn strikes(name: &str, threshold: u32, lockout_window: Duration) -> Result<Self, Error> {
        let window = Period::from_duration("lockout window", lockout_window)?;
        bounds::THRESHOLD.check(threshold)?;
        Self::with_policy(name, Policy::Strikes { threshold, window })
    }

    fn with_policy(name: &str, policy: Policy) -> Result<Self, Error> {
        let name = bounds::check_name(name)?.into();
        Ok(Self(Arc::new(Inner {
            name,
            policy,
            ipv6_prefix: Self::DEFAULT_IPV6_PREFIX,
            secret: None,
            by: Vec::new(),
            seen: Seen::default(),
        })))
    }

    /// The prefix length (32 to 128, default 64) that [`Rule::ip_key`] cuts IPv6 addresses to.
    ///
    /// # Errors
    /// The length is out of bounds.
    pub fn with_ipv6_prefix(mut self, prefix: u8) -> Result<Self, Error> {
        bounds::IPV6_PREFIX.check(prefix)?;
        Arc::make_mut(&mut self.0).ipv6_prefix = prefix;
        Ok(self)
    }

    /// Digests become HMAC-SHA-256 with this secret, so that who reads the store cannot guess values.
    ///
    /// # Errors
    /// The secret is shorter than 16 bytes.
    pub fn with_secret(mut self, secret: &[u8]) -> Result<Self, Error> {
        bounds::check_secret(secret)?;
        Arc::make_mut(&mut self.0).secret = Some(secret.into());
        Ok(self)
    }

    /// What the rule is keyed by, in words: `["account", "address"]`. `["address"]` alone makes all its keys address keys.
    ///
    /// # Errors
    /// A word does not match `[a-z0-9-]{1,32}`.
    pub fn with_by(mut self, by: &[&str]) -> Result<Self, Error> {
        bounds::check_words(by)?;
        Arc::make_mut(&mut self.0).by = by.iter().map(ToString::to_string).collect();
        Ok(self)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The rates, if this is a rule of rates.
    #[must_use]
    pub fn rates(&self) -> Option<&Rates> {
        match &self.0.policy {
            Policy::Rates(rates) => Some(rates),
            Policy::Strikes { .. } => None,
        }
    }

    /// How many attempts lock a key, if this is a rule of strikes.
    #[must_use]
    pub fn threshold(&self) -> Option<u32> {
        match self.0.policy {
            Policy::Rates(_) => None,
            Policy::Strikes { threshold, .. } => Some(threshold),
        }
    }

    /// How long a key stays locked, if this is a rule of strikes.
    #[must_use]
    pub fn lockout_window(&self) -> Option<Duration> {
        match self.0.policy {
            Policy::Rates(_) => None,
            Policy::Strikes { window, .. } => Some(window.as_duration()),
        }
    }

    /// The prefix length that IPv6 addresses are cut to.
    #[must_use]
    pub fn ipv6_prefix(&self) -> u8 {
        self.0.ipv6_prefix
    }

    /// What the rule is keyed by, in words.
    #[must_use]
    pub fn by(&self) -> &[String] {
        &self.0.by
    }

    /// The policy as it stands in the state's name: `5/1m,50/1h` or `s5/15m`.
    #[must_use]
    pub fn policy(&self) -> String {
        match &self.0.policy {
            Policy::Rates(rates) => rates.to_string(),
            Policy::Strikes { threshold, window } => format!("s{threshold}/{}", period_text::print(*window)),
        }
    }

    /// The most attempts that pass in any half-open span of this length.
    #[must_use]
    pub fn max_in(&self, span: Duration) -> u64 {
        match &self.0.policy {
            Policy::Rates(rates) => rates.max_in(span),
            Policy::Strikes { threshold, window } => {
                let windows = span.as_micros().div_ceil(u128::from(window.as_micros()));
                u64::try_from(windows.saturating_mul(u128::from(*threshold))).unwrap_or(u64::MAX)
            }
        }
    }

    /// Whether all its keys are addresses.
    pub(crate) fn is_address_alone(&self) -> bool {
        self.0.by == [Self::ADDRESS]
    }

    pub(crate) fn policy_parts(&self) -> &Policy {
        &self.0.policy
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.0.name
    }

    pub(crate) fn secret(&self) -> Option<&[u8]> {
        self.0.secret.as_deref()
    }

    /// The place of this very object in a registry, if that registry met it last.
    pub(crate) fn place_in(&self, registry: u64) -> Option<usize> {
        let seen = self.0.seen.0.load(Ordering::Acquire);
        (seen >> PLACE_BITS == registry).then_some((seen & ((1 << PLACE_BITS) - 1)) as usize)
    }

    pub(crate) fn remember_place(&self, registry: u64, position: usize) {
        self.0.seen.0.store(registry << PLACE_BITS | position as u64, Ordering::Release);
    }
}

impl Inner {
    /// What must agree for two rules to share a budget. `by` is advice and stays out.
    fn identity(&self) -> (&str, &Policy, u8, Option<&[u8]>) {
        (&self.name, &self.policy, self.ipv6_prefix, self.secret.as_deref())
    }
}

impl PartialEq for Inner {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Inner {}

impl Hash for Inner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// Shows no secret.
impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({}, {})", self.name(), self.policy())
    }
}
