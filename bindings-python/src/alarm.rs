//! What makes an event loop look at what is ready for it.
//!
//! Knows no answer. Invariant: ringing takes no GIL and waits for nobody; a loop that is gone hears nothing, and that
//! is no error.

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

/// Rings one event loop, which then calls what was given to it.
pub(crate) enum Alarm {
    /// Through a socket that the loop watches.
    #[cfg(unix)]
    Socket { rung: UnixStream, heard: UnixStream },
    /// By a call into the loop: some loops watch no sockets, such as the Proactor of Windows.
    Call(Arc<Called>),
}

/// Both weakly: whoever holds a loop's methods keeps the loop for ever.
pub(crate) struct Called {
    event_loop: Py<PyWeakrefReference>,
    callback: Py<PyWeakrefReference>,
}

impl Alarm {
    /// Makes `event_loop` call `callback` whenever it is rung. From then on the loop alone holds it.
    pub(crate) fn install(event_loop: &Bound<'_, PyAny>, callback: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        #[cfg(unix)]
        {
            let (rung, heard) = UnixStream::pair()?;
            rung.set_nonblocking(true)?;
            heard.set_nonblocking(true)?;
            match event_loop.call_method1(intern!(py, "add_reader"), (heard.as_raw_fd(), callback)) {
                Ok(_) => return Ok(Self::Socket { rung, heard }),
                Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {}
                Err(error) => return Err(error),
            }
        }
        event_loop.setattr(intern!(py, "_doorkeep_bridge"), callback)?;
        Ok(Self::Call(Arc::new(Called {
            event_loop: PyWeakrefReference::new(event_loop)?.unbind(),
            callback: PyWeakrefReference::new(callback)?.unbind(),
        })))
    }

    pub(crate) fn ring(&self) {
        match self {
            // A full buffer is an alarm that the loop has not heard yet.
            #[cfg(unix)]
            Self::Socket { rung, .. } => drop((&mut &*rung).write(&[1])),
            // On a thread of its own, since a call into the loop needs the GIL.
            Self::Call(called) => {
                let called = Arc::clone(called);
                let call = move || Python::try_attach(|py| called.call(py));
                drop(thread::Builder::new().name("doorkeep-alarm".to_owned()).spawn(call));
            }
        }
    }

    /// Forgets what rang so far. Whoever looks at the queue does so after this, or a late alarm would be lost.
    pub(crate) fn silence(&self) {
        #[cfg(unix)]
        if let Self::Socket { heard, .. } = self {
            let mut bytes = [0; 64];
            while match (&mut &*heard).read(&mut bytes) {
                Ok(count) => count == bytes.len(),
                Err(error) => error.kind() == ErrorKind::Interrupted,
            } {}
        }
    }
}

impl Called {
    fn call(&self, py: Python<'_>) {
        let (event_loop, callback) = (self.event_loop.bind(py).upgrade(), self.callback.bind(py).upgrade());
        if let (Some(event_loop), Some(callback)) = (event_loop, callback) {
            // Fails once the loop is closed.
            let _closed = event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (callback,));
        }
    }
}
