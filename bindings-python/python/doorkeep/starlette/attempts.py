"""One attempt per block and limiter, counted before anything is verified.

A block inside another of the same limiter and request finds its attempt and adds to it, and the first block takes over
what middleware has counted. A block that follows another or runs beside it is a guess of its own: a request may carry
many. Knows no routes and writes no answers. Invariant: what a request has spent is given back only by a failure of the
server, and never what `doorkeep.starlette.AddressLimit` counted. Tests, over real HTTP: tests/python/test_starlette.py
and test_fastapi.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias, overload

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException, WebSocketException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import Scope
from starlette.websockets import WebSocketDisconnect

from doorkeep import Attempt, Key, Limiter, aio, http
from doorkeep.errors import ConfigError, InvalidKeyError, RateLimitExceeded
from doorkeep.starlette.answers import admit

AnyLimiter: TypeAlias = Limiter | aio.Limiter
Errors: TypeAlias = type[BaseException] | Iterable[type[BaseException]]
Duration: TypeAlias = timedelta | float | str

# What a client can bring about, or the framework answers below 500: a guess all the same.
_ANSWERS = (WebSocketException, ClientDisconnect, WebSocketDisconnect, InvalidKeyError, RateLimitExceeded)

# The blocks around this task, the outermost first. Tasks that run beside each other do not see each other's.
_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("doorkeep_blocks", default=())


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
    leaves the block that is no answer below 500: a crash is not a guess. A block inside this one, of the same limiter
    and request, gives the same attempt and counts only the keys that are new; an attempt is settled once. A block after
    this one or beside it is another attempt, so that no batch of guesses and no long websocket counts as one.

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
        The block is not entered. `install` answers them for endpoints. In middleware of your own, which stands outside
        the handlers of exceptions, answer them there.
    InvalidKeyError
        There is no key. Nothing was counted.
    """
    http.check_round_up(round_up)
    scope, around = connection.scope, _blocks.get()
    held = _for_block(scope, limiter, keys)
    held = await count(scope, limiter, keys, held, cost=cost, round_up=round_up, rate_limit=rate_limit)
    held.count_on += classes(count_on)
    held.given_back |= {key.rule for key in keys} - held.kept
    is_outermost, held.is_open = not held.is_open, True
    _blocks.set((*around, _Block(_offered(scope), limiter, held)))
    try:
        yield held.attempt
    except Exception as error:
        if is_outermost and not held.counts(error):
            await _give_back(limiter, held)
        raise
    finally:
        held.is_open = not is_outermost
        _blocks.set(around)


class Held:
    """An attempt at hand in a request, what leaves it counted, and which of its rules a crash gives back."""

    __slots__ = ("attempt", "count_on", "given_back", "is_open", "kept")

    def __init__(self, attempt: Attempt | aio.Attempt) -> None:
        self.attempt = attempt
        self.count_on: tuple[type[BaseException], ...] = ()
        self.given_back: set[str] = set()
        self.is_open = False
        self.kept: set[str] = set()

    def counts(self, error: BaseException) -> bool:
        """Whether an error that leaves a block leaves the attempt counted."""
        # Of a group of exceptions one that counts is enough: a task group must not make guesses free.
        if isinstance(leaves := getattr(error, "exceptions", None), tuple):
            return any(self.counts(leaf) for leaf in leaves)
        if isinstance(error, HTTPException):
            return error.status_code < 500 or isinstance(error, self.count_on)
        return isinstance(error, _ANSWERS + self.count_on)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of `attempt_for`, and the keys that blocks inside it have asked for."""

    request: dict[AnyLimiter, Held]
    limiter: AnyLimiter
    held: Held
    used: set[Key] = field(default_factory=set)


async def count(
    scope: Scope,
    limiter: AnyLimiter,
    keys: Iterable[Key],
    held: Held | None,
    *,
    cost: int,
    round_up: Duration | None,
    rate_limit: bool,
) -> Held:
    """Count keys in an attempt at hand or a new one, or raise the denial."""
    keys = tuple(keys)
    if held is None:
        held = Held(await _ask(limiter, limiter.attempt, *keys, cost=cost))
        decision = held.attempt.decision
    else:
        decision = await _ask(limiter, held.attempt.extend, *keys, cost=cost)
    admit(scope, decision, keys, round_up=round_up, rate_limit=rate_limit)
    return held


def check_limiter(limiter: object) -> None:
    """Refuse what is no limiter when an application is made, not at its first request."""
    if not isinstance(limiter, AnyLimiter):
        raise ConfigError("limiter must be a Limiter")


def at_hand(scope: Scope, limiter: AnyLimiter) -> Held | None:
    """Give the attempt of the block around, or take the one that was offered."""
    block = _innermost(scope, limiter)
    # Taken before anything is awaited: of blocks that run at once only one has what middleware counted.
    return _offered(scope).pop(limiter, None) if block is None else block.held


def offer(scope: Scope, limiter: AnyLimiter, held: Held) -> None:
    """Leave an attempt that no block is around for the first block of the request."""
    if not held.is_open:
        _offered(scope)[limiter] = held


def _for_block(scope: Scope, limiter: AnyLimiter, keys: tuple[Key, ...]) -> Held | None:
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
    return next((block for block in mine if block.held.is_open), None)


def _offered(scope: Scope) -> dict[AnyLimiter, Held]:
    # In the scope itself and not in its state, which some servers give to all requests. Every copy of the scope that
    # middleware makes has the same one, so that it stands for the request.
    offered: dict[AnyLimiter, Held] = scope.setdefault("doorkeep.attempts", {})
    return offered


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
