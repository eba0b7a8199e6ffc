//! Local state for the time in which the store does not answer.
//!
//! Invariants: what was counted here is void once the server is back, so one outage cannot deny in the
//! next; and a forked child never touches its parent's state, whose locks may be held by threads that
//! do not exist there.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

pub(crate) struct Fallback<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
    current: ArcSwapOption<Stay<T>>,
}

/// The state of one process for one outage.
struct Stay<T> {
    process: u32,
    /// After which return of the server it was made.
    made_after: u64,
    state: Arc<T>,
}

impl<T> Fallback<T> {
    pub(crate) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), current: ArcSwapOption::empty() }
    }

    /// The state of the present outage.
    pub(crate) fn get(&self, returns: u64) -> Arc<T> {
        loop {
            let current = self.current.load_full();
            if let Some(stay) = current.as_deref().filter(|stay| stay.is_current(returns)) {
                return Arc::clone(&stay.state);
            }
            let made = Stay { process: std::process::id(), made_after: returns, state: Arc::new((self.make)()) };
            // Of several that make one at once, the first one's stands.
            leave(self.current.compare_and_swap(&current, Some(Arc::new(made))).clone());
        }
    }

    /// The state, if there is one that is not void.
    pub(crate) fn existing(&self, returns: u64) -> Option<Arc<T>> {
        let current = self.current.load_full()?;
        if current.is_current(returns) {
            return Some(Arc::clone(&current.state));
        }
        let current = Some(current);
        leave(self.current.compare_and_swap(&current, None).clone());
        None
    }
}

impl<T> Stay<T> {
    fn is_current(&self, returns: u64) -> bool {
        self.process == std::process::id() && self.made_after == returns
    }
}

/// Drops what was replaced, unless it is the parent's.
fn leave<T>(replaced: Option<Arc<Stay<T>>>) {
    if replaced.as_ref().is_some_and(|stay| stay.process != std::process::id()) {
        std::mem::forget(replaced);
    }
}
