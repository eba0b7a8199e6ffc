//! An attempt that was counted and can be settled.
//!
//! Invariant: an exception that leaves a block settles nothing, unless its class is named in `give_back_on`. Errors of
//! doorkeep, and exceptions that stop the program or the task (CancelledError, KeyboardInterrupt, SystemExit,
//! GeneratorExit), never give an attempt back.

use doorkeep::host::{either, input};
use doorkeep::redis::RedisStore;
use doorkeep::{Decision as Decided, Error, Settlement};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use crate::call::{Call, CallResult};
use crate::clock::Clock;
use crate::convert::{Arg, read};
use crate::decision::Decision;
use crate::error::Result;
use crate::key::{Key, with_keys};
use crate::rule::read_names;

/// One attempt over several keys, counted when it was made and settled at most once.
///
/// It stays counted unless it is settled by `success`, `failure` or `cancel`. Settling it again, or settling a denied
/// attempt, does nothing. Its truth is `allowed`. Safe from any thread.
///
/// As a block, a denied attempt raises `AttemptDenied` on entry (`LimiterUnavailable` if the limiter is closed and its
/// store failed). If an exception leaves the block, the attempt stays counted, unless `give_back_on` names its class:
/// then everything is given back except what was counted on an address alone.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct Attempt {
    inner: either::Attempt,
    clock: Clock,
    give_back_on: GiveBackOn,
    store: Option<RedisStore>,
}

#[pymethods]
impl Attempt {
    /// Whether the attempt may proceed.
    #[getter]
    pub(crate) fn allowed(&self) -> bool {
        self.inner.allowed()
    }

    /// The decision about the attempt.
    #[getter]
    pub(crate) fn decision(&self) -> Decision {
        self.inner.decision().into()
    }

    fn __bool__(&self) -> bool {
        self.allowed()
    }

    /// Settle the attempt as a right guess.
    ///
    /// Rules without a key in this attempt are ignored.
    ///
    /// Parameters
    /// ----------
    /// forgive
    ///     Rules, or names of rules, whose keys are forgotten completely.
    /// give_back
    ///     Rules on which only the charge of this attempt is taken back; a lockout that it engaged is lifted.
    /// forgive_address
    ///     Rules keyed by an address whose keys are forgotten. A separate list, since it lets an attacker reset the
    ///     limit on their address by logging in to their own account.
    /// now
    ///     Seconds since the Unix epoch. Defaults to the limiter's clock.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether this call settled it. Also false if the store was not reached.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     A rule is in two lists, or a rule in `forgive` is keyed by an address. The attempt is not settled.
    #[pyo3(
        signature = (*, forgive=None, give_back=None, forgive_address=None, now=None),
        text_signature = "($self, *, forgive=(), give_back=(), forgive_address=(), now=None)"
    )]
    pub(crate) fn success(
        &self,
        py: Python<'_>,
        forgive: Arg<'_, '_>,
        give_back: Arg<'_, '_>,
        forgive_address: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Result<bool> {
        self.start_success(py, forgive, give_back, forgive_address, now)?.wait(py)
    }

    /// Settle the attempt as a wrong guess: it stays counted, whatever is called later.
    ///
    /// The call is optional, since an attempt stays counted anyway. It makes sure that neither an exception named in
    /// `give_back_on` nor a later `cancel` takes the guess back.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether this call settled it.
    pub(crate) fn failure(&self) -> bool {
        self.inner.failure()
    }

    /// Take the attempt back completely, as one that should not have been counted.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether this call settled it. Also false if the store was not reached.
    #[pyo3(signature = (now=None))]
    pub(crate) fn cancel(&self, py: Python<'_>, now: Arg<'_, '_>) -> Result<bool> {
        self.start_cancel(py, now)?.wait(py)
    }

    /// Count further keys under the same attempt. Keys that are already part of it are not counted again.
    ///
    /// Returns
    /// -------
    /// Decision
    ///     If denied, nothing was counted and the attempt is unchanged.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     As in `Limiter.decide`.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    pub(crate) fn extend(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Result<Decision> {
        self.start_extend(py, first, rest, cost, now)?.wait(py)
    }

    /// Return whether `key` is part of the attempt.
    pub(crate) fn holds(&self, key: &Bound<'_, Key>) -> bool {
        self.inner.holds(&key.get().inner)
    }

    pub(crate) fn __enter__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, Self>> {
        slf.get().enter(slf.py())?;
        Ok(slf.clone())
    }

    pub(crate) fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        self.start_exit(py, error)?.wait(py)
    }

    /// Give the attempt back if `give_back_on` names the class of `error`, for adapters. Return whether it did.
    #[pyo3(signature = (error, give_back_on, now=None))]
    pub(crate) fn _give_back(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        give_back_on: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Result<bool> {
        self.start_give_back(py, error, give_back_on, now)?.wait(py)
    }

    fn __repr__(&self) -> String {
        format!("<Attempt {}>", self.inner.decision().outcome.as_str())
    }

    pub(crate) fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)?;
        self.give_back_on.traverse(&visit)
    }
}

// The calls: the blocking methods wait for them, those of `doorkeep.aio` wrap them in an awaitable.
impl Attempt {
    pub(crate) fn new(
        inner: either::Attempt,
        clock: Clock,
        give_back_on: GiveBackOn,
        store: Option<RedisStore>,
    ) -> Self {
        Self { inner, clock, give_back_on, store }
    }

    pub(crate) fn start_success(
        &self,
        py: Python<'_>,
        forgive: Arg<'_, '_>,
        give_back: Arg<'_, '_>,
        forgive_address: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, bool, bool> {
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

    pub(crate) fn start_cancel(&self, py: Python<'_>, now: Arg<'_, '_>) -> Result<Call<'_, bool, bool>> {
        Ok(self.call(self.inner.cancel(self.clock.now(py, now)?), |_, settled, ()| Ok(settled)))
    }

    pub(crate) fn start_extend(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Decided, Decision> {
        let (cost, now) = (read(cost, input::cost)?, self.clock.now(py, now)?);
        let answer = with_keys(first, rest, |keys| Ok(self.inner.extend(keys, cost, now)))?;
        Ok(self.call(answer, |_, decision, ()| Ok(decision?.into())))
    }

    /// Ends a block, by `error` if there is one. The result is false: no exception is swallowed.
    pub(crate) fn start_exit(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> Result<Call<'_, bool, bool>> {
        let answer = self.release(py, error, &self.give_back_on, None)?;
        Ok(self.call(answer, |_, _, ()| Ok(false)))
    }

    pub(crate) fn start_give_back(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        give_back_on: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Result<Call<'_, bool, bool>> {
        let answer = self.release(py, error, &GiveBackOn::read(give_back_on)?, now)?;
        Ok(self.call(answer, |_, given_back, ()| Ok(given_back)))
    }

    fn release(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        give_back_on: &GiveBackOn,
        now: Arg<'_, '_>,
    ) -> Result<either::Answer<bool>> {
        if !give_back_on.names(error)? {
            return Ok(either::Answer::Now(false));
        }
        Ok(self.inner.release(self.clock.now(py, now)?))
    }

    fn call<T, R>(&self, answer: either::Answer<T>, convert: fn(Python<'_>, T, ()) -> Result<R>) -> Call<'_, T, R> {
        Call::new(self.store.as_ref(), answer, convert)
    }

    /// Raises if the attempt was denied.
    pub(crate) fn enter(&self, py: Python<'_>) -> Result<()> {
        if self.inner.allowed() {
            return Ok(());
        }
        let denial = DENIAL.import(py, "doorkeep.errors", "_denial")?;
        Err(PyErr::from_value(denial.call1((self.decision(),))?).into())
    }
}

/// The classes of exceptions that give an attempt back when they leave its block: failures of the application, such as
/// a database that is down.
pub(crate) struct GiveBackOn(Option<Py<PyTuple>>);

impl GiveBackOn {
    pub(crate) fn read(given: Arg<'_, '_>) -> Result<Self> {
        let Some(given) = given.filter(|classes| !classes.is_none()) else {
            return Ok(Self(None));
        };
        let classes: Vec<Bound<'_, PyAny>> = match given.cast::<PyType>() {
            Ok(class) => vec![class.clone().into_any()],
            Err(_) => given.try_iter().map_err(|_| not_classes())?.collect::<PyResult<_>>()?,
        };
        let base = given.py().get_type::<PyException>();
        for class in &classes {
            let is_named = class.cast::<PyType>().is_ok_and(|class| class.is_subclass(&base).unwrap_or(false));
            if !is_named {
                return Err(not_classes().into());
            }
        }
        if classes.is_empty() {
            return Ok(Self(None));
        }
        Ok(Self(Some(PyTuple::new(given.py(), classes)?.unbind())))
    }

    /// Whether `error` gives the attempt back.
    fn names(&self, error: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = error.py();
        let Some(classes) = &self.0 else { return Ok(false) };
        // In a group of exceptions, a single one that is not named is enough: a task group must not make guesses free.
        let leaves = error.getattr_opt("exceptions")?.and_then(|leaves| leaves.cast_into::<PyTuple>().ok());
        if let Some(leaves) = leaves.filter(|leaves| !leaves.is_empty()) {
            for leaf in leaves {
                if !self.names(&leaf)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // A named class may be a base of our errors: a denial must not give back the attempt that it denies.
        let ours = OURS.import(py, "doorkeep.errors", "DoorkeepError")?;
        Ok(error.is_instance_of::<PyException>() && !error.is_instance(ours)? && error.is_instance(classes.bind(py))?)
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.iter().try_for_each(|classes| visit.call(classes))
    }
}

fn not_classes() -> Error {
    input::not_error_classes("give_back_on")
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

static DENIAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static OURS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
