//! An awaitable: finished when it was made over memory, finished by the bridge over a store.
//!
//! Knows no limiter. Invariants: its truth is never taken, so a forgotten `await` cannot admit; it is
//! awaited once; one that is dropped without an await says so, as a coroutine does.

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use doorkeep::host::either;
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::bridge;
use crate::call::Call;
use crate::error::Result;
use crate::events;
use crate::pending::{self, Pending};

/// The answer of an `aio` limiter: await it once.
///
/// Over memory the decision was taken when the call was made, over a store the request was sent; the await gives the
/// answer, or raises what went wrong. Serves wherever a coroutine does, such as in `asyncio.gather` and
/// `asyncio.create_task`. Taking its truth raises TypeError. Dropped without an await it warns. Dropped or cancelled,
/// the call still runs to its end, and the attempt stays counted.
#[pyclass(module = "doorkeep.aio", frozen, subclass)]
pub(crate) struct Answer {
    state: Mutex<State>,
    call: &'static str,
}

enum State {
    Told(PyResult<Py<PyAny>>),
    Asked(Asked),
    Taken,
}

struct Asked {
    pending: Arc<dyn Pending>,
    shown: Shown,
    /// Only in this one does anybody answer.
    process: u32,
    /// There as soon as a task waits.
    future: Option<Py<PyAny>>,
}

/// Makes the Python object of an answer that is there.
type Shown = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

impl Answer {
    /// Finishes with what a call came to.
    pub(crate) fn new<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, call: &'static str, told: Result<T>) -> Self {
        let told = told.map_err(PyErr::from).and_then(|value| value.into_py_any(py));
        Self::of(call, State::Told(told))
    }

    /// Finishes with the answer to a call, or waits for it when a store was asked.
    pub(crate) fn to<T, R, W>(py: Python<'_>, name: &'static str, called: Result<Call<'_, T, R, W>>) -> Self
    where
        T: Send + 'static,
        R: for<'py> IntoPyObjectExt<'py> + 'static,
        W: Send + 'static,
    {
        match called {
            Err(refused) => Self::of(name, State::Told(Err(refused.into()))),
            Ok(Call { answer: either::Answer::Now(answer), shown, with, .. }) => {
                Self::new(py, name, shown(py, answer, with))
            }
            Ok(Call { answer: either::Answer::Later(future), shown, with, store }) => {
                let (slot, store) = (pending::start(future), store.cloned());
                let pending: Arc<dyn Pending> = slot.clone();
                let shown = move |py: Python<'_>| {
                    if let Some(store) = &store {
                        events::tell(py, store);
                    }
                    let answer =
                        slot.take().ok_or_else(|| PyRuntimeError::new_err("the call ended without an answer"))?;
                    shown(py, answer, with)?.into_py_any(py)
                };
                let process = std::process::id();
                Self::of(name, State::Asked(Asked { pending, shown: Box::new(shown), process, future: None }))
            }
        }
    }

    /// Gives the same answer another look. This one has been awaited then.
    pub(crate) fn then(
        &self,
        py: Python<'_>,
        name: &'static str,
        look: impl FnOnce(Python<'_>, Py<PyAny>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let state = match self.replace(State::Taken) {
            State::Told(told) => State::Told(told.and_then(|value| look(py, value))),
            State::Asked(Asked { pending, shown, process, future }) => {
                let shown = Box::new(move |py: Python<'_>| look(py, shown(py)?));
                State::Asked(Asked { pending, shown, process, future })
            }
            State::Taken => State::Told(Err(self.already_awaited())),
        };
        Self::of(name, state)
    }

    fn of(call: &'static str, state: State) -> Self {
        Self { state: Mutex::new(state), call }
    }

    /// Takes one step: gives the future to wait for, or raises what the await comes to.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // Nothing stays locked: what runs below is Python's, which may let another thread in.
        let value = match self.replace(State::Taken) {
            State::Told(told) => told?,
            State::Asked(mut asked) => match asked.waits_for(py, self.call)? {
                Some(future) => {
                    self.replace(State::Asked(asked));
                    return Ok(future);
                }
                None => (asked.shown)(py)?,
            },
            State::Taken => return Err(self.already_awaited()),
        };
        // Inside a tuple, or a value that is itself a tuple would be spread over the arguments.
        Err(PyStopIteration::new_err((value,)))
    }

    fn replace(&self, state: State) -> State {
        std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    fn already_awaited(&self) -> PyErr {
        PyRuntimeError::new_err(format!("{} was already awaited", self.call))
    }
}

impl Asked {
    /// The future that a task has to wait for; none if the answer is there.
    fn waits_for(&mut self, py: Python<'_>, call: &str) -> PyResult<Option<Py<PyAny>>> {
        if self.pending.is_told() {
            return Ok(None);
        }
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(format!("{call} was called before the fork")));
        }
        if self.future.is_none() {
            let (future, wake) = bridge::wait(py)?;
            self.future = Some(future);
            if !self.pending.wake_with(wake) {
                return Ok(None);
            }
        }
        let Some(future) = &self.future else { return Ok(None) };
        future.setattr(py, intern!(py, "_asyncio_future_blocking"), true)?;
        Ok(Some(future.clone_ref(py)))
    }
}

#[pymethods]
impl Answer {
    fn __await__<'a, 'py>(slf: &'a Bound<'py, Self>) -> &'a Bound<'py, Self> {
        slf
    }

    fn __iter__<'a, 'py>(slf: &'a Bound<'py, Self>) -> &'a Bound<'py, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    /// Go on, as a coroutine's `send` does.
    #[pyo3(signature = (value, /))]
    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.step(value.py())
    }

    /// Raise the given exception in place of the answer, as a coroutine's `throw` does.
    #[pyo3(signature = (kind, value=None, traceback=None, /))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _the_exception_carries_its_own = traceback;
        drop(self.replace(State::Taken));
        Err(PyErr::from_value(value.unwrap_or(kind).clone()))
    }

    /// Do without the answer, as a coroutine's `close` does.
    fn close(&self) {
        drop(self.replace(State::Taken));
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(self.forgotten())
    }

    // `limiter.attempt(key) == Outcome.DENIED` without the await would be false, and admit.
    fn __richcmp__(&self, py: Python<'_>, other: &Bound<'_, PyAny>, _op: CompareOp) -> PyResult<Py<PyAny>> {
        if other.is_instance_of::<PyInt>() {
            return Err(self.forgotten());
        }
        Ok(py.NotImplemented())
    }

    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __repr__(&self) -> String {
        format!("<answer of {}>", self.call)
    }

    // A task holds its answer, which holds the future that holds the task: without this, one that is never woken
    // would keep its event loop for ever.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.state.try_lock().as_deref() {
            Ok(State::Asked(Asked { future: Some(future), .. })) => visit.call(future),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        drop(self.replace(State::Taken));
    }
}

impl Answer {
    fn forgotten(&self) -> PyErr {
        PyTypeError::new_err(format!("the answer of {} has to be awaited first", self.call))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let state = std::mem::replace(self.state.get_mut().unwrap_or_else(PoisonError::into_inner), State::Taken);
        if matches!(state, State::Taken | State::Asked(Asked { future: Some(_), .. })) {
            return;
        }
        // At interpreter exit there is nobody left to warn.
        let _warned = Python::try_attach(|py| {
            drop(state);
            // An object may die while an exception is on its way: that one must not be lost.
            let pending = PyErr::take(py);
            warn(py, self.call);
            if let Some(pending) = pending {
                pending.restore(py);
            }
        });
    }
}

fn warn(py: Python<'_>, call: &str) {
    let Ok(message) = CString::new(format!("{call} was never awaited; what it counted stays counted")) else {
        return;
    };
    if let Err(raised) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1) {
        raised.write_unraisable(py, None);
    }
}
