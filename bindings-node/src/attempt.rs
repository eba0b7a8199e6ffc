//! `Attempt`: what one call of a limiter counted, to be settled once.

use doorkeep::{Attempt, Settlement};

use crate::call::{Answer, Call, UNDEFINED};
use crate::decision::write;
use crate::external::handle;
use crate::key;
use crate::slots::Place;

/// Gives an attempt to JavaScript.
pub(crate) fn give<T>(call: &Call<'_, T>, attempt: Attempt) -> Answer {
    handle(call.env, attempt)
}

/// `(attempt, forgive, giveBack, forgiveAddress, now)`: whether it was settled, into the slots.
pub(crate) fn success(call: &Call<'_, ()>) -> Answer {
    let attempt: &Attempt = call.behind(0)?;
    let [forgive, give_back, forgive_address] = [call.texts(1)?, call.texts(2)?, call.texts(3)?];
    let settled = attempt.success(
        &Settlement {
            forgive: &names(&forgive),
            give_back: &names(&give_back),
            forgive_address: &names(&forgive_address),
        },
        call.now(4)?,
    )?;
    call.realm.slots.put(Place::Outcome, f64::from(u8::from(settled)));
    Ok(UNDEFINED)
}

/// `(attempt, now)`: whether it was settled, into the slots.
pub(crate) fn cancel(call: &Call<'_, ()>) -> Answer {
    let attempt: &Attempt = call.behind(0)?;
    let settled = attempt.cancel(call.now(1)?);
    call.realm.slots.put(Place::Outcome, f64::from(u8::from(settled)));
    Ok(UNDEFINED)
}

/// `(cost, now, attempt)`, the keys in the slots: the decision, into the slots.
pub(crate) fn extend(call: &Call<'_, ()>) -> Answer {
    let (cost, now) = (call.cost(0)?, call.now(1)?);
    let attempt: &Attempt = call.behind(2)?;
    key::read(call.realm, |keys| {
        let decision = attempt.extend(keys, cost, now)?;
        write(call.realm, &decision, keys);
        Ok(UNDEFINED)
    })
}

fn names(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
