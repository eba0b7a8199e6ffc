"""The attempts of one request, so that whoever counts second finds what the first one counted.

All of it is blocking; on an event loop it goes through `run`. Invariant: an attempt that judged a guess is never given
back, and each guess is counted even if a request makes several.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestAborted,
    SuspiciousOperation,
    ValidationError,
)
from django.http import Http404, HttpRequest, UnreadablePostError
from django.http.multipartparser import MultiPartParserError

from doorkeep import Attempt, AttemptDenied, Decision, InvalidKeyError, Key, Limiter, RateLimitExceeded
from doorkeep.django import conf
from doorkeep.django.requests import inner

__all__ = ["AsyncAttempt", "Counted", "Record", "counts", "extend", "record_of", "reserve", "run"]

_T = TypeVar("_T")

# What Django answers below 500, or a client can bring about: a guess all the same.
_ANSWERS = (
    AttemptDenied,
    BadRequest,
    Http404,
    InvalidKeyError,
    MultiPartParserError,
    PermissionDenied,
    RateLimitExceeded,
    RequestAborted,
    SuspiciousOperation,
    UnreadablePostError,
    ValidationError,
)


class Counted:
    """One attempt of a request, and what may still become of it."""

    def __init__(self, attempt: Attempt, keys: Iterable[Key]) -> None:
        self.attempt = attempt
        self.decision = attempt.decision
        self.keys = list(keys)
        # Whether a password was looked at under it. Then only the outcome of that settles it.
        self.is_guess = False
        # Whether a backend said no. What happens later, such as a directory that is away, does not make it free.
        self.is_wrong = False
        # The rules of the middleware. A request that makes a view crash is not free for its address.
        self.kept: frozenset[str] = frozenset()
        self.count_on = conf.current().count_on

    def give_back(self, error: Exception) -> None:
        """Take back what guards counted for a view that crashed, unless it is a guess."""
        given_back = {key.rule for key in self.keys} - self.kept
        if given_back and not self.is_guess and not counts(error, self.count_on):
            self.attempt.success(give_back=given_back)

    def of(self, names: Iterable[str]) -> list[str]:
        """Give those of `names` that the attempt holds."""
        held = {key.rule for key in self.keys}
        return [name for name in names if name in held]


class Record:
    """What was counted and refused during one request."""

    def __init__(self) -> None:
        self.counted: dict[Limiter, Counted] = {}
        self.refused: tuple[Decision, list[Key]] | InvalidKeyError | None = None
        self.error: Exception | None = None
        # Async views may guess several times at once, each in a thread of its own.
        self.lock = threading.Lock()

    def take_denial(self) -> tuple[Decision, list[Key]]:
        """Give the denial to whoever answers it, so that the middleware does not."""
        refused, self.refused = self.refused, None
        assert isinstance(refused, tuple), "what was not counted was denied"
        return refused

    def give_back(self, error: Exception) -> None:
        """Take back what guards counted for a view that crashed."""
        for counted in self.counted.values():
            counted.give_back(error)


class AsyncAttempt:
    """`doorkeep.Attempt` for an async view: ``success``, ``cancel`` and ``extend`` are awaited."""

    def __init__(self, limiter: Limiter, attempt: Attempt) -> None:
        self._limiter = limiter
        self._attempt = attempt

    @property
    def allowed(self) -> bool:
        """Whether the attempt may proceed."""
        return self._attempt.allowed

    @property
    def decision(self) -> Decision:
        """The whole answer to the attempt."""
        return self._attempt.decision

    async def success(self, **options: Any) -> bool:
        """Settle the attempt as a right guess, as `Attempt.success` does."""
        return await run(self._limiter, self._attempt.success, **options)

    async def cancel(self) -> bool:
        """Take the attempt back, as `Attempt.cancel` does."""
        return await run(self._limiter, self._attempt.cancel)

    async def extend(self, *keys: Key, cost: int = 1) -> Decision:
        """Count further keys, as `Attempt.extend` does."""
        return await run(self._limiter, self._attempt.extend, *keys, cost=cost)


def record_of(request: HttpRequest | None) -> Record:
    """Give the record of a request; without a request one that nobody else sees."""
    if request is None:
        return Record()
    carrier = inner(request)
    # Two threads of one request must not each make one.
    return carrier.__dict__.setdefault("_doorkeep_record", Record())  # type: ignore[no-any-return]


def reserve(
    request: HttpRequest | None, limiter: Limiter, keys: Iterable[Key], *, cost: int = 1, is_guess: bool = False
) -> Counted | None:
    """Count `keys` for a request, or note that they were refused and give None.

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
    """Count further keys under an attempt, or note that they were refused and give None."""
    decision = counted.attempt.extend(*keys, cost=cost)
    if not decision.allowed:
        record.refused = (decision, keys)
        return None
    counted.keys += [key for key in keys if key not in counted.keys]
    counted.decision = decision
    return counted


def counts(error: BaseException, count_on: tuple[type[BaseException], ...] = ()) -> bool:
    """Say whether an exception is an answer, which leaves an attempt counted, and no crash."""
    # Of a group of exceptions one that counts is enough: a task group must not make guesses free.
    if isinstance(leaves := getattr(error, "exceptions", None), tuple):
        return any(counts(leaf, count_on) for leaf in leaves)
    # Whoever raises one has imported it; whoever has not, need not have it installed.
    answers = sys.modules.get("rest_framework.exceptions")
    if answers is not None and isinstance(error, answers.APIException):
        return error.status_code < 500 or isinstance(error, count_on)
    return isinstance(error, _ANSWERS + count_on)


async def run(limiter: Limiter, call: Callable[..., _T], *args: Any, **options: Any) -> _T:
    """Call what may ask `limiter`, without making the event loop wait for a store.

    One limiter serves both kinds of views, in threads on an event loop: a second one would have tables of its own.
    """
    if limiter.store is None:
        return call(*args, **options)
    return await sync_to_async(call, thread_sensitive=False)(*args, **options)
