"""One attempt per block and limiter, counted before anything is verified.

A block inside another of the same limiter and request finds its attempt and adds to it, and the first block takes over
what middleware has counted. A block that follows another or runs beside it is a guess of its own: a request may carry
many. Knows no routes and writes no answers. Invariant: an attempt stays counted unless the application settles it or
names the class of an exception that leaves the block. Tests, over real HTTP: tests/python/test_starlette.py and
test_fastapi.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias, overload

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.types import Scope

from doorkeep import Attempt, Key, Limiter, aio, http
from doorkeep._give_back import error_classes
from doorkeep.errors import ConfigError
from doorkeep.starlette.answers import admit

AnyLimiter: TypeAlias = Limiter | aio.Limiter
Errors: TypeAlias = type[Exception] | Iterable[type[Exception]]
Duration: TypeAlias = timedelta | float | str

# The blocks around this task, the outermost first. Tasks that run beside each other do not see each other's.
_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("doorkeep_blocks", default=())


@overload
def attempt_for(
    connection: HTTPConnection,
    limiter: Limiter,
    *keys: Key,
    cost: int = 1,
    give_back_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
) -> AbstractAsyncContextManager[Attempt]: ...
@overload
def attempt_for(
    connection: HTTPConnection,
    limiter: aio.Limiter,
    *keys: Key,
    cost: int = 1,
    give_back_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
) -> AbstractAsyncContextManager[aio.Attempt]: ...
@asynccontextmanager
async def attempt_for(
    connection: HTTPConnection,
    limiter: AnyLimiter,
    *keys: Key,
    cost: int = 1,
    give_back_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
) -> AsyncIterator[Any]:
    """Count a request as an attempt, for the length of a block.

    It stays counted unless it is settled: whatever the block returns or raises, and even if the client goes away. A
    block inside this one, of the same limiter and request, gets the same attempt and counts only the keys that are new;
    an attempt is settled once. A block after this one or beside it is another attempt, so that no batch of guesses and
    no long websocket counts as one.

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
    give_back_on
        Exception classes that give the attempt back when they leave the outermost block, because they report a failure
        of the application, such as a database that is down. What was counted on an address alone stays counted.
    round_up
        A duration, at least ``1s``: ``Retry-After`` is rounded up to a multiple of it when a rule denied that is not
        of the address alone, so that it does not tell when others have guessed.
    rate_limit
        Whether ``RateLimit`` and ``RateLimit-Policy`` go with the answer, which needs `install`. They tell a stranger
        how many attempts are left, of their own and of others.

    Raises
    ------
    AttemptDenied, LimiterUnavailable
        The block is not entered. `install` answers them for endpoints. In middleware of your own, which stands outside
        the handlers of exceptions, answer them there.
    InvalidKeyError
        There is no key. Nothing was counted.
    """
    http.check_round_up(round_up)
    classes = error_classes(give_back_on)
    scope, around = connection.scope, _blocks.get()
    counted = _for_block(scope, limiter, keys)
    counted = await count(scope, limiter, keys, counted, cost=cost, round_up=round_up, rate_limit=rate_limit)
    counted.give_back_on += classes
    is_outermost, counted.is_open = not counted.is_open, True
    _blocks.set((*around, _Block(_offered(scope), limiter, counted)))
    try:
        yield counted.attempt
    except Exception as error:
        if is_outermost:
            await _ask(limiter, counted.attempt._give_back, error, counted.give_back_on)
        raise
    finally:
        counted.is_open = not is_outermost
        _blocks.set(around)


class Counted:
    """What one limiter counted for a request: its attempt, and the exception classes that give it back."""

    __slots__ = ("attempt", "give_back_on", "is_open")

    def __init__(self, attempt: Attempt | aio.Attempt) -> None:
        self.attempt = attempt
        self.give_back_on: tuple[type[Exception], ...] = ()
        self.is_open = False


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of `attempt_for`, and the keys that blocks inside it have asked for."""

    request: dict[AnyLimiter, Counted]
    limiter: AnyLimiter
    counted: Counted
    used: set[Key] = field(default_factory=set)


async def count(
    scope: Scope,
    limiter: AnyLimiter,
    keys: Iterable[Key],
    counted: Counted | None,
    *,
    cost: int,
    round_up: Duration | None,
    rate_limit: bool,
) -> Counted:
    """Count keys in an attempt at hand or a new one, or raise the denial."""
    keys = tuple(keys)
    if counted is None:
        counted = Counted(await _ask(limiter, limiter.attempt, *keys, cost=cost))
        decision = counted.attempt.decision
    else:
        decision = await _ask(limiter, counted.attempt.extend, *keys, cost=cost)
    admit(scope, decision, keys, round_up=round_up, rate_limit=rate_limit)
    return counted


def check_limiter(limiter: object) -> None:
    """Refuse anything but a limiter when an application is made, not at its first request."""
    if not isinstance(limiter, AnyLimiter):
        raise ConfigError("limiter must be a Limiter")


def at_hand(scope: Scope, limiter: AnyLimiter) -> Counted | None:
    """Return the attempt of the block around, or take the one that was offered."""
    block = _innermost(scope, limiter)
    # Taken before anything is awaited: of blocks that run at once only one has what middleware counted.
    return _offered(scope).pop(limiter, None) if block is None else block.counted


def offer(scope: Scope, limiter: AnyLimiter, counted: Counted) -> None:
    """Leave an attempt that no block is around for the first block of the request."""
    if not counted.is_open:
        _offered(scope)[limiter] = counted


def _for_block(scope: Scope, limiter: AnyLimiter, keys: tuple[Key, ...]) -> Counted | None:
    # Of the blocks inside one block, the first that asks for a key shares what is counted. The next is another guess.
    block = _innermost(scope, limiter)
    if block is not None:
        if not block.used.isdisjoint(keys):
            return None
        block.used.update(keys)
    return at_hand(scope, limiter)


def _innermost(scope: Scope, limiter: AnyLimiter) -> _Block | None:
    request = _offered(scope)
    mine = (block for block in reversed(_blocks.get()) if block.request is request and block.limiter is limiter)
    return next((block for block in mine if block.counted.is_open), None)


def _offered(scope: Scope) -> dict[AnyLimiter, Counted]:
    # In the scope itself and not in its state, which some servers give to all requests. Every copy of the scope that
    # middleware makes has the same one, so that it stands for the request.
    offered: dict[AnyLimiter, Counted] = scope.setdefault("doorkeep.attempts", {})
    return offered


async def _ask(limiter: AnyLimiter, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    if isinstance(limiter, Limiter) and limiter.store is not None:
        # A blocking limiter waits for its store, which the event loop must not.
        return await run_in_threadpool(call, *arguments, **options)
    answer = call(*arguments, **options)
    return await answer if isinstance(answer, Coroutine) else answer
