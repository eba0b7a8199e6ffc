//! From the runtime's thread to event loops: completions in batches, one wake for each batch.
//!
//! A completion goes into the queue of its loop; the first one into an empty queue makes a socket readable, which the
//! loop watches; the loop then drains the whole queue. Invariants: the runtime's thread runs no Python and never waits
//! for the GIL; a bridge is held by its loop alone and holds no loop, so both die together; no bridge crosses a fork.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyVisit};

/// What the reader of one event loop has to drain.
struct Queue {
    filled: Mutex<Vec<u64>>,
    alarm: UnixStream,
}

/// Wakes one waiter of one loop.
pub(crate) struct Wake {
    queue: Arc<Queue>,
    ticket: u64,
}

impl Wake {
    /// Tells the loop that the waiter's answer is there. Also when the loop is closed: then nobody reads it.
    pub(crate) fn up(self) {
        let mut filled = lock(&self.queue.filled);
        let is_first = filled.is_empty();
        filled.push(self.ticket);
        drop(filled);
        if is_first {
            // A full buffer is an alarm that nobody has heard yet; a loop that is gone hears none.
            let _heard = (&self.queue.alarm).write(&[1]);
        }
    }
}

/// The waiters of one running event loop. Called by the loop when there is something to drain.
#[pyclass(module = "doorkeep._native", frozen, weakref)]
pub(crate) struct Bridge {
    queue: Arc<Queue>,
    bell: UnixStream,
    /// The futures that tasks wait on, by ticket.
    waiting: Mutex<HashMap<u64, Py<PyAny>>>,
    tickets: AtomicU64,
}

impl Bridge {
    fn new() -> PyResult<Self> {
        let (alarm, bell) = UnixStream::pair()?;
        alarm.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        Ok(Self {
            queue: Arc::new(Queue { filled: Mutex::default(), alarm }),
            bell,
            waiting: Mutex::default(),
            tickets: AtomicU64::new(0),
        })
    }

    fn silence(&self) {
        let mut heard = [0; 64];
        loop {
            match (&self.bell).read(&mut heard) {
                Ok(64) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    }
}

#[pymethods]
impl Bridge {
    /// Finish the futures whose answers are there. One that was cancelled meanwhile is passed over.
    fn __call__(&self, py: Python<'_>) {
        self.silence();
        let filled = std::mem::take(&mut *lock(&self.queue.filled));
        let ready: Vec<Py<PyAny>> = {
            let mut waiting = lock(&self.waiting);
            filled.iter().filter_map(|ticket| waiting.remove(ticket)).collect()
        };
        for future in ready {
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

/// The bridges in use, by the address of their loop. Both are held weakly.
static BRIDGES: Mutex<Vec<Known>> = Mutex::new(Vec::new());

struct Known {
    process: u32,
    event_loop: Py<PyWeakrefReference>,
    bridge: Py<PyWeakrefReference>,
}

fn of_loop<'py>(running: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Bridge>> {
    let (py, process) = (running.py(), std::process::id());
    let known = lock(&BRIDGES).iter().find_map(|known| {
        let is_it = known.process == process && known.event_loop.bind(py).upgrade().is_some_and(|it| it.is(running));
        if is_it { known.bridge.bind(py).upgrade_as::<Bridge>().ok().flatten() } else { None }
    });
    if let Some(bridge) = known {
        return Ok(bridge);
    }
    let bridge = Bound::new(py, Bridge::new()?)?;
    let known = Known {
        process,
        event_loop: PyWeakrefReference::new(running)?.unbind(),
        bridge: PyWeakrefReference::new(&bridge)?.unbind(),
    };
    running.call_method1(intern!(py, "add_reader"), (bridge.get().bell.as_raw_fd(), &bridge))?;
    let mut bridges = lock(&BRIDGES);
    let (kept, gone): (Vec<_>, Vec<_>) =
        bridges.drain(..).partition(|known| known.bridge.bind(py).upgrade().is_some() && known.process == process);
    *bridges = kept;
    bridges.push(known);
    drop(bridges);
    drop(gone);
    Ok(bridge)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
