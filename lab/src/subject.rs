//! What is attacked: one process's limiter, asked in the two moments that a login has.
//!
//! Knows nothing of attackers. Invariant: the lab learns only what an answer tells, so a limiter that answers wrongly
//! shows in the numbers.

use std::net::IpAddr;

use doorkeep::Reason;

/// One attempt at a login.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Which account, by number.
    pub account: u32,
    /// Where from.
    pub address: IpAddr,
    /// Whether the credential is right, so that the attempt will be settled as a success.
    pub correct: bool,
}

/// What the limiter said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Why it denied; none when it admits.
    pub denied: Option<Reason>,
    /// The wait that it told, in µs; none for never, and from a limiter that tells none.
    pub wait: Option<u64>,
    /// Whether the rule that denied looks at the address, so that another one may pass.
    pub by_address: bool,
    /// Whether the rule that denied looks at the account, so that another one may pass.
    pub by_account: bool,
    /// Whether the attempt engaged a lockout.
    pub engaged: bool,
    /// Whether the store was not asked.
    pub degraded: bool,
}

impl Answer {
    /// Admitted, and nothing else happened.
    pub const ALLOWED: Self =
        Self { denied: None, wait: Some(0), by_address: false, by_account: false, engaged: false, degraded: false };

    /// Whether the attempt goes on to the check of its credential.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.denied.is_none()
    }
}

/// A limiter under test. The lab's own subjects are the limiters of this crate; a test may bring a broken one.
///
/// ```
/// use std::ops::ControlFlow;
/// use doorkeep_lab::{Answer, Request, Scenario, Subject};
///
/// /// Admits everybody.
/// struct OpenDoor;
///
/// impl Subject for OpenDoor {
///     fn arrive(&mut self, _: &Request, _: u64) -> Answer { Answer::ALLOWED }
///     fn verified(&mut self, _: &Request, _: u64) {}
///     fn peek(&mut self, _: &Request, _: u64) -> Answer { Answer::ALLOWED }
///     fn table(&self) -> (u64, u64) { (0, 0) }
/// }
///
/// let hour = Scenario::read("run.duration = '1h'\npolicy.rules = ['preset:vault']\nattackers = [{ kind = 'lockout' }]")?;
/// let outcome = hour.run_against(&|| Ok(Box::new(OpenDoor)), |_| ControlFlow::Continue(()))?;
/// assert_eq!(outcome.attackers.numbers("guesses"), Some(&[3600.0][..]));
/// # Ok::<(), doorkeep_lab::Error>(())
/// ```
///
/// Between [`Subject::arrive`] and [`Subject::verified`] of one attempt others arrive: those of a race.
pub trait Subject {
    /// An attempt arrives, before its credential is looked at.
    fn arrive(&mut self, request: &Request, now: u64) -> Answer;

    /// The credential of an admitted attempt was checked. Called once for each, in the order of their arrival.
    fn verified(&mut self, request: &Request, now: u64);

    /// What an attempt would be told; counts nothing.
    fn peek(&mut self, request: &Request, now: u64) -> Answer;

    /// How many keys the tables hold, and how many were evicted so far.
    fn table(&self) -> (u64, u64);
}
