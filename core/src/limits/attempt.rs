//! One attempt on several keys: reserved before the credential is checked, settled after.

use parking_lot::Mutex;

use crate::decision::Decision;
use crate::engine::{self, Taken};
use crate::error::{Error, shown};
use crate::key::Key;
use crate::limits::Limiter;
use crate::time::Timestamp;

/// What a success does to the keys of an attempt, by rule name. Whatever is not named stays counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settlement<'a> {
    /// The keys of these rules are forgotten.
    pub forgive: &'a [&'a str],
    /// This attempt's own charge is given back on these rules; it lifts a lockout that it engaged.
    pub give_back: &'a [&'a str],
    /// Like `forgive`, for rules keyed by an address. An attacker with one valid account would wipe the
    /// limit on the address that they attack from, so it has to be asked for by this name.
    pub forgive_address: &'a [&'a str],
}

impl Settlement<'_> {
    pub(crate) fn forgives(&self, key: &Key) -> bool {
        let rule = key.rule().name();
        self.forgive.contains(&rule) || self.forgive_address.contains(&rule)
    }
}

/// An attempt that was counted on all of its keys, or denied. Settled once; doing nothing leaves it counted.
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
    /// As for [`Limiter::allow`].
    pub fn extend(&self, keys: &[Key], cost: u32, now: Timestamp) -> Result<Decision, Error> {
        let mut state = self.state.lock();
        engine::check_count(keys)?;
        note_addresses(&mut state.keys, keys);
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
    /// # Errors
    /// A rule is not held by the attempt, stands in more than one list, or is keyed by an address and
    /// stands in `forgive`. The attempt is not settled then.
    pub fn success(&self, settlement: &Settlement<'_>, now: Timestamp) -> Result<bool, Error> {
        let mut state = self.state.lock();
        if !state.is_open {
            return Ok(false);
        }
        check_settlement(settlement, &state.keys)?;
        let forgiven: Vec<&Key> = state.keys.iter().filter(|key| settlement.forgives(key)).collect();
        self.limiter.forget(&forgiven)?;
        let given_back = state.taken.iter().filter(|taken| settlement.give_back.contains(&taken.key.rule().name()));
        self.limiter.give_back(given_back, now);
        state.is_open = false;
        Ok(true)
    }

    /// Gives back everything, as if the attempt had never been made. True if this call settled the attempt.
    pub fn cancel(&self, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        if state.is_open {
            self.limiter.give_back(state.taken.iter(), now);
        }
        std::mem::take(&mut state.is_open)
    }
}

#[cfg(feature = "redis")]
impl Attempt {
    /// Gives back what was taken from some keys, as a part of settling an attempt that spans an outage.
    pub(crate) fn give_back(&self, is_returned: impl Fn(&Key) -> bool, now: Timestamp) {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.is_open) {
            self.limiter.give_back(state.taken.iter().filter(|taken| is_returned(&taken.key)), now);
        }
    }
}

impl State {
    fn holds(&self, key: &Key) -> bool {
        self.keys.iter().any(|held| held.counts_as(key))
    }
}

/// A key that is held already may come again as an address: it then counts as one.
pub(crate) fn note_addresses(held: &mut [Key], keys: &[Key]) {
    for address in keys.iter().filter(|key| key.is_address()) {
        held.iter_mut().filter(|held| held.counts_as(address)).for_each(|held| held.clone_from(address));
    }
}

/// Refuses rules that the attempt does not hold or that cannot be treated so.
pub(crate) fn check_settlement(settlement: &Settlement<'_>, keys: &[Key]) -> Result<(), Error> {
    let lists = [settlement.forgive, settlement.give_back, settlement.forgive_address];
    for (list, rule) in lists.iter().enumerate().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule))) {
        let mut of_rule = keys.iter().filter(|key| key.rule().name() == *rule).peekable();
        if of_rule.peek().is_none() {
            return Err(Error::config(format!("the attempt holds no such rule, rule=`{}`", shown(rule))));
        }
        if lists.iter().enumerate().any(|(other, rules)| other != list && rules.contains(rule)) {
            return Err(Error::config(format!(
                "a rule stands in more than one of forgive, give back and forgive address, rule=`{rule}`"
            )));
        }
        if list == 0 && of_rule.any(Key::is_address) {
            return Err(Error::config(format!(
                "the rule is keyed by an address, name it under forgive address to forgive it, rule=`{rule}`"
            )));
        }
    }
    Ok(())
}
