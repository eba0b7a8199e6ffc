"""The attempts of one request, so that whoever counts second finds what the first one counted.

All of it is blocking; on an event loop it goes through `run`. Invariant: an attempt stays counted unless somebody
settles it, and each guess is counted even if a request makes several.
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

__all__ = ["AsyncAttempt", "Counted", "Record", "extend", "record_of", "reserve", "run"]

_T = TypeVar("_T")


class Counted:
    """One attempt of a request, and the keys that it was counted under."""

    def __init__(self, attempt: Attempt, keys: Iterable[Key]) -> None:
        self.attempt = attempt
        self.decision = attempt.decision
        self.keys = list(keys)
        # Whether a password was looked at under it. Then only the backend settles it.
        self.is_guess = False

    def leave(self, error: BaseException, give_back_on: tuple[type[Exception], ...] = ()) -> None:
        """Give back what guards counted, if the setting or `give_back_on` names the class of `error`."""
        if not self.is_guess:
            self.attempt._leave(error, conf.current().give_back_on + give_back_on)


class Record:
    """What was counted and refused during one request."""

    def __init__(self) -> None:
        self.counted: dict[Limiter, Counted] = {}
        self.refused: tuple[Decision, list[Key]] | InvalidKeyError | None = None
        self.error: Exception | None = None
        # Async views may guess several times at once, each in a thread of its own.
        self.lock = threading.Lock()

    def take_denial(self) -> tuple[Decision, list[Key]]:
        """Return the denial to whoever answers it, so that the middleware does not."""
        refused, self.refused = self.refused, None
        assert isinstance(refused, tuple), "what was not counted was denied"
        return refused

    def leave(self, error: BaseException) -> None:
        """Leave the attempts of a view that raised."""
        for counted in self.counted.values():
            counted.leave(error)


class AsyncAttempt:
    """`doorkeep.Attempt` for an async view: ``success``, ``failure``, ``cancel`` and ``extend`` are awaited."""

    def __init__(self, limiter: Limiter, attempt: Attempt) -> None:
        self._limiter = limiter
        self._attempt = attempt

    def __bool__(self) -> bool:
        return self._attempt.allowed

    @property
    def allowed(self) -> bool:
        """Whether the attempt may proceed. So is the truth of the attempt itself."""
        return self._attempt.allowed

    @property
    def decision(self) -> Decision:
        """The whole answer to the attempt."""
        return self._attempt.decision

    async def success(self, **options: Any) -> bool:
        """Settle the attempt as a right guess, as `Attempt.success` does."""
        return await run(self._limiter, self._attempt.success, **options)

    async def failure(self) -> bool:
        """Settle the attempt as a wrong guess, as `Attempt.failure` does."""
        return self._attempt.failure()  # asks no store

    async def cancel(self) -> bool:
        """Take the attempt back, as `Attempt.cancel` does."""
        return await run(self._limiter, self._attempt.cancel)

    async def extend(self, *keys: Key, cost: int = 1) -> Decision:
        """Count further keys, as `Attempt.extend` does."""
        return await run(self._limiter, self._attempt.extend, *keys, cost=cost)


def record_of(request: HttpRequest | None) -> Record:
    """Return the record of a request; without a request one that nobody else sees."""
    if request is None:
        return Record()
    carrier = inner(request)
    # Two threads of one request must not each make one.
    return carrier.__dict__.setdefault("_doorkeep_record", Record())  # type: ignore[no-any-return]


def reserve(
    request: HttpRequest | None, limiter: Limiter, keys: Iterable[Key], *, cost: int = 1, is_guess: bool = False
) -> Counted | None:
    """Count `keys` for a request, or note that they were refused and return None.

    Keys that a guard of this request counted are not counted again, unless a guess was made under them already.
    """
    record, keys = record_of(request), list(keys)
    with record.lock:
        counted = record.counted.get(limiter)
        if is_guess and counted is not None:
            if counted.is_guess:
                counted = None
            else:
                counted.is_guess = True
    if counted is not None:
        counted = extend(record, counted, keys, cost=cost)
    else:
        made = Counted(limiter.attempt(*keys, cost=cost), keys)
        made.is_guess = is_guess
        if not made.decision.allowed:
            record.refused = (made.decision, keys)
            return None
        counted = record.counted[limiter] = made
    return counted


def extend(record: Record, counted: Counted, keys: list[Key], *, cost: int = 1) -> Counted | None:
    """Count further keys under an attempt, or note that they were refused and return None."""
    decision = counted.attempt.extend(*keys, cost=cost)
    if not decision.allowed:
        record.refused = (decision, keys)
        return None
    counted.keys += [key for key in keys if key not in counted.keys]
    counted.decision = decision
    return counted


async def run(limiter: Limiter, call: Callable[..., _T], *args: Any, **options: Any) -> _T:
    """Call what may ask `limiter`, without making the event loop wait for a store.

    One limiter serves both kinds of views, in threads on an event loop: a second one would have tables of its own.
    """
    if limiter.store is None:
        return call(*args, **options)
    return await sync_to_async(call, thread_sensitive=False)(*args, **options)
