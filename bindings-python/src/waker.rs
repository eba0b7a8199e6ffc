//! Wakes an event loop from another thread.
//!
//! Knows no answers. Invariant: waking needs no GIL and does not block. Waking a closed loop does nothing and is not an
//! error.

use std::sync::Arc;
use std::thread;

use pyo3::exceptions::PyNotImplementedError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

#[cfg(unix)]
use std::{
    io::{ErrorKind, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
};

/// Makes one event loop run the callback that it was installed with.
pub(crate) enum Waker {
    /// Writes to a socket that the loop watches.
    #[cfg(unix)]
    Socket { writer: UnixStream, reader: UnixStream },
    /// Calls into the loop: some loops watch no sockets, such as the Proactor of Windows.
    Call(Arc<Callback>),
}

/// Both references are weak: an object that holds a loop's methods keeps the loop alive forever.
pub(crate) struct Callback {
    event_loop: Py<PyWeakrefReference>,
    function: Py<PyWeakrefReference>,
}

impl Waker {
    /// Makes `event_loop` call `callback` whenever it is woken. From then on only the loop keeps the callback alive.
    pub(crate) fn install(event_loop: &Bound<'_, PyAny>, callback: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        #[cfg(unix)]
        {
            let (writer, reader) = UnixStream::pair()?;
            writer.set_nonblocking(true)?;
            reader.set_nonblocking(true)?;
            match event_loop.call_method1(intern!(py, "add_reader"), (reader.as_raw_fd(), callback)) {
                Ok(_) => return Ok(Self::Socket { writer, reader }),
                Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {}
                Err(error) => return Err(error),
            }
        }
        event_loop.setattr(intern!(py, "_doorkeep_bridge"), callback)?;
        Ok(Self::Call(Arc::new(Callback {
            event_loop: PyWeakrefReference::new(event_loop)?.unbind(),
            function: PyWeakrefReference::new(callback)?.unbind(),
        })))
    }

    pub(crate) fn wake(&self) {
        match self {
            // If the buffer is full, the loop has a wake-up to read already.
            #[cfg(unix)]
            Self::Socket { writer, .. } => drop((&mut &*writer).write(&[1])),
            // On its own thread, since a call into the loop needs the GIL.
            Self::Call(callback) => {
                let callback = Arc::clone(callback);
                let call = move || Python::try_attach(|py| callback.call(py));
                drop(thread::Builder::new().name("doorkeep-waker".to_owned()).spawn(call));
            }
        }
    }

    /// Discards the wake-ups so far. Call it before reading the queue: discarding one that arrives after that would
    /// lose a completion.
    pub(crate) fn clear(&self) {
        #[cfg(unix)]
        if let Self::Socket { reader, .. } = self {
            let mut bytes = [0; 64];
            while match (&mut &*reader).read(&mut bytes) {
                Ok(count) => count == bytes.len(),
                Err(error) => error.kind() == ErrorKind::Interrupted,
            } {}
        }
    }
}

impl Callback {
    fn call(&self, py: Python<'_>) {
        let (event_loop, function) = (self.event_loop.bind(py).upgrade(), self.function.bind(py).upgrade());
        if let (Some(event_loop), Some(function)) = (event_loop, function) {
            // Fails once the loop is closed.
            let _closed = event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (function,));
        }
    }
}
