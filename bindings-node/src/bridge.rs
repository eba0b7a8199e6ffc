//! The way back from a store: calls run on the core's runtime, and their answers return to the loop in batches.
//!
//! Knows no limiter. One bridge per copy of the package, which its first store opens. An answer that comes to an empty
//! list wakes the loop, and one wake takes the whole list: a `napi` async function would wake it once per call, at twice
//! the loop's time. Invariants: a thread of the runtime does nothing with the engine but wake it, under the lock that
//! the end of the environment takes first; every call that was sent is answered once, also when its task panics or is
//! dropped; the loop is referenced exactly while calls are unanswered, so that an idle store ends no process late and no
//! process ends under a pending login.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::pin::Pin;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doorkeep::host::either;
use doorkeep::host::runtime;
use napi::sys;

use crate::call::Call;
use crate::decision::as_number;
use crate::failure::{Failure, Result};
use crate::js::{self, UNDEFINED, check};
use crate::realm::Realm;
use crate::slots::Place;

/// Gives an answer to JavaScript, as the function would have that asked for it.
pub(crate) type Give<T> = fn(sys::napi_env, &Realm, T) -> Result;

type Letter = Box<dyn FnOnce(sys::napi_env, &Realm) -> Result + Send>;

/// The side of the bridge that belongs to the thread of its environment.
#[derive(Default)]
pub(crate) struct Bridge {
    mail: Arc<Mail>,
    tickets: Cell<u32>,
    unanswered: Cell<usize>,
    /// Of the list that was taken last, what JavaScript has not read.
    taken: RefCell<std::vec::IntoIter<(u32, Letter)>>,
}

/// The side that the runtime's threads see.
#[derive(Default)]
struct Mail {
    letters: Mutex<Vec<(u32, Letter)>>,
    bell: Mutex<Option<Bell>>,
}

struct Bell(sys::napi_threadsafe_function);

// SAFETY: a threadsafe function may be called from any thread for as long as it exists, which `Mail::bell` says.
unsafe impl Send for Bell {}

impl<S> Call<'_, S> {
    /// Gives an answer now, or the ticket under which it will be given.
    #[inline]
    pub(crate) fn answer<T: Send + 'static>(&self, answer: either::Answer<T>, give: Give<T>) -> Result {
        match answer {
            either::Answer::Now(answer) => give(self.env, self.realm, answer),
            either::Answer::Later(future) => self.send(future, give),
        }
    }

    /// Sends a call whose answer comes later; answers its ticket.
    pub(crate) fn send<T: Send + 'static>(
        &self,
        future: Pin<Box<dyn Future<Output = T> + Send>>,
        give: Give<T>,
    ) -> Result {
        let bridge = &self.realm.bridge;
        let ticket = bridge.tickets.get();
        let made = js::number(self.env, f64::from(ticket))?;
        if bridge.unanswered.get() == 0 {
            bridge.hold(self.env, true)?;
        }
        bridge.tickets.set(ticket.wrapping_add(1));
        bridge.unanswered.set(bridge.unanswered.get() + 1);
        let envelope = Envelope { mail: Arc::clone(&bridge.mail), ticket, letter: None };
        runtime::spawn(async move {
            let answer = future.await;
            envelope.enclose(Box::new(move |env, realm| give(env, realm, answer)));
        });
        Ok(made)
    }
}

/// `(function, resource)`: opens the bridge, which calls the function on the loop whenever answers have come. The
/// resource stands for it in `async_hooks`.
pub(crate) fn open(call: &Call<'_, ()>) -> Result {
    let mail = &call.realm.bridge.mail;
    let mut bell = mail.bell();
    if bell.is_some() {
        return Ok(UNDEFINED);
    }
    let name = js::string(call.env, "doorkeep")?;
    let mut made = ptr::null_mut();
    let shared = Arc::into_raw(Arc::clone(mail));
    // SAFETY: `shared` is given back by the finalizer alone, which runs when the environment ends.
    let status = unsafe {
        sys::napi_create_threadsafe_function(
            call.env,
            call.arguments[0],
            call.arguments[1],
            name,
            0,
            1,
            shared.cast_mut().cast(),
            Some(close),
            ptr::null_mut(),
            Some(ring),
            &mut made,
        )
    };
    check(status)?;
    // SAFETY: it was made in this environment a line ago.
    check(unsafe { sys::napi_unref_threadsafe_function(call.env, made) })?;
    *bell = Some(Bell(made));
    Ok(UNDEFINED)
}

/// `()`: how many answers have come; `next` gives them.
pub(crate) fn take(call: &Call<'_, ()>) -> Result {
    let bridge = &call.realm.bridge;
    let mut letters = std::mem::take(&mut *lock(&bridge.mail.letters));
    let mut taken = bridge.taken.borrow_mut();
    // None is left unless JavaScript broke off in the middle of a list.
    letters.splice(0..0, taken.by_ref());
    *taken = letters.into_iter();
    js::number(call.env, as_number(taken.len()))
}

/// `()`: the next answer, as the function would have given it that asked, and its ticket in the slots.
pub(crate) fn next(call: &Call<'_, ()>) -> Result {
    let bridge = &call.realm.bridge;
    let next = bridge.taken.borrow_mut().next();
    let Some((ticket, letter)) = next else { return Err(Failure::Internal("no answer has come")) };
    bridge.unanswered.set(bridge.unanswered.get().saturating_sub(1));
    if bridge.unanswered.get() == 0 {
        bridge.hold(call.env, false)?;
    }
    call.realm.slots.put(Place::Ticket, f64::from(ticket));
    letter(call.env, call.realm)
}

impl Bridge {
    /// References the loop, or lets it go.
    fn hold(&self, env: sys::napi_env, holds: bool) -> Result<()> {
        let bell = self.mail.bell();
        let Some(Bell(bell)) = *bell else { return Err(Failure::Internal("the environment ends")) };
        // SAFETY: it exists while the lock is held, and this is its environment's thread.
        check(unsafe {
            if holds {
                sys::napi_ref_threadsafe_function(env, bell)
            } else {
                sys::napi_unref_threadsafe_function(env, bell)
            }
        })
    }
}

impl Mail {
    fn post(&self, ticket: u32, letter: Letter) {
        let mut letters = lock(&self.letters);
        letters.push((ticket, letter));
        let is_first = letters.len() == 1;
        drop(letters);
        if !is_first {
            return;
        }
        if let Some(bell) = &*self.bell() {
            // A status other than ok says that the environment ends: nobody waits for an answer then.
            // SAFETY: it exists while the lock is held.
            unsafe {
                sys::napi_call_threadsafe_function(
                    bell.0,
                    ptr::null_mut(),
                    sys::ThreadsafeFunctionCallMode::nonblocking,
                )
            };
        }
    }

    fn bell(&self) -> MutexGuard<'_, Option<Bell>> {
        lock(&self.bell)
    }
}

/// What is owed for one call. Posted when it is dropped, so that a task which panics, or is never run, answers too.
struct Envelope {
    mail: Arc<Mail>,
    ticket: u32,
    letter: Option<Letter>,
}

impl Envelope {
    fn enclose(mut self, letter: Letter) {
        self.letter = Some(letter);
    }
}

impl Drop for Envelope {
    fn drop(&mut self) {
        let lost: fn() -> Letter = || Box::new(|_, _| Err(Failure::Internal("a call was lost, please report it")));
        self.mail.post(self.ticket, self.letter.take().unwrap_or_else(lost));
    }
}

/// Runs on the loop after a wake: the function that `open` was given takes the list.
unsafe extern "C" fn ring(env: sys::napi_env, function: sys::napi_value, _context: *mut c_void, _data: *mut c_void) {
    // Without an environment the engine only empties its queue.
    if env.is_null() || function.is_null() {
        return;
    }
    let (mut this, mut answer) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: both values belong to the scope that the engine opened for this call. What the function throws stays
    // pending for the engine, which reports it as uncaught.
    unsafe {
        if sys::napi_get_undefined(env, &mut this) == sys::Status::napi_ok {
            sys::napi_call_function(env, this, function, 0, ptr::null(), &mut answer);
        }
    }
}

/// Runs when the environment ends, before the threadsafe function is freed: no thread calls it after this.
unsafe extern "C" fn close(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: runs once, for the pointer that `open` gave away.
    let mail = unsafe { Arc::from_raw(data.cast::<Mail>()) };
    *mail.bell() = None;
}

/// No code here panics while it holds a lock; should it ever, the list is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
