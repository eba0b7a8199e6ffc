"""One attempt per request and limiter, counted before anything is verified.

The attempt stands in the scope, where a second guard of the same limiter finds it and adds to it. Knows no routes and
writes no answers. Invariant: what a request has spent is given back only by a failure of the server, and never what
`doorkeep.starlette.AddressLimit` counted. Tested over real HTTP in tests/python/test_starlette.py and test_fastapi.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, TypeAlias, overload

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException, WebSocketException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import Scope
from starlette.websockets import WebSocketDisconnect

from doorkeep import Attempt, Key, Limiter, aio, http
from doorkeep.errors import InvalidKeyError, RateLimitExceeded
from doorkeep.starlette.answers import admit

AnyLimiter: TypeAlias = Limiter | aio.Limiter
Errors: TypeAlias = type[BaseException] | Iterable[type[BaseException]]
Duration: TypeAlias = timedelta | float | str

# What a client can bring about, or the framework answers below 500: a guess all the same.
_ANSWERS = (WebSocketException, ClientDisconnect, WebSocketDisconnect, InvalidKeyError, RateLimitExceeded)


@overload
def attempt_for(
    connection: HTTPConnection,
    limiter: Limiter,
    *keys: Key,
    cost: int = 1,
    count_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
) -> AbstractAsyncContextManager[Attempt]: ...
@overload
def attempt_for(
    connection: HTTPConnection,
    limiter: aio.Limiter,
    *keys: Key,
    cost: int = 1,
    count_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
) -> AbstractAsyncContextManager[aio.Attempt]: ...
@asynccontextmanager
async def attempt_for(
    connection: HTTPConnection,
    limiter: AnyLimiter,
    *keys: Key,
    cost: int = 1,
    count_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
) -> AsyncIterator[Any]:
    """Count a request as an attempt, for the length of a block.

    It stays counted whatever the block does, also when the client goes away. It is given back when an `Exception`
    leaves the block that is no answer below 500: a crash is not a guess. A second block of the same limiter in one
    request gives the same attempt and counts only the keys that are new; an attempt is settled once.

    Parameters
    ----------
    connection
        The request, or a websocket before or after it is accepted.
    limiter
        A `doorkeep.Limiter` or a `doorkeep.aio.Limiter`; the attempt is of the same kind. A blocking one over a store
        is asked in the thread pool; settle its attempts there, too.
    *keys
        What to count, made before any account is looked up.
    cost
        How much the request spends of each rate.
    count_on
        Exception classes that leave the attempt counted when they leave the block, besides answers below 500.
    round_up
        A duration, at least ``1s``: ``Retry-After`` is rounded up to a multiple of it when a rule denied that is not
        of the address alone, so that it does not tell when others have guessed.
    rate_limit
        Whether ``RateLimit`` and ``RateLimit-Policy`` go with the answer, which needs `install`. They tell a stranger
        how many attempts are left, of their own and of others.

    Raises
    ------
    AttemptDenied, LimiterUnavailable
        The block is not entered. `install` answers them.
    InvalidKeyError
        There is no key. Nothing was counted.
    """
    http.check_round_up(round_up)
    held = await count(connection.scope, limiter, keys, cost=cost, round_up=round_up, rate_limit=rate_limit)
    outermost = not held.guarded
    held.guarded = True
    held.count_on += classes(count_on)
    held.given_back |= {key.rule for key in keys} - held.kept
    if not outermost:
        yield held.attempt
        return
    try:
        yield held.attempt
    except Exception as error:
        if not held.counts(error):
            await _give_back(limiter, held)
        raise
    finally:
        # A later block of this request must not give back what this one has counted.
        held.kept |= held.given_back
        held.given_back.clear()
        held.guarded = False


class Held:
    """An attempt at hand in a request, what leaves it counted, and which of its rules a crash gives back."""

    __slots__ = ("attempt", "count_on", "given_back", "guarded", "kept")

    def __init__(self, attempt: Attempt | aio.Attempt) -> None:
        self.attempt = attempt
        self.count_on: tuple[type[BaseException], ...] = ()
        self.given_back: set[str] = set()
        self.guarded = False
        self.kept: set[str] = set()

    def counts(self, error: BaseException) -> bool:
        """Whether an error that leaves a block leaves the attempt counted."""
        # Of a group of exceptions one that counts is enough: a task group must not make guesses free.
        if isinstance(leaves := getattr(error, "exceptions", None), tuple):
            return any(self.counts(leaf) for leaf in leaves)
        if isinstance(error, HTTPException):
            return error.status_code < 500 or isinstance(error, self.count_on)
        return isinstance(error, _ANSWERS + self.count_on)


async def count(
    scope: Scope,
    limiter: AnyLimiter,
    keys: Iterable[Key],
    *,
    cost: int,
    round_up: Duration | None,
    rate_limit: bool,
) -> Held:
    """Count keys in the one attempt that this request has of this limiter, or raise the denial."""
    # In the scope itself and not in its state, which some servers give to all requests.
    attempts: dict[AnyLimiter, Held] = scope.setdefault("doorkeep.attempts", {})
    keys = tuple(keys)
    held = attempts.get(limiter)
    if held is None:
        held = Held(await _ask(limiter, limiter.attempt, *keys, cost=cost))
        decision = held.attempt.decision
    else:
        decision = await _ask(limiter, held.attempt.extend, *keys, cost=cost)
    admit(scope, decision, keys, round_up=round_up, rate_limit=rate_limit)
    attempts[limiter] = held
    return held


async def _give_back(limiter: AnyLimiter, held: Held) -> None:
    if held.kept:
        await _ask(limiter, held.attempt.success, give_back=held.given_back)
    else:
        await _ask(limiter, held.attempt.cancel)


async def _ask(limiter: AnyLimiter, call: Callable[..., Any], *keys: Key, **options: Any) -> Any:
    if isinstance(limiter, Limiter) and limiter.store is not None:
        # A blocking limiter waits for its store, which the event loop must not.
        return await run_in_threadpool(call, *keys, **options)
    answer = call(*keys, **options)
    return await answer if isinstance(answer, Coroutine) else answer


def classes(errors: Errors) -> tuple[type[BaseException], ...]:
    """Take one class or several."""
    return (errors,) if isinstance(errors, type) else tuple(errors)
