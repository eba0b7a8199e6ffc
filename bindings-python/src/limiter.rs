//! The limiter of several keys per call.
//!
//! Conversions only. The first key is a separate parameter, since Python makes a tuple of the rest at every call: a
//! call with one key then allocates only its answer.

use doorkeep::Decision as Decided;
use doorkeep::host::{either, input};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMappingProxy, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::attempt::{Attempt, GiveBackOn};
use crate::call::{Call, CallResult};
use crate::clock::Clock;
use crate::config::Config;
use crate::convert::{Arg, read};
use crate::decision::Decision;
use crate::error::Result;
use crate::key::with_keys;
use crate::options::Backend;
use crate::stats;
use crate::store::RedisStore;

/// Decides over several keys of several rules in one atomic step: all of them are counted, or none.
///
/// Put a key for the client and a key for the account into one call, so that a denial by one of them spends nothing of
/// the other. Safe from any thread; no call scans the tables.
///
/// Parameters
/// ----------
/// store
///     A `RedisStore`, to share one budget with other processes. Defaults to the memory of this process.
/// on_error
///     What decides when the store does not answer: `"local"`, `"open"` or `"closed"`. Defaults to the store's setting.
/// capacity
///     How many windows this process keeps, one per key and rate, and how many keys of each strike rule: 1 to 2**30,
///     default 100,000. With a store, this limits the local tables that are used while the store does not answer.
/// clock
///     A callable that returns seconds since the Unix epoch, called once per call. Defaults to a monotonic clock, or
///     with a store to the store's clock.
///
/// Attributes
/// ----------
/// rules
///     The rules of `from_config` by name, read-only; empty otherwise.
///
/// Raises
/// ------
/// ConfigError
///     An argument is out of its bounds.
#[pyclass(module = "doorkeep", frozen)]
pub(crate) struct Limiter {
    inner: either::Limiter,
    backend: Backend,
    clock: Clock,
    rules: Py<PyDict>,
}

#[pymethods]
impl Limiter {
    #[new]
    #[pyo3(
        signature = (*, store=None, on_error=None, capacity=None, clock=None),
        text_signature = "(*, store=None, on_error=None, capacity=100_000, clock=None)"
    )]
    pub(crate) fn new(
        py: Python<'_>,
        store: Arg<'_, '_>,
        on_error: Arg<'_, '_>,
        capacity: Arg<'_, '_>,
        clock: Arg<'_, '_>,
    ) -> Result<Self> {
        let capacity = read(capacity, input::capacity)?;
        Self::over(Backend::read(store, on_error)?, capacity, clock, PyDict::new(py))
    }

    /// Make a limiter and its rules from a plain mapping, such as one read from a file.
    ///
    /// Parameters
    /// ----------
    /// config
    ///     `redis`, the URL of a `RedisStore`, with its `prefix`, `timeout` and `on_error`; without it the limiter is
    ///     in memory. `capacity` as in the constructor. `rules`: a mapping of names to rates as a string, or to a
    ///     mapping with `rates`, or `threshold` and `lockout_window`, and optionally `ipv6_prefix`, `secret` and `by`.
    /// clock
    ///     As in the constructor.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     A name is unknown, or a value is invalid.
    #[staticmethod]
    #[pyo3(signature = (config, *, clock=None))]
    pub(crate) fn from_config(config: &Bound<'_, PyAny>, clock: Arg<'_, '_>) -> Result<Self> {
        let Config { backend, capacity, rules } = Config::read(config)?;
        Self::over(backend, capacity, clock, rules)
    }

    /// The store that was passed or that `from_config` made; None in memory.
    #[getter]
    pub(crate) fn store(&self, py: Python<'_>) -> Option<Py<RedisStore>> {
        self.backend.store.as_ref().map(|store| store.clone_ref(py))
    }

    /// The rules of `from_config` by name, read-only; empty otherwise.
    #[getter]
    pub(crate) fn rules<'py>(&self, py: Python<'py>) -> Bound<'py, PyMappingProxy> {
        PyMappingProxy::new(py, self.rules.bind(py).as_mapping())
    }

    /// Count one attempt under all `keys`, or deny it and count nothing. Return the whole decision.
    ///
    /// Parameters
    /// ----------
    /// keys
    ///     1 to 16 keys made by rules. A key that is passed twice counts once.
    /// cost
    ///     How much it spends of each rate, default 1; 0 only checks. A strike rule counts one attempt at any cost.
    /// now
    ///     Seconds since the Unix epoch. Defaults to the limiter's clock.
    ///
    /// Returns
    /// -------
    /// Decision
    ///     True if allowed. Denied with a wait of None if the cost is higher than a rate can ever allow.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     The cost, `now` or the number of keys is out of its bounds, or rules of one name differ. Nothing was counted.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    pub(crate) fn decide(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Result<Decision> {
        self.start_decide(py, first, rest, cost, now)?.wait(py)
    }

    /// Count one attempt under all `keys`, or deny it and count nothing. Return whether it is allowed.
    ///
    /// Like `decide`, without the wait and the reason.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    pub(crate) fn allow(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Result<bool> {
        self.start_allow(py, first, rest, cost, now)?.wait(py)
    }

    /// Return the decision that `decide` would return, without counting.
    ///
    /// `remaining` and `reset_after` are as they are now, and `engaged` is empty.
    #[pyo3(signature = (first=None, /, *rest, cost=None, now=None), text_signature = "($self, *keys, cost=1, now=None)")]
    pub(crate) fn peek(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> Result<Decision> {
        self.start_peek(py, first, rest, cost, now)?.wait(py)
    }

    /// Forget `keys` completely, as an administrator does.
    ///
    /// After a correct password use `Attempt.success` instead: it does not let an attacker reset the limit on their
    /// address by logging in to their own account.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether the keys were forgotten: always true in memory, false if the store was not reached.
    #[pyo3(signature = (first=None, /, *rest), text_signature = "($self, *keys)")]
    pub(crate) fn reset(&self, py: Python<'_>, first: Arg<'_, '_>, rest: &Bound<'_, PyTuple>) -> Result<bool> {
        self.start_reset(first, rest)?.wait(py)
    }

    /// Count one attempt under all `keys`, to be settled once its outcome is known.
    ///
    /// As a block (`with limiter.attempt(...) as attempt`) a denied attempt raises on entry. An exception that leaves the
    /// block leaves the attempt counted.
    ///
    /// Parameters
    /// ----------
    /// keys, cost, now
    ///     As in `decide`.
    /// give_back_on
    ///     Exception classes that give the attempt back when they leave the block, because they report a failure of the
    ///     application and not a wrong guess, such as a database that is down. What was counted on an address alone
    ///     stays counted. A group of exceptions gives back only if every exception in it is named. Default none.
    ///
    /// Returns
    /// -------
    /// Attempt
    ///     Also if it is denied: test `attempt.allowed`, or enter it as a block.
    ///
    /// Raises
    /// ------
    /// ConfigError
    ///     As in `decide`, or `give_back_on` lists something that is not a subclass of `Exception`. Nothing was counted.
    #[pyo3(
        signature = (first=None, /, *rest, cost=None, now=None, give_back_on=None),
        text_signature = "($self, *keys, cost=1, now=None, give_back_on=())"
    )]
    pub(crate) fn attempt(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
        give_back_on: Arg<'_, '_>,
    ) -> Result<Attempt> {
        self.start_attempt(py, first, rest, cost, now, give_back_on)?.wait(py)
    }

    /// Return the counters: `allowed`, `denied`, `store_failed`, `evicted` and `tracked_keys`.
    pub(crate) fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stats::to_dict(py, &self.inner.stats())
    }

    pub(crate) fn __len__(&self) -> usize {
        self.inner.len()
    }

    // Without this an empty limiter would be false, like an empty list.
    fn __bool__(&self) -> bool {
        true
    }

    pub(crate) fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.clock.traverse(&visit)
    }
}

/// What an attempt needs besides the counted keys.
type Around = (Clock, GiveBackOn, Option<doorkeep::redis::RedisStore>);

// The calls: the blocking methods wait for them, those of `doorkeep.aio` wrap them in an awaitable.
impl Limiter {
    pub(crate) fn start_decide(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Decided, Decision> {
        let (cost, now) = (read(cost, input::cost)?, self.clock.now(py, now)?);
        let answer = with_keys(first, rest, |keys| Ok(self.inner.decide(keys, cost, now)))?;
        Ok(Call::new(self.backend.store(), answer, |_, decision, ()| Ok(decision?.into())))
    }

    pub(crate) fn start_allow(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Decided, bool> {
        let Call { answer, store, .. } = self.start_decide(py, first, rest, cost, now)?;
        Ok(Call::new(store, answer, |_, decision, ()| Ok(decision?.allowed())))
    }

    pub(crate) fn start_peek(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
    ) -> CallResult<'_, Decided, Decision> {
        let (cost, now) = (read(cost, input::cost)?, self.clock.now(py, now)?);
        let answer = with_keys(first, rest, |keys| Ok(self.inner.peek(keys, cost, now)))?;
        Ok(Call::new(self.backend.store(), answer, |_, decision, ()| Ok(decision?.into())))
    }

    pub(crate) fn start_reset(&self, first: Arg<'_, '_>, rest: &Bound<'_, PyTuple>) -> CallResult<'_, bool, bool> {
        let answer = with_keys(first, rest, |keys| Ok(self.inner.reset(keys)))?;
        Ok(Call::new(self.backend.store(), answer, |_, reset, ()| Ok(reset?)))
    }

    pub(crate) fn start_attempt<R: From<Attempt>>(
        &self,
        py: Python<'_>,
        first: Arg<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        cost: Arg<'_, '_>,
        now: Arg<'_, '_>,
        give_back_on: Arg<'_, '_>,
    ) -> CallResult<'_, either::Attempt, R, Around> {
        let give_back_on = GiveBackOn::read(give_back_on)?;
        let (cost, now) = (read(cost, input::cost)?, self.clock.now(py, now)?);
        let answer = with_keys(first, rest, |keys| Ok(self.inner.attempt(keys, cost, now)))?;
        let store = self.backend.store();
        Ok(Call {
            answer,
            convert: |_, inner, (clock, give_back_on, store)| {
                Ok(Attempt::new(inner?, clock, give_back_on, store).into())
            },
            context: (self.clock.clone_ref(py), give_back_on, store.cloned()),
            store,
        })
    }

    fn over(backend: Backend, capacity: usize, clock: Arg<'_, '_>, rules: Bound<'_, PyDict>) -> Result<Self> {
        let inner = either::Limiter::new(backend.store(), backend.on_error, capacity)?;
        Ok(Self { inner, backend, clock: Clock::new(clock)?, rules: rules.unbind() })
    }
}
