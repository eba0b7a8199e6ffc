//! A runtime for hosts that have none: one worker thread, safe over a fork.
//!
//! Invariant: a forked child never touches its parent's runtime, whose threads do not exist in the child; it makes its
//! own at first use.

use std::future::Future;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::runtime::{Builder, Runtime};

static CURRENT: ArcSwapOption<(u32, Runtime)> = ArcSwapOption::const_empty();

/// Runs a future to its end on the worker of the runtime.
///
/// # Panics
/// The operating system cannot start a thread.
pub fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    current().1.spawn(future);
}

/// Runs a future to its end on the calling thread, which must not belong to a runtime.
///
/// # Panics
/// The operating system cannot start a thread, or the calling thread belongs to a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    current().1.block_on(future)
}

fn current() -> Arc<(u32, Runtime)> {
    let process = std::process::id();
    loop {
        match CURRENT.load_full() {
            Some(current) if current.0 == process => return current,
            old => {
                let runtime = Builder::new_multi_thread()
                    .worker_threads(1)
                    .thread_name("doorkeep")
                    .enable_all()
                    .build()
                    .expect("the operating system gives a thread");
                let previous = CURRENT.compare_and_swap(&old, Some(Arc::new((process, runtime))));
                // Dropping the parent's runtime would join threads that do not exist in this process.
                std::mem::forget(arc_swap::Guard::into_inner(previous));
                std::mem::forget(old);
            }
        }
    }
}
