//! The awaitable of an `aio` call: complete from the start over memory, completed through the bridge over a store.
//!
//! Knows no limiter. Invariants: taking its truth raises, so a forgotten `await` cannot admit. It can be awaited once.
//! Dropped without an await it warns, as a coroutine does.

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
use crate::pending::{self, AnyPending};

/// The answer of an `aio` limiter: await it once.
///
/// At the call, a limiter in memory decides and a limiter over a store sends its request. The await returns the answer
/// or raises the error. Works wherever a coroutine does, such as in `asyncio.gather` and `asyncio.create_task`. Taking
/// its truth raises TypeError. An answer that is dropped without an await warns. The call runs to its end even if the
/// answer is dropped or the await is cancelled, and the attempt stays counted.
#[pyclass(module = "doorkeep._native", frozen, subclass)]
pub(crate) struct Answer {
    state: Mutex<State>,
    call: &'static str,
}

enum State {
    Done(PyResult<Py<PyAny>>),
    InFlight(InFlight),
    Awaited,
}

struct InFlight {
    pending: Arc<dyn AnyPending>,
    completion: Completion,
    /// The process that sent the call: after a fork, the child gets no answer.
    process: u32,
    /// Set once a task waits.
    future: Option<Py<PyAny>>,
}

/// Makes the Python object of a complete call.
type Completion = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

impl Answer {
    /// Makes an awaitable that is complete.
    pub(crate) fn new<'py, T: IntoPyObjectExt<'py>>(py: Python<'py>, call: &'static str, result: Result<T>) -> Self {
        let result = result.map_err(PyErr::from).and_then(|value| value.into_py_any(py));
        Self::of(call, State::Done(result))
    }

    /// Makes the awaitable of a call, and sends the call if it goes to a store.
    pub(crate) fn to<T, R, C>(py: Python<'_>, name: &'static str, call: Result<Call<'_, T, R, C>>) -> Self
    where
        T: Send + 'static,
        R: for<'py> IntoPyObjectExt<'py> + 'static,
        C: Send + 'static,
    {
        match call {
            Err(refused) => Self::of(name, State::Done(Err(refused.into()))),
            Ok(Call { answer: either::Answer::Now(answer), convert, context, .. }) => {
                Self::new(py, name, convert(py, answer, context))
            }
            Ok(Call { answer: either::Answer::Later(future), convert, context, store }) => {
                let (sent, store) = (pending::start(future), store.cloned());
                let pending: Arc<dyn AnyPending> = sent.clone();
                let completion = Box::new(move |py: Python<'_>| {
                    if let Some(store) = &store {
                        events::log_all(py, store);
                    }
                    let answer =
                        sent.take().ok_or_else(|| PyRuntimeError::new_err("the call ended without an answer"))?;
                    convert(py, answer, context)?.into_py_any(py)
                });
                let process = std::process::id();
                Self::of(name, State::InFlight(InFlight { pending, completion, process, future: None }))
            }
        }
    }

    /// Makes an awaitable that applies `map` to the answer of this one, which counts as awaited then.
    pub(crate) fn then(
        &self,
        py: Python<'_>,
        name: &'static str,
        map: impl FnOnce(Python<'_>, Py<PyAny>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let state = match self.replace(State::Awaited) {
            State::Done(result) => State::Done(result.and_then(|value| map(py, value))),
            State::InFlight(InFlight { pending, completion, process, future }) => {
                let completion = Box::new(move |py: Python<'_>| map(py, completion(py)?));
                State::InFlight(InFlight { pending, completion, process, future })
            }
            State::Awaited => State::Done(Err(self.already_awaited())),
        };
        Self::of(name, state)
    }

    fn of(call: &'static str, state: State) -> Self {
        Self { state: Mutex::new(state), call }
    }

    /// Takes one step of the await: returns the future to wait for, or raises StopIteration with the answer.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // No lock is held below: Python code runs there, which may switch to another thread.
        let value = match self.replace(State::Awaited) {
            State::Done(result) => result?,
            State::InFlight(mut call) => match call.future_to_wait_for(py, self.call)? {
                Some(future) => {
                    self.replace(State::InFlight(call));
                    return Ok(future);
                }
                None => (call.completion)(py)?,
            },
            State::Awaited => return Err(self.already_awaited()),
        };
        // In a tuple, since a value that is a tuple itself would be spread over the arguments.
        Err(PyStopIteration::new_err((value,)))
    }

    fn replace(&self, state: State) -> State {
        std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    fn already_awaited(&self) -> PyErr {
        PyRuntimeError::new_err(format!("{} was already awaited", self.call))
    }
}

impl InFlight {
    /// The future that a task has to wait for; none if the call is complete.
    fn future_to_wait_for(&mut self, py: Python<'_>, call: &str) -> PyResult<Option<Py<PyAny>>> {
        if self.pending.is_done() {
            return Ok(None);
        }
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(format!("{call} was called before the fork")));
        }
        if self.future.is_none() {
            let (future, notifier) = bridge::future(py)?;
            self.future = Some(future);
            if !self.pending.notify_with(notifier) {
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

    /// Resume, as a coroutine's `send` does.
    #[pyo3(signature = (value, /))]
    fn send(&self, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.step(value.py())
    }

    /// Raise the given exception instead of returning the answer, as a coroutine's `throw` does.
    #[pyo3(signature = (kind, value=None, traceback=None, /))]
    fn throw(
        &self,
        kind: &Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _the_exception_carries_its_own = traceback;
        drop(self.replace(State::Awaited));
        Err(PyErr::from_value(value.unwrap_or(kind).clone()))
    }

    /// Discard the answer, as a coroutine's `close` does.
    fn close(&self) {
        drop(self.replace(State::Awaited));
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

    // A task refers to its answer, the answer to the future, and the future to the task. Without this, a task that is
    // never woken would keep its event loop alive forever.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.state.try_lock().as_deref() {
            Ok(State::InFlight(InFlight { future: Some(future), .. })) => visit.call(future),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        drop(self.replace(State::Awaited));
    }
}

impl Answer {
    fn forgotten(&self) -> PyErr {
        PyTypeError::new_err(format!("the answer of {} has to be awaited first", self.call))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let state = std::mem::replace(self.state.get_mut().unwrap_or_else(PoisonError::into_inner), State::Awaited);
        if matches!(state, State::Awaited | State::InFlight(InFlight { future: Some(_), .. })) {
            return;
        }
        // At interpreter exit nothing can warn any more.
        let _warned = Python::try_attach(|py| {
            drop(state);
            // The object may be freed while an exception is raised, which must survive the warning.
            let raised = PyErr::take(py);
            warn(py, self.call);
            if let Some(raised) = raised {
                raised.restore(py);
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
