//! From the runtime's thread to event loops: completions in batches, one alarm for each batch.
//!
//! A completion goes into the queue of its loop; the first one into an empty queue rings the loop, which drains the whole
//! queue. Invariants: the runtime's thread runs no Python and never waits for the GIL; a bridge is held by its loop alone
//! and holds no loop but through the tasks that wait, so both die together; no bridge crosses a fork.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::alarm::Alarm;

/// The tickets of those whose answers are there.
#[derive(Default)]
struct Queue {
    ready: Mutex<Vec<u64>>,
    alarm: OnceLock<Alarm>,
}

/// Wakes one waiter of one loop.
pub(crate) struct Wake {
    queue: Arc<Queue>,
    ticket: u64,
}

impl Wake {
    /// Tells the loop that the waiter's answer is there. Also when the loop is closed: then nobody reads it.
    pub(crate) fn up(self) {
        let mut ready = lock(&self.queue.ready);
        let is_first = ready.is_empty();
        ready.push(self.ticket);
        drop(ready);
        if let Some(alarm) = self.queue.alarm.get().filter(|_| is_first) {
            alarm.ring();
        }
    }
}

/// The waiters of one running event loop. Called by the loop when some of them are ready.
#[pyclass(module = "doorkeep._native", frozen, weakref)]
#[derive(Default)]
pub(crate) struct Bridge {
    queue: Arc<Queue>,
    /// The futures that tasks wait on, by ticket.
    waiting: Mutex<HashMap<u64, Py<PyAny>>>,
    tickets: AtomicU64,
}

#[pymethods]
impl Bridge {
    /// Finish the futures whose answers are there. One that was cancelled meanwhile is passed over.
    fn __call__(&self, py: Python<'_>) {
        if let Some(alarm) = self.queue.alarm.get() {
            alarm.silence();
        }
        let ready = std::mem::take(&mut *lock(&self.queue.ready));
        let futures: Vec<Py<PyAny>> = {
            let mut waiting = lock(&self.waiting);
            ready.iter().filter_map(|ticket| waiting.remove(ticket)).collect()
        };
        for future in futures {
            if let Err(raised) = finish(future.bind(py)) {
                raised.write_unraisable(py, None);
            }
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.waiting.try_lock() {
            Ok(waiting) => waiting.values().try_for_each(|future| visit.call(future)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        drop(waiting);
    }
}

/// A future of the running loop, and what wakes it.
///
/// # Errors
/// No event loop of asyncio is running in this thread.
pub(crate) fn wait(py: Python<'_>) -> PyResult<(Py<PyAny>, Wake)> {
    let running = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    let future = running.call_method0(intern!(py, "create_future"))?;
    let bridge = of_loop(&running)?;
    let bridge = bridge.get();
    let ticket = bridge.tickets.fetch_add(1, Ordering::Relaxed);
    lock(&bridge.waiting).insert(ticket, future.clone().unbind());
    Ok((future.unbind(), Wake { queue: Arc::clone(&bridge.queue), ticket }))
}

fn finish(future: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = future.py();
    if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
        future.call_method1(intern!(py, "set_result"), (py.None(),))?;
    }
    Ok(())
}

/// The bridges in use.
static BRIDGES: Mutex<Vec<Known>> = Mutex::new(Vec::new());

struct Known {
    process: u32,
    /// Of the loop: looked at before anything of Python's is touched.
    address: usize,
    event_loop: Py<PyWeakrefReference>,
    bridge: Py<PyWeakrefReference>,
}

impl Known {
    fn bridge<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Bridge>> {
        self.bridge.bind(py).upgrade_as().ok().flatten()
    }
}

fn of_loop<'py>(running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Bridge>> {
    let (py, process, address) = (running.py(), std::process::id(), running.as_ptr() as usize);
    let is_it = |known: &&Known| {
        known.process == process
            && known.address == address
            // Another loop may have died here.
            && known.event_loop.bind(py).upgrade().is_some_and(|event_loop| event_loop.is(running))
    };
    let known = lock(&BRIDGES).iter().find(is_it).and_then(|known| known.bridge(py));
    if let Some(bridge) = known {
        return Ok(bridge);
    }
    let bridge = Bound::new(py, Bridge::default())?;
    let alarm = Alarm::install(running, bridge.as_any())?;
    // A bridge is new once.
    let _is_set = bridge.get().queue.alarm.set(alarm);
    let known = Known {
        process,
        address,
        event_loop: PyWeakrefReference::new(running)?.unbind(),
        bridge: PyWeakrefReference::new(&bridge)?.unbind(),
    };
    let mut bridges = lock(&BRIDGES);
    let all = std::mem::replace(&mut *bridges, vec![known]);
    let (kept, gone): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|known| known.process == process && known.bridge(py).is_some());
    bridges.extend(kept);
    drop(bridges);
    drop(gone);
    Ok(bridge)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
