//! `RedisStore`: where several processes share one budget. Connects to nothing here; the core does at first use.

use std::ptr;

use doorkeep::OnError;
use doorkeep::host::input;
use doorkeep::redis::{Event, RedisStore, StoreOptions};
use napi::sys;

use crate::call::Call;
use crate::external::handle;
use crate::failure::Result;
use crate::js::{self, UNDEFINED, check};
use crate::value::UNIT;

/// `(url, prefix, timeout, onError, clock)` -> a store.
pub(crate) fn create(call: &Call<'_, ()>) -> Result {
    let options = StoreOptions {
        prefix: input::store_prefix(call.given(1)?.value())?,
        timeout: input::store_timeout(call.given(2)?.value(), UNIT)?,
        on_error: input::on_error(call.given(3)?.value())?.unwrap_or_default(),
        clock: input::store_clock(call.given(4)?.value())?,
    };
    handle(call.env, RedisStore::new(call.given(0)?.name().unwrap_or_default(), options)?)
}

/// `(store)`: drops its connection.
pub(crate) fn close(call: &Call<'_, ()>) -> Result {
    call.behind::<RedisStore>(0)?.close();
    Ok(UNDEFINED)
}

/// `(store)` -> the events since the last call, an array of objects; `undefined` when there are none.
pub(crate) fn events(call: &Call<'_, ()>) -> Result {
    let store: &RedisStore = call.behind(0)?;
    if !store.has_events() {
        return Ok(UNDEFINED);
    }
    let mut made = ptr::null_mut();
    // SAFETY: `made` has room for one value.
    check(unsafe { sys::napi_create_array(call.env, &mut made) })?;
    for (index, event) in (0..).zip(store.take_events().iter().filter_map(described)) {
        let object = js::object(call.env)?;
        for (name, text) in event {
            js::set(call.env, object, name, js::string(call.env, text)?)?;
        }
        // SAFETY: both values belong to the running call.
        check(unsafe { sys::napi_set_element(call.env, made, index, object) })?;
    }
    Ok(made)
}

type Described<'a> = Vec<(&'static std::ffi::CStr, &'a str)>;

/// Returns the members of an event as `../lib/store.ts` names them; none for an unknown kind.
fn described(event: &Event) -> Option<Described<'_>> {
    Some(match event {
        Event::StoreDown { place, why } => vec![(c"type", "store_down"), (c"place", place), (c"why", why)],
        Event::StoreUp { place } => vec![(c"type", "store_up"), (c"place", place)],
        Event::StoreRefused { place, why } => vec![(c"type", "store_refused"), (c"place", place), (c"why", why)],
        Event::StoreEvicts { policy } => vec![(c"type", "store_evicts"), (c"policy", policy)],
        Event::CorruptState { rule } => vec![(c"type", "corrupt_state"), (c"rule", rule)],
        _ => return None,
    })
}

/// Where a limiter keeps its counts, and what it does when the store cannot be reached.
pub(crate) struct Storage<'a> {
    pub(crate) store: Option<&'a RedisStore>,
    pub(crate) on_error: Option<OnError>,
}

impl<T> Call<'_, T> {
    /// Reads the pair `[store, onError]` at `index`; no store means the memory of this process.
    pub(crate) fn storage(&self, index: usize) -> Result<Storage<'_>> {
        let on_error = input::on_error(self.member(index, 1)?.value())?;
        let store = match self.elements(index)?.first() {
            Some(&value) if !js::is_undefined(self.env, value)? => Some(self.behind_value(value)?),
            _ => None,
        };
        Ok(Storage { store, on_error })
    }
}
