//! The keys of a request, from what its rules are keyed by. All rules about them are in `doorkeep::host::keys`.

use doorkeep::Rule;
use doorkeep::host::keys::{Address, NO_ADDRESS, keys_for};

use crate::call::Call;
use crate::decision::as_number;
use crate::failure::{Failure, Result};
use crate::js::{self, UNDEFINED};
use crate::key;
use crate::slots::{KEYS, Slot};
use crate::text::with_text;
use crate::value::Given;

/// `(rule numbers, address, words, their values, first)` -> a warning when rules were left out. Writes the keys from
/// position `first` on into the slots, as many as fit, and the number of all keys.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let numbers = call.numbers(0)?;
    let rules: Vec<Rule> = numbers.iter().map(|&number| call.realm.rule(number)).collect::<Result<_>>()?;
    let address = call.given(1)?;
    let address = match &address {
        Given::Missing if js::is_undefined(call.env, call.arguments[1])? => Address::Unnamed,
        Given::Missing => Address::None,
        Given::Text(address) => Address::Text(address),
        // A value of another type is not an address, like the empty string.
        _ => Address::Text(""),
    };
    let text = |value| with_text(call.env, value, <[u8]>::to_vec);
    let values: Vec<Option<Vec<u8>>> = call.elements(3)?.into_iter().map(text).collect::<Result<_>>()?;
    let words = call.texts(2)?;
    let value = |wanted: &str| {
        let index = words.iter().position(|word| word == wanted)?;
        values.get(index)?.as_deref()
    };
    let made = keys_for(&rules, address, value)?;
    let first = call.count(4)? as usize;
    // The keys are in the order of the rules, some of which may be left out.
    let mut numbered = numbers.iter().zip(&rules);
    for (position, key) in made.keys.iter().enumerate() {
        let is_its_rule = |rule: &Rule| rule == key.rule() && rule.by() == key.rule().by();
        let number = numbered.find(|(_, rule)| is_its_rule(rule)).map(|(&number, _)| number);
        let number = number.ok_or(Failure::Internal("a key of another rule"))?;
        if (first..first + KEYS).contains(&position) {
            key::write(call.realm.slots, position - first, number, key);
        }
    }
    call.realm.slots.put(Slot::Keys, as_number(made.keys.len()));
    if made.leaves_out { js::string(call.env, NO_ADDRESS) } else { Ok(UNDEFINED) }
}
