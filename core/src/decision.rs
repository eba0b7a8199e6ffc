//! What a limiter answers, what it answers without its store, and how the answers of several checks become one.
//!
//! Pure. Invariant: the default [`Outcome`] is denied, so an unset one fails closed.

use std::sync::Arc;
use std::time::Duration;

/// The verdict on one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use = "an outcome that is not looked at admits everybody"]
#[repr(u8)]
pub enum Outcome {
    /// The attempt must not proceed.
    #[default]
    Denied = 0,
    /// The attempt may proceed.
    Allowed = 1,
    /// The attempt may proceed, and it engaged a lockout. Given once per lockout, so it is worth one log line.
    AllowedLast = 2,
}

impl Outcome {
    /// Whether the attempt may proceed.
    pub fn is_allowed(self) -> bool {
        self != Self::Denied
    }

    /// `denied`, `allowed` or `allowed_last`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Allowed => "allowed",
            Self::AllowedLast => "allowed_last",
        }
    }
}

/// Why an attempt was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// A rate or a window is spent.
    Limited,
    /// The key is locked out.
    Locked,
    /// The table is full of live lockouts and cannot track a new key.
    Saturated,
    /// The store did not answer and the limiter fails closed: answer 503.
    Unavailable,
}

impl Reason {
    /// `limited`, `locked`, `saturated` or `unavailable`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Limited => "limited",
            Self::Locked => "locked",
            Self::Saturated => "saturated",
            Self::Unavailable => "unavailable",
        }
    }
}

/// What to answer when the store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnError {
    /// Decide from this process's own tables.
    #[default]
    Local,
    /// Admit everybody.
    Open,
    /// Admit nobody: answer 503.
    Closed,
}

/// The whole answer to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a decision that is not looked at admits everybody"]
pub struct Decision {
    /// The verdict.
    pub outcome: Outcome,
    /// Why it was denied; none when allowed.
    pub reason: Option<Reason>,
    /// The rule that denied with the longest wait; none when allowed.
    pub rule: Option<Arc<str>>,
    /// The wait after which the same call is admitted, if nothing else comes: exact, at least 1 µs.
    /// Zero when allowed; none when it is never admitted (its cost exceeds a rate) or the store is unavailable.
    pub retry_after: Option<Duration>,
    /// How many more calls of cost 1 would pass now: the smallest over all checks.
    pub remaining: u32,
    /// When everything is full again: the longest over all checks.
    pub reset_after: Duration,
    /// The answer was given without the store.
    pub degraded: bool,
    /// The rules whose lockout this attempt engaged.
    pub engaged: Vec<Arc<str>>,
}

impl Decision {
    /// Whether the attempt may proceed.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.outcome.is_allowed()
    }

    /// Whole seconds for a `Retry-After` header: rounded up, at least 1 on a denial, 0 when allowed, none for never.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(seconds_up)
    }
}

/// A duration in whole seconds, rounded up.
pub(crate) fn seconds_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

impl Decision {
    /// The same answer to somebody who asks once more: a lockout is announced once.
    pub(crate) fn again(&self) -> Self {
        let outcome = if self.allowed() { Outcome::Allowed } else { Outcome::Denied };
        Self { outcome, engaged: Vec::new(), ..self.clone() }
    }
}

/// How long a denying check makes the caller wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wait {
    Micros(u64),
    /// The cost exceeds what the window ever holds. The longest of all waits.
    Never,
}

/// Joins the answers of all checks of one call, in call order.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    denial: Option<(Wait, Reason, &'a Arc<str>)>,
    remaining: u32,
    reset_after: u64,
    engaged: Vec<Arc<str>>,
}

impl<'a> Summary<'a> {
    pub(crate) fn new() -> Self {
        Self { denial: None, remaining: u32::MAX, reset_after: 0, engaged: Vec::new() }
    }

    /// One check denies. The longest wait speaks for the call; of equals the first.
    pub(crate) fn deny(&mut self, rule: &'a Arc<str>, reason: Reason, wait: Wait) {
        if self.denial.is_none_or(|(longest, ..)| wait > longest) {
            self.denial = Some((wait, reason, rule));
        }
    }

    /// What one check has left after the call.
    pub(crate) fn left(&mut self, remaining: u32, reset_after: u64) {
        self.remaining = self.remaining.min(remaining);
        self.reset_after = self.reset_after.max(reset_after);
    }

    pub(crate) fn engaged(&mut self, rule: &Arc<str>) {
        if !self.engaged.contains(rule) {
            self.engaged.push(Arc::clone(rule));
        }
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.denial.is_some()
    }

    /// Whether waiting cannot help; such a call writes nothing, heals included.
    pub(crate) fn is_never(&self) -> bool {
        self.denial.is_some_and(|(wait, ..)| wait == Wait::Never)
    }

    pub(crate) fn into_decision(self) -> Decision {
        let outcome = match (&self.denial, self.engaged.is_empty()) {
            (Some(_), _) => Outcome::Denied,
            (None, true) => Outcome::Allowed,
            (None, false) => Outcome::AllowedLast,
        };
        let retry_after = match self.denial {
            None => Some(Duration::ZERO),
            Some((Wait::Micros(wait), ..)) => Some(Duration::from_micros(wait)),
            Some((Wait::Never, ..)) => None,
        };
        Decision {
            outcome,
            reason: self.denial.map(|(_, reason, _)| reason),
            rule: self.denial.map(|(.., rule)| Arc::clone(rule)),
            retry_after,
            remaining: self.remaining,
            reset_after: Duration::from_micros(self.reset_after),
            degraded: false,
            engaged: self.engaged,
        }
    }
}
