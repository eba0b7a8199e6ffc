//! An attempt that was counted and waits to be settled.
//!
//! Invariant: an exception gives the attempt back only when it may have nothing to do with a guess; whatever stops the
//! program or the task (CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit) leaves it counted.

use doorkeep::redis::RedisStore;
use doorkeep::{Decision as Decided, Error, Settlement, either, input};
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::call::Call;
use crate::clock::Clock;
use crate::convert::{Given, read};
use crate::decision::Decision;
use crate::key::{Key, with_keys};
use crate::refused::Answer;
use crate::rule::read_names;

/// One attempt over several keys, counted when it was made and settled at most once.
///
/// Settled with `success` or `cancel`; left alone, it stays counted. Settling it again, or settling a denied one, does
/// nothing. Safe from any thread.
///
/// As a block it raises `AttemptDenied` on entry when denied (`LimiterUnavailable` when the limiter is closed over a
/// failed store). An `Exception` that escapes the block and is not named in `count_on` gives everything back.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct Attempt {
    inner: either::Attempt,
    clock: Clock,
    count_on: CountOn,
    store: Option<RedisStore>,
}

#[pymethods]
impl Attempt {
    /// Whether the attempt may proceed.
    #[getter]
    pub(crate) fn allowed(&self) -> bool {
        self.inner.allowed()
    }

    /// The whole answer to the attempt.
    #[getter]
    pub(crate) fn decision(&self) -> Decision {
        self.inner.decision().into()
    }

    /// Settle the attempt as a right guess.
    ///
    /// Parameters
    /// ----------
    /// forgive
    ///     Rules, or names of rules, whose keys are forgotten altogether.
    /// give_back
    ///     Rules on which only this attempt's own charge is taken back; it lifts the lockout that it engaged.
    /// forgive_address
    ///     Rules keyed by an address whose keys are forgotten. Asked for apart from `forgive`, since it lets an attacker
    ///     with one account of their own wipe the limit on the address they attack from.
    /// now
    ///     Seconds since the Unix epoch. Defaults to the limiter's clock.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether this call settled it. False also when the store was not reached.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     The attempt does not hold such a rule, a rule stands in two lists, or a rule keyed by an address stands in
    ///     `forgive`. The attempt is not settled.
    #[pyo3(
        signature = (*, forgive=None, give_back=None, forgive_address=None, now=None),
        text_signature = "($self, *, forgive=(), give_back=(), forgive_address=(), now=None)"
    )]
    pub(crate) fn success(
        &self,
        py: Python<'_>,
        forgive: Given<'_, '_>,
        give_back: Given<'_, '_>,
        forgive_address: Given<'_, '_>,
        now: Given<'_, '_>,
    ) -> Answer<bool> {
        self.ask_success(py, forgive, give_back, forgive_address, now)?.wait(py)
    }

    /// Take the attempt back altogether, as one that should never have counted.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether this call settled it. False also when the store was not reached.
    #[pyo3(signature = (now=None))]
    pub(crate) fn cancel(&self, py: Python<'_>, now: Given<'_, '_>) -> Answer<bool> {
        self.ask_cancel(py, now)?.wait(py)
    }

    /// Count further keys under the same attempt. Keys that it holds already are not counted again.
    ///
    /// Returns
    /// -------
    /// Decision
    ///     When denied, nothing was counted and the attempt is as it was.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     As in `Limiter.allow`.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    pub(crate) fn extend(
        &self,
        py: Python<'_>,
        first: Given<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Given<'_, '_>,
        now: Given<'_, '_>,
    ) -> Answer<Decision> {
        self.ask_extend(py, first, rest, cost, now)?.wait(py)
    }

    /// Say whether the attempt holds `key`.
    pub(crate) fn holds(&self, key: &Bound<'_, Key>) -> bool {
        self.inner.holds(&key.get().inner)
    }

    pub(crate) fn __enter__<'py>(slf: &Bound<'py, Self>) -> Answer<Bound<'py, Self>> {
        slf.get().enter(slf.py())?;
        Ok(slf.clone())
    }

    pub(crate) fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Answer<bool> {
        self.ask_exit(py, error)?.wait(py)
    }

    fn __repr__(&self) -> String {
        format!("<Attempt {}>", self.inner.decision().outcome.as_str())
    }

    pub(crate) fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)?;
        self.count_on.traverse(&visit)
    }
}

// What the blocking methods wait for, and those of `doorkeep.aio` hand on.
impl Attempt {
    pub(crate) fn new(inner: either::Attempt, clock: Clock, count_on: CountOn, store: Option<RedisStore>) -> Self {
        Self { inner, clock, count_on, store }
    }

    pub(crate) fn ask_success(
        &self,
        py: Python<'_>,
        forgive: Given<'_, '_>,
        give_back: Given<'_, '_>,
        forgive_address: Given<'_, '_>,
        now: Given<'_, '_>,
    ) -> Answer<Call<'_, Result<bool, Error>, bool>> {
        let (forgive, give_back) = (read_names(forgive)?, read_names(give_back)?);
        let forgive_address = read_names(forgive_address)?;
        let now = self.clock.now(py, now)?;
        let settlement = Settlement {
            forgive: &borrowed(&forgive),
            give_back: &borrowed(&give_back),
            forgive_address: &borrowed(&forgive_address),
        };
        Ok(self.call(self.inner.success(&settlement, now), |_, settled, ()| Ok(settled?)))
    }

    pub(crate) fn ask_cancel(&self, py: Python<'_>, now: Given<'_, '_>) -> Answer<Call<'_, bool, bool>> {
        Ok(self.call(self.inner.cancel(self.clock.now(py, now)?), |_, settled, ()| Ok(settled)))
    }

    pub(crate) fn ask_extend(
        &self,
        py: Python<'_>,
        first: Given<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Given<'_, '_>,
        now: Given<'_, '_>,
    ) -> Answer<Call<'_, Result<Decided, Error>, Decision>> {
        let (cost, now) = (read(cost, input::cost)?, self.clock.now(py, now)?);
        let answer = with_keys(first, rest, |keys| Ok(self.inner.extend(keys, cost, now)))?;
        Ok(self.call(answer, |_, decision, ()| Ok(decision?.into())))
    }

    /// Leaves a block by `error`, or by its end. The answer is false: no exception is swallowed.
    pub(crate) fn ask_exit(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> Answer<Call<'_, bool, bool>> {
        let is_given_back = !error.is_none() && self.count_on.gives_back(error);
        let answer = if is_given_back { self.ask_cancel(py, None)?.answer } else { either::Answer::Now(false) };
        Ok(self.call(answer, |_, _, ()| Ok(false)))
    }

    fn call<T, R>(&self, answer: either::Answer<T>, shown: fn(Python<'_>, T, ()) -> Answer<R>) -> Call<'_, T, R> {
        Call::new(self.store.as_ref(), answer, shown)
    }

    /// Raises when the attempt was denied.
    pub(crate) fn enter(&self, py: Python<'_>) -> Answer<()> {
        if self.inner.allowed() {
            return Ok(());
        }
        let denial = DENIAL.import(py, "doorkeep.errors", "_denial")?;
        Err(PyErr::from_value(denial.call1((self.decision(),))?).into())
    }
}

/// The exceptions that leave an attempt counted when they escape its block.
pub(crate) struct CountOn(Option<Py<PyTuple>>);

impl CountOn {
    pub(crate) fn read(given: Given<'_, '_>) -> PyResult<Self> {
        let Some(classes) = given.filter(|classes| !classes.is_none()) else {
            return Ok(Self(None));
        };
        let classes = match classes.cast::<PyType>() {
            Ok(class) => vec![class.clone().into_any()],
            Err(_) => classes.try_iter().map_err(|_| not_classes())?.collect::<PyResult<_>>()?,
        };
        let base = classes.first().map(|class| class.py().get_type::<pyo3::exceptions::PyBaseException>());
        for class in &classes {
            let is_exception = match (class.cast::<PyType>(), &base) {
                (Ok(class), Some(base)) => class.is_subclass(base)?,
                _ => false,
            };
            if !is_exception {
                return Err(not_classes());
            }
        }
        let Some(py) = base.map(|base| base.py()) else {
            return Ok(Self(None));
        };
        Ok(Self(Some(PyTuple::new(py, classes)?.unbind())))
    }

    fn gives_back(&self, error: &Bound<'_, PyAny>) -> bool {
        let py = error.py();
        let is_counted = self.0.as_ref().is_some_and(|classes| {
            let error = PyErr::from_value(error.clone());
            error.matches(py, classes.bind(py)).unwrap_or(false)
        });
        // Of a group of exceptions one that counts is enough: a task group must not make guesses free.
        let leaves = error.getattr("exceptions").ok().and_then(|leaves| leaves.cast_into::<PyTuple>().ok());
        error.is_instance_of::<PyException>()
            && !is_counted
            && leaves.is_none_or(|leaves| leaves.iter().all(|leaf| self.gives_back(&leaf)))
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.iter().try_for_each(|classes| visit.call(classes))
    }
}

fn not_classes() -> PyErr {
    PyTypeError::new_err("count_on takes exception classes")
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

static DENIAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
