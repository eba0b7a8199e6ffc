//! Returns the answers of a store: calls run on the core's runtime, and their answers reach the loop in batches.
//!
//! Knows no limiter. There is one bridge per copy of the package, which its first store opens. A completion that is
//! pushed to an empty queue wakes the loop, and one wake takes the whole queue: a `napi` async function would wake it
//! once per call, at twice the loop's time. Invariants: a thread of the runtime only ever wakes the engine, under the
//! lock that the end of the environment takes first; every pending call completes once, even if its task panics or is
//! dropped; the loop is referenced exactly while calls are pending, so that an idle store keeps no process alive and no
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
use crate::slots::Slot;

/// Converts an answer to JavaScript, as the function that was called would have returned it.
pub(crate) type Convert<T> = fn(sys::napi_env, &Realm, T) -> Result;

/// Makes the answer of a call on the thread of the loop.
type Completion = Box<dyn FnOnce(sys::napi_env, &Realm) -> Result + Send>;

/// The side of the bridge that belongs to the thread of its environment.
#[derive(Default)]
pub(crate) struct Bridge {
    shared: Arc<Shared>,
    next_id: Cell<u32>,
    pending: Cell<usize>,
    /// The rest of the batch that was taken last, which JavaScript has not read yet.
    batch: RefCell<std::vec::IntoIter<(u32, Completion)>>,
}

/// The side that the threads of the runtime see.
#[derive(Default)]
struct Shared {
    /// Completions by the ids of their calls, until the loop takes them.
    queue: Mutex<Vec<(u32, Completion)>>,
    waker: Mutex<Option<Waker>>,
}

/// Wakes the loop.
struct Waker(sys::napi_threadsafe_function);

// SAFETY: a threadsafe function may be called from any thread while it exists, that is while `Shared::waker` has it.
unsafe impl Send for Waker {}

impl<S> Call<'_, S> {
    /// Returns an answer that is ready, or the id of the call that is pending for it.
    #[inline]
    pub(crate) fn answer<T: Send + 'static>(&self, answer: either::Answer<T>, convert: Convert<T>) -> Result {
        match answer {
            either::Answer::Now(answer) => convert(self.env, self.realm, answer),
            either::Answer::Later(future) => self.send(future, convert),
        }
    }

    /// Starts a call whose answer arrives later; returns its id.
    pub(crate) fn send<T: Send + 'static>(
        &self,
        future: Pin<Box<dyn Future<Output = T> + Send>>,
        convert: Convert<T>,
    ) -> Result {
        let bridge = &self.realm.bridge;
        let id = bridge.next_id.get();
        let made = js::number(self.env, f64::from(id))?;
        if bridge.pending.get() == 0 {
            bridge.reference(self.env, true)?;
        }
        bridge.next_id.set(id.wrapping_add(1));
        bridge.pending.set(bridge.pending.get() + 1);
        let pending = Pending { shared: Arc::clone(&bridge.shared), id, completion: None };
        runtime::spawn(async move {
            let answer = future.await;
            pending.complete(Box::new(move |env, realm| convert(env, realm, answer)));
        });
        Ok(made)
    }
}

/// `(function, resource)`: opens the bridge, which calls the function on the loop when answers have arrived. `resource`
/// represents it in `async_hooks`.
pub(crate) fn open(call: &Call<'_, ()>) -> Result {
    let shared = &call.realm.bridge.shared;
    let mut waker = shared.waker();
    if waker.is_some() {
        return Ok(UNDEFINED);
    }
    let name = js::string(call.env, "doorkeep")?;
    let mut made = ptr::null_mut();
    let share = Arc::into_raw(Arc::clone(shared));
    // SAFETY: only the finalizer, which runs when the environment ends, takes `share` back.
    let status = unsafe {
        sys::napi_create_threadsafe_function(
            call.env,
            call.arguments[0],
            call.arguments[1],
            name,
            0,
            1,
            share.cast_mut().cast(),
            Some(close),
            ptr::null_mut(),
            Some(on_wake),
            &mut made,
        )
    };
    check(status)?;
    // SAFETY: it was made in this environment, one line above.
    check(unsafe { sys::napi_unref_threadsafe_function(call.env, made) })?;
    *waker = Some(Waker(made));
    Ok(UNDEFINED)
}

/// `()` -> how many completions are in the batch; `next` returns them one by one.
pub(crate) fn take(call: &Call<'_, ()>) -> Result {
    let bridge = &call.realm.bridge;
    let mut completions = std::mem::take(&mut *lock(&bridge.shared.queue));
    let mut batch = bridge.batch.borrow_mut();
    // Something is left over only if JavaScript stopped in the middle of a batch.
    completions.splice(0..0, batch.by_ref());
    *batch = completions.into_iter();
    js::number(call.env, as_number(batch.len()))
}

/// `()` -> the next answer, as the function that was called would have returned it; the id of its call in the slots.
pub(crate) fn next(call: &Call<'_, ()>) -> Result {
    let bridge = &call.realm.bridge;
    let next = bridge.batch.borrow_mut().next();
    let Some((id, completion)) = next else { return Err(Failure::Internal("no answer has come")) };
    bridge.pending.set(bridge.pending.get().saturating_sub(1));
    if bridge.pending.get() == 0 {
        bridge.reference(call.env, false)?;
    }
    call.realm.slots.put(Slot::CallId, f64::from(id));
    completion(call.env, call.realm)
}

impl Bridge {
    /// References the loop, or releases it.
    fn reference(&self, env: sys::napi_env, is_referenced: bool) -> Result<()> {
        let waker = self.shared.waker();
        let Some(Waker(function)) = *waker else { return Err(Failure::Internal("the environment ends")) };
        // SAFETY: it exists while the lock is held, and this is its environment's thread.
        check(unsafe {
            if is_referenced {
                sys::napi_ref_threadsafe_function(env, function)
            } else {
                sys::napi_unref_threadsafe_function(env, function)
            }
        })
    }
}

impl Shared {
    fn push(&self, id: u32, completion: Completion) {
        let mut queue = lock(&self.queue);
        queue.push((id, completion));
        let is_first = queue.len() == 1;
        drop(queue);
        if !is_first {
            return;
        }
        if let Some(waker) = &*self.waker() {
            // A status other than ok means that the environment ends: then there is no code left to wait for an answer.
            // SAFETY: it exists while the lock is held.
            unsafe {
                sys::napi_call_threadsafe_function(
                    waker.0,
                    ptr::null_mut(),
                    sys::ThreadsafeFunctionCallMode::nonblocking,
                )
            };
        }
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        lock(&self.waker)
    }
}

/// A call without an answer yet. It completes when it is dropped, so that a task that panics or never runs answers too.
struct Pending {
    shared: Arc<Shared>,
    id: u32,
    completion: Option<Completion>,
}

impl Pending {
    fn complete(mut self, completion: Completion) {
        self.completion = Some(completion);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let dropped: fn() -> Completion =
            || Box::new(|_, _| Err(Failure::Internal("a call was lost, please report it")));
        self.shared.push(self.id, self.completion.take().unwrap_or_else(dropped));
    }
}

/// Runs on the loop after a wake: calls the function that `open` was given, which takes the batch.
unsafe extern "C" fn on_wake(env: sys::napi_env, function: sys::napi_value, _context: *mut c_void, _data: *mut c_void) {
    // Without an environment the engine only empties its queue.
    if env.is_null() || function.is_null() {
        return;
    }
    let (mut this, mut returned) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: both values belong to the scope that the engine opened for this call. What the function throws stays
    // pending for the engine, which reports it as uncaught.
    unsafe {
        if sys::napi_get_undefined(env, &mut this) == sys::Status::napi_ok {
            sys::napi_call_function(env, this, function, 0, ptr::null(), &mut returned);
        }
    }
}

/// Runs when the environment ends, before the threadsafe function is freed: no thread calls it after this.
unsafe extern "C" fn close(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: runs once, with the pointer that `open` made.
    let shared = unsafe { Arc::from_raw(data.cast::<Shared>()) };
    *shared.waker() = None;
}

/// No code here panics while it holds a lock. If it ever did, the queue would be as good as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
