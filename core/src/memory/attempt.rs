//! One attempt on several keys: reserved before the credential is checked, settled after.

use parking_lot::Mutex;

use crate::bounds::check_key_count;
use crate::decision::Decision;
use crate::error::Error;
use crate::key::Key;
use crate::memory::Limiter;
use crate::memory::engine::Taken;
use crate::settlement::{self, Settlement};
use crate::time::Timestamp;

/// An attempt that was counted on all of its keys, or denied.
///
/// It stays counted unless it is settled, once: by [`success`](Self::success), [`failure`](Self::failure),
/// [`cancel`](Self::cancel) or [`release`](Self::release). Dropping it settles nothing.
///
/// ```
/// use std::time::Duration;
/// use doorkeep::{Limiter, Rule, Settlement, Timestamp};
///
/// let account = Rule::strikes("login-account", 5, Duration::from_secs(900))?;
/// let limiter = Limiter::new(100_000)?;
/// let attempt = limiter.attempt(&[account.key(&[b"ann@example.com"])?], 1, Timestamp::now())?;
/// assert!(attempt.allowed());
/// // the password was right:
/// attempt.success(&Settlement { forgive: &["login-account"], ..Settlement::default() }, Timestamp::now())?;
/// assert!(limiter.is_empty());
/// # Ok::<(), doorkeep::Error>(())
/// ```
pub struct Attempt {
    limiter: Limiter,
    state: Mutex<State>,
}

struct State {
    decision: Decision,
    keys: Vec<Key>,
    taken: Vec<Taken>,
    is_open: bool,
}

impl Attempt {
    pub(crate) fn new(limiter: Limiter, keys: &[Key], decision: Decision, taken: Vec<Taken>) -> Self {
        let is_open = decision.allowed();
        let keys = if is_open { keys.to_vec() } else { Vec::new() };
        Self { limiter, state: Mutex::new(State { decision, keys, taken, is_open }) }
    }

    /// The decision that the attempt was made with.
    pub fn decision(&self) -> Decision {
        self.state.lock().decision.clone()
    }

    /// Whether the attempt may proceed.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.state.lock().decision.allowed()
    }

    /// Whether a key is one of this attempt's.
    #[must_use]
    pub fn holds(&self, key: &Key) -> bool {
        self.state.lock().holds(key)
    }

    /// Counts further keys under the same attempt; keys that it already holds are not counted again.
    ///
    /// The decision speaks of the new keys; without any, and on a denied attempt, it is the attempt's own.
    /// A denial counts nothing and leaves the attempt as it was.
    ///
    /// # Errors
    /// As for [`Limiter::decide`].
    pub fn extend(&self, keys: &[Key], cost: u32, now: Timestamp) -> Result<Decision, Error> {
        let mut state = self.state.lock();
        check_key_count(keys.len())?;
        settlement::note_addresses(&mut state.keys, keys);
        let new: Vec<Key> = keys.iter().filter(|key| !state.holds(key)).cloned().collect();
        if new.is_empty() || !state.decision.allowed() {
            return Ok(state.decision.again());
        }
        let (decision, taken) = self.limiter.reserve(&new, cost, now)?;
        if decision.allowed() {
            state.keys.extend(new);
            state.taken.extend(taken);
        }
        Ok(decision)
    }

    /// Settles a success. True if this call settled the attempt; settling twice, or a denied attempt, does nothing.
    ///
    /// A rule that no key of the attempt is under is passed over.
    ///
    /// # Errors
    /// A rule is in more than one list, or a key of the attempt under a rule in `forgive` is an address. The attempt
    /// is not settled then.
    pub fn success(&self, settlement: &Settlement<'_>, now: Timestamp) -> Result<bool, Error> {
        let mut state = self.state.lock();
        if !state.is_open {
            return Ok(false);
        }
        settlement::check(settlement, &state.keys)?;
        let forgiven: Vec<&Key> = state.keys.iter().filter(|key| settlement.forgives(key)).collect();
        self.limiter.forget(&forgiven)?;
        let given_back = state.taken.iter().filter(|taken| settlement.give_back.contains(&taken.key.rule().name()));
        self.limiter.give_back(given_back, now);
        state.is_open = false;
        Ok(true)
    }

    /// Settles a failure: the guess was wrong, and everything stays counted whatever is called later. True if this call
    /// settled the attempt.
    pub fn failure(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_open)
    }

    /// Gives back everything, as if the attempt had never been made. True if this call settled the attempt.
    pub fn cancel(&self, now: Timestamp) -> bool {
        self.give_back(|_, _| true, now)
    }

    /// Gives back an attempt that ended in a failure of the application, such as a database that is down: everything but
    /// what was counted on an address alone. So a request that makes the application fail is not free for its address.
    /// True if this call settled the attempt.
    pub fn release(&self, now: Timestamp) -> bool {
        self.give_back(|held, key| !settlement::is_address(held, key), now)
    }

    /// Settles the attempt by giving back what was taken from some keys, chosen by the keys held and the key.
    pub(crate) fn give_back(&self, is_returned: impl Fn(&[Key], &Key) -> bool, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        if state.is_open {
            let returned = state.taken.iter().filter(|taken| is_returned(&state.keys, &taken.key));
            self.limiter.give_back(returned, now);
        }
        std::mem::take(&mut state.is_open)
    }
}

impl State {
    fn holds(&self, key: &Key) -> bool {
        self.keys.iter().any(|held| held.counts_as(key))
    }
}
