//! Hands completions from the runtime's thread to event loops, in batches with one wake-up each.
//!
//! A completion goes into the queue of its loop. The first completion in an empty queue wakes the loop, which then
//! drains the whole queue. Invariants: the runtime's thread runs no Python and never waits for the GIL. Only its loop
//! keeps a bridge alive, and a bridge keeps a loop alive only through the tasks that wait, so both are freed together.
//! No bridge is used after a fork.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::waker::Waker;

/// The ids of completed calls that the loop has not seen yet.
#[derive(Default)]
struct Queue {
    completed: Mutex<Vec<u64>>,
    waker: OnceLock<Waker>,
}

/// Reports the completion of one call to one loop.
pub(crate) struct Notifier {
    queue: Arc<Queue>,
    id: u64,
}

impl Notifier {
    /// Queues the completion and wakes the loop. If the loop is closed, the completion stays unread.
    pub(crate) fn notify(self) {
        let mut completed = lock(&self.queue.completed);
        let is_first = completed.is_empty();
        completed.push(self.id);
        drop(completed);
        if let Some(waker) = self.queue.waker.get().filter(|_| is_first) {
            waker.wake();
        }
    }
}

/// The calls that tasks of one running event loop wait for. The loop calls it when some are complete.
#[pyclass(module = "doorkeep._native", frozen, weakref)]
#[derive(Default)]
pub(crate) struct Bridge {
    queue: Arc<Queue>,
    /// The futures that tasks wait on, by the id of the call.
    futures: Mutex<HashMap<u64, Py<PyAny>>>,
    next_id: AtomicU64,
}

#[pymethods]
impl Bridge {
    /// Finish the futures of completed calls. Futures that were cancelled in the meantime are skipped.
    fn __call__(&self, py: Python<'_>) {
        if let Some(waker) = self.queue.waker.get() {
            waker.clear();
        }
        let completed = std::mem::take(&mut *lock(&self.queue.completed));
        let futures: Vec<Py<PyAny>> = {
            let mut futures = lock(&self.futures);
            completed.iter().filter_map(|id| futures.remove(id)).collect()
        };
        for future in futures {
            if let Err(raised) = finish(future.bind(py)) {
                raised.write_unraisable(py, None);
            }
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.futures.try_lock() {
            Ok(futures) => futures.values().try_for_each(|future| visit.call(future)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let futures = std::mem::take(&mut *lock(&self.futures));
        drop(futures);
    }
}

/// Creates a future of the running loop, and its notifier.
///
/// # Errors
/// No asyncio event loop is running in this thread.
pub(crate) fn future(py: Python<'_>) -> PyResult<(Py<PyAny>, Notifier)> {
    let running = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    let future = running.call_method0(intern!(py, "create_future"))?;
    let bridge = of_loop(&running)?;
    let bridge = bridge.get();
    let id = bridge.next_id.fetch_add(1, Ordering::Relaxed);
    lock(&bridge.futures).insert(id, future.clone().unbind());
    Ok((future.unbind(), Notifier { queue: Arc::clone(&bridge.queue), id }))
}

fn finish(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

/// The bridges in use.
static BRIDGES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

struct Entry {
    process: u32,
    /// The address of the loop, compared before any Python object is touched.
    address: usize,
    event_loop: Py<PyWeakrefReference>,
    bridge: Py<PyWeakrefReference>,
}

impl Entry {
    fn bridge<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Bridge>> {
        self.bridge.bind(py).upgrade_as().ok().flatten()
    }
}

fn of_loop<'py>(running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Bridge>> {
    let (py, process, address) = (running.py(), std::process::id(), running.as_ptr() as usize);
    let is_of_loop = |entry: &&Entry| {
        entry.process == process
            && entry.address == address
            // A loop that was freed may have had the same address.
            && entry.event_loop.bind(py).upgrade().is_some_and(|event_loop| event_loop.is(running))
    };
    let known = lock(&BRIDGES).iter().find(is_of_loop).and_then(|entry| entry.bridge(py));
    if let Some(bridge) = known {
        return Ok(bridge);
    }
    let bridge = Bound::new(py, Bridge::default())?;
    let waker = Waker::install(running, bridge.as_any())?;
    // A new bridge has no waker yet, so this cannot fail.
    let _is_set = bridge.get().queue.waker.set(waker);
    let entry = Entry {
        process,
        address,
        event_loop: PyWeakrefReference::new(running)?.unbind(),
        bridge: PyWeakrefReference::new(&bridge)?.unbind(),
    };
    let mut bridges = lock(&BRIDGES);
    let all = std::mem::replace(&mut *bridges, vec![entry]);
    let (kept, gone): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|entry| entry.process == process && entry.bridge(py).is_some());
    bridges.extend(kept);
    // Freeing Python objects may run Python, which must not find the list locked.
    drop(bridges);
    drop(gone);
    Ok(bridge)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
