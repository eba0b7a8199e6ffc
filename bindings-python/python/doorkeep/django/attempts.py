"""The attempts of one request, so that guards, middleware and the authentication backend share them.

Everything here blocks; on an event loop call it through `run`. Invariants: an attempt stays counted unless it is
settled, and each guess is counted even if a request makes several.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.http import HttpRequest

from doorkeep import Attempt, Decision, InvalidKeyError, Key, Limiter
from doorkeep.django import conf
from doorkeep.django.requests import inner

__all__ = ["AsyncAttempt", "Counted", "RequestState", "extend", "reserve", "run", "state_of"]

_T = TypeVar("_T")


class Counted:
    """What one limiter counted for a request: its attempt, and the keys of the attempt."""

    def __init__(self, attempt: Attempt, keys: Iterable[Key]) -> None:
        self.attempt = attempt
        self.decision = attempt.decision
        self.keys = list(keys)
        # Whether a password was checked under it. Then only the backend settles it.
        self.is_guess = False

    def give_back(self, error: BaseException, give_back_on: tuple[type[Exception], ...] = ()) -> None:
        """Give back what guards counted, if the setting or `give_back_on` names the class of `error`."""
        if not self.is_guess:
            self.attempt._give_back(error, conf.current().give_back_on + give_back_on)


class RequestState:
    """What was counted and what was refused during one request."""

    def __init__(self) -> None:
        self.counted: dict[Limiter, Counted] = {}
        self.refused: tuple[Decision, list[Key]] | InvalidKeyError | None = None
        self.error: Exception | None = None
        # An async view may make several guesses concurrently, each in its own thread.
        self.lock = threading.Lock()

    def take_denial(self) -> tuple[Decision, list[Key]]:
        """Return the denial to the caller that answers it, so that the middleware does not answer it again."""
        refused, self.refused = self.refused, None
        assert isinstance(refused, tuple), "what was not counted was denied"
        return refused

    def give_back(self, error: BaseException) -> None:
        """Give back the attempts of a view that raised `error`, if the setting names its class."""
        for counted in self.counted.values():
            counted.give_back(error)


class AsyncAttempt:
    """`doorkeep.Attempt` for an async view: ``success``, ``failure``, ``cancel`` and ``extend`` are awaited."""

    def __init__(self, limiter: Limiter, attempt: Attempt) -> None:
        self._limiter = limiter
        self._attempt = attempt

    def __bool__(self) -> bool:
        return self._attempt.allowed

    @property
    def allowed(self) -> bool:
        """Whether the attempt may proceed. The truth of the attempt itself is the same."""
        return self._attempt.allowed

    @property
    def decision(self) -> Decision:
        """The decision about the attempt."""
        return self._attempt.decision

    async def success(self, **options: Any) -> bool:
        """Settle the attempt as a right guess, as `Attempt.success` does."""
        return await run(self._limiter, self._attempt.success, **options)

    async def failure(self) -> bool:
        """Settle the attempt as a wrong guess, as `Attempt.failure` does."""
        return self._attempt.failure()  # without a call to the store

    async def cancel(self) -> bool:
        """Take the attempt back, as `Attempt.cancel` does."""
        return await run(self._limiter, self._attempt.cancel)

    async def extend(self, *keys: Key, cost: int = 1) -> Decision:
        """Count further keys, as `Attempt.extend` does."""
        return await run(self._limiter, self._attempt.extend, *keys, cost=cost)


def state_of(request: HttpRequest | None) -> RequestState:
    """Return the state of a request; without a request, a new one that is not shared."""
    if request is None:
        return RequestState()
    carrier = inner(request)
    # In one step, since two threads of one request must get the same state.
    return carrier.__dict__.setdefault("_doorkeep_state", RequestState())  # type: ignore[no-any-return]


def reserve(
    request: HttpRequest | None, limiter: Limiter, keys: Iterable[Key], *, cost: int = 1, is_guess: bool = False
) -> Counted | None:
    """Count `keys` for a request, or record the denial and return None.

    Keys that a guard of this request has counted are not counted again, unless a guess was already made under them.
    """
    state, keys = state_of(request), list(keys)
    with state.lock:
        counted = state.counted.get(limiter)
        if is_guess and counted is not None:
            if counted.is_guess:
                counted = None
            else:
                counted.is_guess = True
    if counted is not None:
        return extend(state, counted, keys, cost=cost)
    counted = Counted(limiter.attempt(*keys, cost=cost), keys)
    counted.is_guess = is_guess
    if not counted.decision.allowed:
        state.refused = (counted.decision, keys)
        return None
    state.counted[limiter] = counted
    return counted


def extend(state: RequestState, counted: Counted, keys: list[Key], *, cost: int = 1) -> Counted | None:
    """Count further keys under an attempt, or record the denial and return None."""
    decision = counted.attempt.extend(*keys, cost=cost)
    if not decision.allowed:
        state.refused = (decision, keys)
        return None
    counted.keys += [key for key in keys if key not in counted.keys]
    counted.decision = decision
    return counted


async def run(limiter: Limiter, call: Callable[..., _T], *args: Any, **options: Any) -> _T:
    """Run a call that may use the store of `limiter`, without blocking the event loop.

    Sync and async views share one limiter, which runs in threads on an event loop: a second limiter would have its own
    tables.
    """
    if limiter.store is None:
        return call(*args, **options)
    return await sync_to_async(call, thread_sensitive=False)(*args, **options)
