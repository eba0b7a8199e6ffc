"""A guard for FastAPI endpoints: each request is an attempt, counted before the endpoint runs.

::

    limiter = aio.Limiter()

    def login_keys(request: Request, form: LoginForm) -> list[Key]:
        address = request.client.host
        return [login_ip.ip_key(address), login_account_ip.key(form.email, network(address))]

    @app.post("/login")
    async def login(form: LoginForm, attempt: Annotated[Attempt, Depends(guard(limiter, keys=login_keys))]):
        user = await verify(form.email, form.password)
        if user is None:
            raise HTTPException(401)
        await attempt.success(forgive=[login_account_ip])

    install(app)

The attempt stays counted whatever the endpoint answers, and also when the client goes away. It is given back only when
an exception escapes the endpoint that is no answer below 500: a crash is not a guess. An application that reports wrong
passwords by exceptions of its own names them in ``count_on``.

Does no arithmetic and reads no clock. Invariant: a denial's bytes depend on nothing but the wait.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException, WebSocketException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocketDisconnect

from doorkeep import Attempt, Key, Limiter, aio
from doorkeep.errors import AttemptDenied, InvalidKeyError, LimiterUnavailable, _denial

__all__ = ["guard", "install"]

_Errors = type[BaseException] | Iterable[type[BaseException]]

# What a client can bring about, or the framework answers below 500: a guess all the same.
_ANSWERS = (
    RequestValidationError,
    WebSocketRequestValidationError,
    WebSocketException,
    ClientDisconnect,
    WebSocketDisconnect,
    InvalidKeyError,
)


def guard(
    limiter: Limiter | aio.Limiter,
    keys: Callable[..., Iterable[Key] | Awaitable[Iterable[Key]]],
    *,
    cost: int = 1,
    count_on: _Errors = (),
) -> Callable[..., Awaitable[Any]]:
    """Make a dependency that counts the request as an attempt and gives the attempt.

    A second guard of the same limiter in one request gives the same attempt and counts only the keys that are new.

    Parameters
    ----------
    limiter
        A `doorkeep.Limiter` or a `doorkeep.aio.Limiter`; the attempt is of the same kind. A blocking one over a store
        is asked in the thread pool; settle its attempts in endpoints that are no coroutines.
    keys
        A dependency of its own, giving the keys to count. Keep look-ups of the account out of it.
    cost
        How much the request spends of each rate.
    count_on
        Exception classes that leave the attempt counted when they escape the endpoint, besides answers below 500.

    Returns
    -------
    Callable
        For ``Depends``. Denied, it raises `AttemptDenied` or `LimiterUnavailable`, which `install` answers.
    """
    counted = _classes(count_on)

    async def counting(connection: HTTPConnection, named: Annotated[Any, Depends(keys)]) -> AsyncIterator[Any]:
        attempts = _attempts_of(connection)
        if limiter in attempts:
            entry = attempts[limiter]
            _admit(await _ask(limiter, entry.attempt.extend, *named, cost=cost))
            entry.count_on += counted
            yield entry.attempt
            return
        entry = _Entry(await _ask(limiter, limiter.attempt, *named, cost=cost), counted)
        _admit(entry.attempt.decision)
        attempts[limiter] = entry
        try:
            yield entry.attempt
        except Exception as error:
            if not entry.counts(error):
                await _ask(limiter, entry.attempt.cancel)
            raise

    # With scope="function" the exit comes before the response is sent, so that a client which breaks the connection
    # while it is sent cannot have its guess given back.
    async def attempt(counted: Annotated[Any, Depends(counting, scope="function")]) -> Any:
        return counted

    return attempt


def install(app: FastAPI) -> None:
    """Answer denials: 429 with ``Retry-After``, 503 when the limiter is unavailable, 400 for keys that are none.

    ``Retry-After`` is left out when waiting cannot help. The answers are the same bytes for everybody.

    Parameters
    ----------
    app
        The application whose exception handlers are set.
    """
    app.add_exception_handler(AttemptDenied, _too_many)
    app.add_exception_handler(LimiterUnavailable, _unavailable)
    app.add_exception_handler(InvalidKeyError, _bad_key)


class _Entry:
    """An attempt at hand in a request, and what leaves it counted."""

    def __init__(self, attempt: Attempt | aio.Attempt, count_on: tuple[type[BaseException], ...]) -> None:
        self.attempt = attempt
        self.count_on = count_on

    def counts(self, error: BaseException) -> bool:
        # Of a group of exceptions one that counts is enough: a task group must not make guesses free.
        if isinstance(leaves := getattr(error, "exceptions", None), tuple):
            return any(self.counts(leaf) for leaf in leaves)
        if isinstance(error, HTTPException):
            return error.status_code < 500 or isinstance(error, self.count_on)
        return isinstance(error, _ANSWERS + self.count_on)


def _attempts_of(connection: HTTPConnection) -> dict[Limiter | aio.Limiter, _Entry]:
    state = connection.state
    if not hasattr(state, "doorkeep_attempts"):
        state.doorkeep_attempts = {}
    attempts: dict[Limiter | aio.Limiter, _Entry] = state.doorkeep_attempts
    return attempts


def _admit(decision: Any) -> None:
    if not decision.allowed:
        raise _denial(decision)


async def _ask(limiter: Limiter | aio.Limiter, call: Callable[..., Any], *keys: Key, **options: Any) -> Any:
    if isinstance(limiter, Limiter) and limiter.store is not None:
        # A blocking limiter waits for its store, which the event loop must not.
        return await run_in_threadpool(call, *keys, **options)
    answer = call(*keys, **options)
    return await answer if isinstance(answer, Coroutine) else answer


def _classes(errors: _Errors) -> tuple[type[BaseException], ...]:
    return (errors,) if isinstance(errors, type) else tuple(errors)


async def _too_many(request: Request, error: Exception) -> Response:
    seconds = error.decision.retry_after_seconds if isinstance(error, AttemptDenied) else None
    headers = None if seconds is None else {"Retry-After": str(seconds)}
    return JSONResponse({"detail": "Too many attempts"}, 429, headers)


async def _unavailable(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": "Temporarily unavailable"}, 503, {"Retry-After": "1"})


async def _bad_key(request: Request, error: Exception) -> Response:
    return JSONResponse({"detail": "Bad request"}, 400)
