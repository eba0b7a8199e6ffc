//! Local state for the time in which the store does not answer.
//!
//! Invariant: what was counted here is void once the server is back, so one outage cannot deny in the next.

use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) struct Fallback<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    /// The state, and the return of the server after which it was made.
    current: Mutex<Option<(u64, Arc<T>)>>,
}

impl<T> Fallback<T> {
    pub(crate) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), current: Mutex::new(None) }
    }

    /// The state of the present outage.
    pub(crate) fn get(&self, returns: u64) -> Arc<T> {
        let mut current = self.current.lock();
        match &*current {
            Some((made_after, state)) if *made_after == returns => Arc::clone(state),
            _ => {
                let state = Arc::new((self.make)());
                *current = Some((returns, Arc::clone(&state)));
                state
            }
        }
    }

    /// The state, if there is one that is not void.
    pub(crate) fn existing(&self, returns: u64) -> Option<Arc<T>> {
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|(made_after, _)| *made_after != returns) {
            *current = None;
        }
        current.as_ref().map(|(_, state)| Arc::clone(state))
    }
}
