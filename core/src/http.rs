//! A decision as HTTP says it: a status, and the header fields that go with it.
//!
//! Pure: knows no request, no framework and no clock. Invariant: what is sent depends on the decision and on the
//! configured rules alone; nothing that derives from the value of a key is ever sent. Specified by
//! `tests/vectors/http.json`.

use std::fmt::Write;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::decision::{Decision, Reason, seconds_up};
use crate::error::Error;
use crate::key::Key;
use crate::period_text::print;
use crate::rule::{Policy, Rule};
use crate::time::Period;

/// The policy that all rules of a call are together. No rule can have this name.
const TOGETHER: &str = "*";

/// Retry-After under `unavailable`: the store is looked for about every second.
const UNAVAILABLE_SECONDS: u64 = 1;

/// The status of a decision: 200 when it was allowed, 429 when it was denied, 503 when the limiter is unavailable.
///
/// ```
/// use doorkeep::{Limiter, Rule, Timestamp, http};
///
/// let limiter = Limiter::new(100)?;
/// let key = Rule::new("login-ip", "1/1m".parse()?)?.ip_key("203.0.113.9")?;
/// assert_eq!(http::status(&limiter.decide(&[key.clone()], 1, Timestamp::default())?), 200);
/// assert_eq!(http::status(&limiter.decide(&[key], 1, Timestamp::default())?), 429);
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[must_use]
pub fn status(decision: &Decision) -> u16 {
    match decision.reason {
        _ if decision.allowed() => 200,
        Some(Reason::Unavailable) => 503,
        _ => 429,
    }
}

/// What the header fields may say besides the wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderOptions {
    /// Makes waits coarse, unless the rule that denied is keyed by an address alone: whoever asks about an account of
    /// somebody else must not read from the wait when others have tried it.
    pub round_up: Option<RoundUp>,
    /// Adds `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10. They tell a stranger how
    /// many attempts others have made.
    pub rate_limit: bool,
}

/// The multiple of whole seconds that waits are rounded up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundUp(NonZeroU64);

impl RoundUp {
    /// A multiple of `step`: whole seconds, 1 second to 2^48 µs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use doorkeep::http::RoundUp;
    ///
    /// assert!(RoundUp::new(Duration::from_secs(60)).is_ok());
    /// assert!(RoundUp::new(Duration::from_millis(1500)).is_err());
    /// ```
    ///
    /// # Errors
    /// The step is not a whole number of seconds, or a bound is passed.
    pub fn new(step: Duration) -> Result<Self, Error> {
        let period = Period::from_duration("round up", step)?;
        let seconds = NonZeroU64::new(step.as_secs()).filter(|_| step.subsec_nanos() == 0);
        let refused =
            || Error::config(format!("round up must be whole seconds, at least 1s, value=`{}`", print(period)));
        seconds.map(Self).ok_or_else(refused)
    }

    fn apply(self, seconds: u64) -> u64 {
        seconds.div_ceil(self.0.get()) * self.0.get()
    }
}

/// The header fields of a decision, in a fixed order: names and values.
///
/// `Retry-After` stands on denials: whole seconds, rounded up, at least 1; left out when no wait helps; 1 when the
/// limiter is unavailable. `keys` are those that were asked; without them every wait is rounded and no policy is named.
///
/// ```
/// use doorkeep::{Limiter, Rule, Timestamp, http};
///
/// let limiter = Limiter::new(100)?;
/// let keys = [Rule::new("login-ip", "5/1m".parse()?)?.ip_key("203.0.113.9")?];
/// let decision = limiter.decide(&keys, 2, Timestamp::default())?;
/// let options = http::HeaderOptions { rate_limit: true, ..Default::default() };
/// let fields = http::headers(&decision, &keys, options);
/// assert_eq!(fields[0], ("RateLimit-Policy", r#""login-ip";q=5;w=60"#.to_owned()));
/// assert_eq!(fields[1], ("RateLimit", r#""login-ip";r=3;t=24"#.to_owned()));
/// # Ok::<(), doorkeep::Error>(())
/// ```
#[must_use]
pub fn headers(decision: &Decision, keys: &[Key], options: HeaderOptions) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    let wait = wait_of(decision, keys, options.round_up);
    if let Some(seconds) = wait.filter(|_| !decision.allowed()) {
        fields.push(("Retry-After", seconds.to_string()));
    }
    if options.rate_limit {
        let policies = Policies::of(keys);
        if let Some(field) = policies.field() {
            fields.push(("RateLimit-Policy", field));
        }
        // Nothing was decided, so nothing is known to be left.
        if decision.reason != Some(Reason::Unavailable) {
            fields.push(("RateLimit", service_limit(policies.name(), decision.remaining, wait)));
        }
    }
    fields
}

/// Seconds until the same call is admitted; until everything is full again when it was. None when no wait helps.
fn wait_of(decision: &Decision, keys: &[Key], round_up: Option<RoundUp>) -> Option<u64> {
    if decision.reason == Some(Reason::Unavailable) {
        return Some(UNAVAILABLE_SECONDS);
    }
    let seconds = if decision.allowed() { seconds_up(decision.reset_after) } else { decision.retry_after_seconds()? };
    let rule = decision.rule.as_deref();
    // Of an admitted call every key had a say in the wait.
    let mut concerned = keys.iter().filter(|key| rule.is_none_or(|name| key.rule().name() == name)).peekable();
    // A rule that is not among the keys may be keyed by anything.
    let is_address = concerned.peek().is_some() && concerned.all(Key::is_address);
    Some(round_up.filter(|_| !is_address).map_or(seconds, |step| step.apply(seconds)))
}

/// The quota policies of a call, in call order, each under a name of its own.
struct Policies(Vec<QuotaPolicy>);

struct QuotaPolicy {
    name: String,
    quota: u32,
    window: u64,
}

impl Policies {
    fn of(keys: &[Key]) -> Self {
        let mut policies: Vec<QuotaPolicy> = Vec::new();
        for policy in keys.iter().flat_map(|key| policies_of(key.rule())) {
            // Several keys of one rule are one policy.
            if policies.iter().all(|known| known.name != policy.name) {
                policies.push(policy);
            }
        }
        Self(policies)
    }

    /// What `remaining` counts: the one policy, or all of them together.
    fn name(&self) -> &str {
        match self.0.as_slice() {
            [one] => &one.name,
            _ => TOGETHER,
        }
    }

    fn field(&self) -> Option<String> {
        let smallest = self.0.iter().map(|policy| policy.quota).min()?;
        let mut field = String::new();
        for QuotaPolicy { name, quota, window } in &self.0 {
            let separator = if field.is_empty() { "" } else { ", " };
            write!(field, r#"{separator}"{name}";q={quota};w={window}"#).expect("a String takes what is written");
        }
        if self.0.len() > 1 {
            write!(field, r#", "{TOGETHER}";q={smallest}"#).expect("a String takes what is written");
        }
        Some(field)
    }
}

/// One policy for each rate that a client can feel. The name of a rule is a name in the field's grammar as it stands.
fn policies_of(rule: &Rule) -> Vec<QuotaPolicy> {
    let name = rule.name();
    match rule.policy_parts() {
        Policy::Strikes { threshold, window } => {
            vec![QuotaPolicy { name: name.to_owned(), quota: *threshold, window: seconds_up(window.as_duration()) }]
        }
        Policy::Rates(rates) => {
            // Of two rates of one period the smaller, which stands first, is the only one that can deny.
            let mut rates: Vec<_> = rates.iter().collect();
            rates.dedup_by_key(|rate| rate.period());
            let is_one = rates.len() == 1;
            let named = |period: &str| if is_one { name.to_owned() } else { format!("{name}/{period}") };
            rates
                .into_iter()
                .map(|rate| QuotaPolicy {
                    name: named(&rate.period_text()),
                    quota: rate.count(),
                    // The field knows no fractions; a longer window promises less than the rule gives.
                    window: seconds_up(rate.period()),
                })
                .collect()
        }
    }
}

fn service_limit(name: &str, remaining: u32, wait: Option<u64>) -> String {
    let wait = wait.map(|seconds| format!(";t={seconds}")).unwrap_or_default();
    format!(r#""{name}";r={remaining}{wait}"#)
}
