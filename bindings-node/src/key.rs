//! Keys: hashed here when they are made. The number of the rule and the digest cross, the value never returns.

use doorkeep::host::input;
use doorkeep::{Digest, Key};

use crate::call::Call;
use crate::failure::Result;
use crate::js::{self, UNDEFINED};
use crate::realm::Realm;
use crate::slots::{KEY_WORDS, KEYS, Slot, Slots};
use crate::text::with_text;

const ADDRESS: u32 = 1;

/// `(rule number, string)`: writes the key of one part into the slots.
pub(crate) fn one_part(call: &Call<'_, ()>) -> Result {
    let number = call.count(0)?;
    let rule = call.realm.rule(number)?;
    let key = call.text(1, |part| rule.key(&[part]))?.ok_or_else(|| input::part_not_text(1))??;
    write(call.realm.slots, 0, number, &key);
    Ok(UNDEFINED)
}

/// `(rule number, array)`: writes the key of any number of parts into the slots.
pub(crate) fn parts(call: &Call<'_, ()>) -> Result {
    let number = call.count(0)?;
    let rule = call.realm.rule(number)?;
    let mut parts = Vec::new();
    for (position, value) in call.elements(1)?.into_iter().enumerate() {
        let part = with_text(call.env, value, <[u8]>::to_vec)?;
        parts.push(part.ok_or_else(|| input::part_not_text(position + 1))?);
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    write(call.realm.slots, 0, number, &rule.key(&parts)?);
    Ok(UNDEFINED)
}

/// `(rule number, address)`: writes the key of an address into the slots.
pub(crate) fn address(call: &Call<'_, ()>) -> Result {
    let number = call.count(0)?;
    let key = call.realm.rule(number)?.ip_key(&address_text(call, 1)?)?;
    write(call.realm.slots, 0, number, &key);
    Ok(UNDEFINED)
}

/// `(address, ipv6 prefix)` -> the canonical text of the network of the address.
pub(crate) fn network(call: &Call<'_, ()>) -> Result {
    let prefix = input::ipv6_prefix(call.given(1)?.value())?;
    js::string(call.env, &doorkeep::network(&address_text(call, 0)?, prefix)?)
}

/// Reads an address, which is ASCII. Any other value reads as a string that is not an address.
fn address_text<T>(call: &Call<'_, T>, index: usize) -> Result<String> {
    let text = call.text(index, |bytes| String::from_utf8_lossy(bytes).into_owned())?;
    Ok(text.unwrap_or_default())
}

/// Passes the keys of this call, which TypeScript wrote into the slots, to `take`.
#[inline]
pub(crate) fn read<R>(realm: &Realm, take: impl FnOnce(&[Key]) -> Result<R>) -> Result<R> {
    // Saturates; TypeScript writes no fraction.
    let count = realm.slots.get(Slot::Keys) as usize;
    if count == 1 {
        // The usual call needs no list.
        return take(std::slice::from_ref(&at(realm, 0)?));
    }
    if count <= KEYS {
        return take(&(0..count).map(|index| at(realm, index)).collect::<Result<Vec<Key>>>()?);
    }
    // More keys than the slots hold are more than a call accepts: the core refuses them, whichever they are.
    take(&vec![at(realm, 0)?; count])
}

#[inline]
fn at(realm: &Realm, index: usize) -> Result<Key> {
    let [rule, first, second, third, fourth, flags] = realm.slots.key(index);
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip([first, second, third, fourth]) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    Ok(Key::from_digest(realm.rule(rule)?, Digest::from_bytes(digest), flags & ADDRESS != 0))
}

/// Writes a key at a position below `KEYS`.
pub(crate) fn write(slots: Slots, index: usize, rule: u32, key: &Key) {
    let digest = key.digest();
    let mut words = [0; KEY_WORDS];
    words[0] = rule;
    for (word, bytes) in words[1..].iter_mut().zip(digest.as_bytes().chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    words[KEY_WORDS - 1] = if key.is_address() { ADDRESS } else { 0 };
    slots.put_key(index, words);
}
