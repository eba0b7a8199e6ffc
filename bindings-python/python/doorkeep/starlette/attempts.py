"""One attempt per block and limiter, counted before anything is verified.

A block inside another block of the same limiter and request adds to its attempt. The first block takes over what
middleware has counted. A block after another block, or concurrent with it, is a separate guess: a request may carry
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

# The blocks around this task, the outermost first. Concurrent tasks do not see the blocks of each other.
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

    The attempt stays counted unless it is settled, whatever the block returns or raises, and even if the client
    disconnects. A block inside this one, of the same limiter and request, gets the same attempt and counts only the
    keys that are new; an attempt is settled once. A later or concurrent block is another attempt, so that a batch of
    guesses or a long websocket does not count as one.

    Parameters
    ----------
    connection
        The request, or a websocket before or after it is accepted.
    limiter
        A `doorkeep.Limiter` or a `doorkeep.aio.Limiter`; the attempt is of the same kind. A blocking limiter over a
        store runs in the thread pool; settle its attempts there, too.
    *keys
        The keys to count, made before any account is looked up.
    cost
        How much the request spends of each rate.
    give_back_on
        Exception classes that give the attempt back when they leave the outermost block, because they report a failure
        of the application, such as a database that is down. What was counted on an address alone stays counted.
    round_up
        A duration, at least ``1s``: ``Retry-After`` is rounded up to a multiple of it unless the rule that denied is
        keyed by the address alone, so that the wait does not reveal when others have guessed.
    rate_limit
        Whether to send ``RateLimit`` and ``RateLimit-Policy``, which needs `install`. They show any client how many
        attempts are left, and so how many attempts others have made.

    Raises
    ------
    AttemptDenied, LimiterUnavailable
        The block is not entered. `install` answers them for endpoints. In your own middleware, which is outside the
        exception handlers, answer them yourself.
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
    """A block of `attempt_for`, and the keys that blocks inside it have counted."""

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
    """Count keys in the given attempt or in a new one, or raise the denial."""
    keys = tuple(keys)
    if counted is None:
        counted = Counted(await _ask(limiter, limiter.attempt, *keys, cost=cost))
        decision = counted.attempt.decision
    else:
        decision = await _ask(limiter, counted.attempt.extend, *keys, cost=cost)
    admit(scope, decision, keys, round_up=round_up, rate_limit=rate_limit)
    return counted


def check_limiter(limiter: object) -> None:
    """Raise ConfigError for anything but a limiter, when an application is made and not at its first request."""
    if not isinstance(limiter, AnyLimiter):
        raise ConfigError("limiter must be a Limiter")


def at_hand(scope: Scope, limiter: AnyLimiter) -> Counted | None:
    """Return the attempt of the surrounding block, or take the attempt that was offered."""
    block = _innermost(scope, limiter)
    # Taken before anything is awaited: only one of several concurrent blocks gets what middleware counted.
    return _offered(scope).pop(limiter, None) if block is None else block.counted


def offer(scope: Scope, limiter: AnyLimiter, counted: Counted) -> None:
    """Offer an attempt that belongs to no block to the first block of the request."""
    if not counted.is_open:
        _offered(scope)[limiter] = counted


def _for_block(scope: Scope, limiter: AnyLimiter, keys: tuple[Key, ...]) -> Counted | None:
    # Of the blocks inside one block, the first that uses a key shares the attempt. The next one is another guess.
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
    # In the scope itself and not in its state, which some servers share between requests. Every copy of the scope that
    # middleware makes has the same dictionary, so it identifies the request.
    offered: dict[AnyLimiter, Counted] = scope.setdefault("doorkeep.attempts", {})
    return offered


async def _ask(limiter: AnyLimiter, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    if isinstance(limiter, Limiter) and limiter.store is not None:
        # A blocking limiter waits for its store, which must not block the event loop.
        return await run_in_threadpool(call, *arguments, **options)
    answer = call(*arguments, **options)
    return await answer if isinstance(answer, Coroutine) else answer
