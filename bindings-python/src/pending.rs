//! A call that was sent to a store and has no answer yet.
//!
//! Knows no Python object. Invariant: it completes once, with an answer or, when the call is dropped before its end,
//! without one. Either wakes the task that waits, so that no task waits forever.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doorkeep::host::runtime;

use crate::bridge::Notifier;

/// A call that the runtime completes.
pub(crate) struct Pending<T>(Mutex<State<T>>);

enum State<T> {
    Waiting(Option<Notifier>),
    Done(T),
    /// The call ended without an answer: a bug of ours, but not a reason to hang. Also an answer that was taken.
    Dropped,
}

/// A [`Pending`] whose answer may have any type.
pub(crate) trait AnyPending: Send + Sync {
    /// Registers what to notify on completion. Returns false if the call is complete; then it has been notified.
    fn notify_with(&self, notifier: Notifier) -> bool;
    fn is_done(&self) -> bool;
}

/// Runs a call to its end on the runtime, even if no task waits for it any more. The request is sent now.
pub(crate) fn start<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> Arc<Pending<T>> {
    let pending = Arc::new(Pending(Mutex::new(State::Waiting(None))));
    let guard = CompleteOnDrop(Arc::clone(&pending));
    runtime::spawn(async move {
        let answer = call.await;
        guard.0.complete(State::Done(answer));
    });
    pending
}

impl<T> Pending<T> {
    /// Takes the answer; none if there is none yet, or if it was taken before.
    pub(crate) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Dropped) {
            State::Done(answer) => Some(answer),
            other => {
                *state = other;
                None
            }
        }
    }

    fn complete(&self, completed: State<T>) {
        let mut state = self.lock();
        let State::Waiting(notifier) = &mut *state else { return };
        let notifier = notifier.take();
        *state = completed;
        drop(state);
        if let Some(notifier) = notifier {
            notifier.notify();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> AnyPending for Pending<T> {
    fn notify_with(&self, notifier: Notifier) -> bool {
        if let State::Waiting(waiting) = &mut *self.lock() {
            *waiting = Some(notifier);
            return true;
        }
        notifier.notify();
        false
    }

    fn is_done(&self) -> bool {
        !matches!(*self.lock(), State::Waiting(_))
    }
}

/// Completes a call without an answer when its task is dropped or panics.
struct CompleteOnDrop<T>(Arc<Pending<T>>);

impl<T> Drop for CompleteOnDrop<T> {
    fn drop(&mut self) {
        self.0.complete(State::Dropped);
    }
}
