//! One attempt on several keys: reserved before the credential is checked, settled after.

use parking_lot::Mutex;

use crate::decision::Decision;
use crate::engine::{self, Taken};
use crate::error::Error;
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
    taken: Vec<Taken>,
    is_open: bool,
}

impl Attempt {
    pub(crate) fn new(limiter: Limiter, decision: Decision, taken: Vec<Taken>) -> Self {
        let is_open = decision.allowed();
        Self { limiter, state: Mutex::new(State { decision, taken, is_open }) }
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

    /// Whether this attempt is counted on a key.
    #[must_use]
    pub fn holds(&self, key: &Key) -> bool {
        self.state.lock().taken.iter().any(|taken| taken.key.counts_as(key))
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
        let is_new = |key: &&Key| !state.taken.iter().any(|taken| taken.key.counts_as(key));
        let new: Vec<Key> = keys.iter().filter(is_new).cloned().collect();
        if new.is_empty() || !state.decision.allowed() {
            return Ok(state.decision.clone());
        }
        let (decision, taken) = self.limiter.reserve(&new, cost, now)?;
        state.taken.extend(taken);
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
        check(settlement, &state.taken)?;
        let of = |rules: &'_ [&'_ str], taken: &&Taken| rules.contains(&taken.key.rule().name());
        let forgiven = |taken: &&Taken| of(settlement.forgive, taken) || of(settlement.forgive_address, taken);
        let mut keys: Vec<&Key> = state.taken.iter().filter(forgiven).map(|taken| &taken.key).collect();
        // The rates of one key stand in a row.
        keys.dedup_by(|a, b| a.counts_as(b));
        self.limiter.forget(&keys)?;
        self.limiter.give_back(state.taken.iter().filter(|taken| of(settlement.give_back, taken)), now);
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

fn check(settlement: &Settlement<'_>, taken: &[Taken]) -> Result<(), Error> {
    let lists = [settlement.forgive, settlement.give_back, settlement.forgive_address];
    for (list, rule) in lists.iter().enumerate().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule))) {
        if !taken.iter().any(|taken| taken.key.rule().name() == *rule) {
            let shown: String = rule.chars().take(64).collect();
            return Err(Error::config(format!("the attempt holds no such rule, rule=`{shown}`")));
        }
        if lists.iter().enumerate().any(|(other, rules)| other != list && rules.contains(rule)) {
            return Err(Error::config(format!(
                "a rule stands in more than one of forgive, give_back and forgive_address, rule=`{rule}`"
            )));
        }
        let by_address = |taken: &Taken| taken.key.rule().name() == *rule && taken.key.is_address();
        if list == 0 && taken.iter().any(by_address) {
            return Err(Error::config(format!(
                "the rule is keyed by an address, name it in forgive_address to forgive it, rule=`{rule}`"
            )));
        }
    }
    Ok(())
}
