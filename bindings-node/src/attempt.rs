//! `Attempt`: what one call of a limiter counted, to be settled once.

use doorkeep::Settlement;
use doorkeep::host::either::{self, Attempt};

use crate::call::Call;
use crate::decision::{put_flag, write, write_later};
use crate::failure::Result;
use crate::key;

/// `(attempt, forgive, giveBack, forgiveAddress, now)`: writes whether it was settled into the slots.
pub(crate) fn success(call: &Call<'_, ()>) -> Result {
    let attempt: &Attempt = call.behind(0)?;
    let [forgive, give_back, forgive_address] = [call.texts(1)?, call.texts(2)?, call.texts(3)?];
    let settled = attempt.success(
        &Settlement {
            forgive: &names(&forgive),
            give_back: &names(&give_back),
            forgive_address: &names(&forgive_address),
        },
        call.now(4)?,
    );
    call.answer(settled, |_, realm, settled| put_flag(realm, settled?))
}

/// `(attempt, now)`: writes whether it was settled into the slots.
pub(crate) fn cancel(call: &Call<'_, ()>) -> Result {
    let attempt: &Attempt = call.behind(0)?;
    call.answer(attempt.cancel(call.now(1)?), |_, realm, settled| put_flag(realm, settled))
}

/// `(attempt)`: writes whether it was settled into the slots. Calls no store.
pub(crate) fn failure(call: &Call<'_, ()>) -> Result {
    let attempt: &Attempt = call.behind(0)?;
    put_flag(call.realm, attempt.failure())
}

/// `(attempt, now)`: writes whether it was settled into the slots.
pub(crate) fn release(call: &Call<'_, ()>) -> Result {
    let attempt: &Attempt = call.behind(0)?;
    call.answer(attempt.release(call.now(1)?), |_, realm, settled| put_flag(realm, settled))
}

/// `(cost, now, attempt)`, the keys in the slots: writes the decision into the slots.
pub(crate) fn extend(call: &Call<'_, ()>) -> Result {
    let (cost, now) = (call.cost(0)?, call.now(1)?);
    let attempt: &Attempt = call.behind(2)?;
    key::read(call.realm, |keys| match attempt.extend(keys, cost, now) {
        either::Answer::Now(decision) => write(call.realm, &decision?, keys),
        either::Answer::Later(decision) => call.send(decision, write_later),
    })
}

fn names(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
