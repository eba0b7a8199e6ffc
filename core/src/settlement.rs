//! How an attempt is settled: what a success forgives and gives back, and what may not be forgiven unasked.
//!
//! Pure: knows keys and no state, so it is the same in memory and over a store.

use crate::error::{Error, shown};
use crate::key::Key;

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

/// A key that is held already may come again as an address: it then counts as one.
pub(crate) fn note_addresses(held: &mut [Key], keys: &[Key]) {
    for address in keys.iter().filter(|key| key.is_address()) {
        held.iter_mut().filter(|held| held.counts_as(address)).for_each(|held| held.clone_from(address));
    }
}

/// Whether a key counts as an address; the keys held know it best, see [`note_addresses`].
pub(crate) fn is_address(held: &[Key], key: &Key) -> bool {
    held.iter().any(|held| held.counts_as(key) && held.is_address())
}

/// Refuses rules in several lists, and addresses in `forgive`.
pub(crate) fn check(settlement: &Settlement<'_>, keys: &[Key]) -> Result<(), Error> {
    let lists = [settlement.forgive, settlement.give_back, settlement.forgive_address];
    for (list, rule) in lists.iter().enumerate().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule))) {
        if lists.iter().enumerate().any(|(other, rules)| other != list && rules.contains(rule)) {
            let rule = shown(rule);
            return Err(Error::config(format!(
                "a rule stands in more than one of forgive, give back and forgive address, rule=`{rule}`"
            )));
        }
        if list == 0 && keys.iter().any(|key| key.rule().name() == *rule && key.is_address()) {
            return Err(Error::config(format!(
                "the rule is keyed by an address, name it under forgive address to forgive it, rule=`{rule}`"
            )));
        }
    }
    Ok(())
}
