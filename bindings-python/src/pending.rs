//! An answer on its way from the runtime's thread to Python.
//!
//! Knows no Python object. Invariant: it is told once, or lost, and either wakes whoever waits; so nobody waits for ever.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doorkeep::host::runtime;

use crate::bridge::Wake;

/// A slot that the runtime fills.
pub(crate) struct Slot<T>(Mutex<State<T>>);

enum State<T> {
    Waiting(Option<Wake>),
    Told(T),
    /// The call ended without an answer: a bug of ours, but no reason to hang.
    Lost,
}

/// A slot, whatever it is filled with.
pub(crate) trait Pending: Send + Sync {
    /// Asks to be woken when the slot is filled; false if it is already, and the waking done with.
    fn wake_with(&self, wake: Wake) -> bool;
    fn is_told(&self) -> bool;
}

/// Runs a call to its end on the runtime, whoever goes on waiting for it. The request is sent now.
pub(crate) fn start<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> Arc<Slot<T>> {
    let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
    let teller = Teller(Arc::clone(&slot));
    runtime::spawn(async move {
        let answer = call.await;
        teller.0.fill(State::Told(answer));
    });
    slot
}

impl<T> Slot<T> {
    /// The answer, if it was told and not taken.
    pub(crate) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Lost) {
            State::Told(answer) => Some(answer),
            other => {
                *state = other;
                None
            }
        }
    }

    fn fill(&self, filled: State<T>) {
        let mut state = self.lock();
        let State::Waiting(wake) = &mut *state else { return };
        let wake = wake.take();
        *state = filled;
        drop(state);
        if let Some(wake) = wake {
            wake.up();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Pending for Slot<T> {
    fn wake_with(&self, wake: Wake) -> bool {
        if let State::Waiting(waiting) = &mut *self.lock() {
            *waiting = Some(wake);
            return true;
        }
        wake.up();
        false
    }

    fn is_told(&self) -> bool {
        !matches!(*self.lock(), State::Waiting(_))
    }
}

/// Loses the answer when the call is dropped before its end.
struct Teller<T>(Arc<Slot<T>>);

impl<T> Drop for Teller<T> {
    fn drop(&mut self) {
        self.0.fill(State::Lost);
    }
}
