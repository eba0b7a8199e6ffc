"""A guard for FastAPI endpoints: each request is an attempt, counted before the endpoint runs.

::

    limiter = aio.Limiter()
    ClientAddress = Annotated[str | None, Depends(client_address(ClientIp()))]

    def login_keys(address: ClientAddress, form: LoginForm) -> list[Key]:
        return keys_for(rules, address=address, account=canonical_email(form.email))

    @app.post("/login", responses=responses)
    async def login(form: LoginForm, attempt: Annotated[Attempt, Depends(guard(limiter, keys=login_keys))]):
        user = await verify(form.email, form.password)
        if user is None:
            raise HTTPException(401)
        await attempt.success(forgive=[login_account_ip])

    install(app)

The attempt stays counted whatever the endpoint answers, and also when the client goes away. It is given back only when
an exception escapes the endpoint that is no answer below 500: a crash is not a guess. An application that reports wrong
passwords by exceptions of its own names them in ``count_on``.

What needs no FastAPI is in `doorkeep.starlette`, and can be imported from here, too.

Does no arithmetic and reads no clock. Invariant: a denial's bytes depend on nothing but the decision.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Annotated, Any

from fastapi import Depends
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.requests import HTTPConnection

from doorkeep import ConfigError, Key, http
from doorkeep.starlette import AddressLimit, attempt_for, client_address, install, lifespan
from doorkeep.starlette.attempts import AnyLimiter, Duration, Errors, check_limiter, classes

__all__ = ["AddressLimit", "attempt_for", "client_address", "guard", "install", "lifespan", "responses"]

_INVALID = (RequestValidationError, WebSocketRequestValidationError)


def guard(
    limiter: AnyLimiter,
    keys: Callable[..., Iterable[Key] | Awaitable[Iterable[Key]]],
    *,
    cost: int = 1,
    count_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
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
    round_up
        A duration, at least ``1s``: ``Retry-After`` is rounded up to a multiple of it when a rule denied that is not
        of the address alone, so that it does not tell when others have guessed.
    rate_limit
        Whether ``RateLimit`` and ``RateLimit-Policy`` go with the answer. They tell a stranger how many attempts are
        left, of their own and of others.

    Returns
    -------
    Callable
        For ``Depends``. Denied, it raises `AttemptDenied` or `LimiterUnavailable`, which `install` answers.

    Raises
    ------
    ConfigError
        `limiter` is no limiter, `keys` is no function, or `round_up` is not a duration of whole seconds.
    """
    check_limiter(limiter)
    if not callable(keys):
        raise ConfigError("keys must be a function")
    http.check_round_up(round_up)
    options: dict[str, Any] = {
        "cost": cost,
        "count_on": classes(count_on) + _INVALID,
        "round_up": round_up,
        "rate_limit": rate_limit,
    }

    async def counting(connection: HTTPConnection, named: Annotated[Any, Depends(keys)]) -> AsyncIterator[Any]:
        async with attempt_for(connection, limiter, *named, **options) as attempt:
            yield attempt

    # With scope="function" the exit comes before the response is sent, so that a client which breaks the connection
    # while it is sent cannot have its guess given back.
    async def attempt(counted: Annotated[Any, Depends(counting, scope="function")]) -> Any:
        return counted

    return attempt


def _documented(description: str, detail: str, wait: str | None = None) -> dict[str, Any]:
    body = {"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}
    documented: dict[str, Any] = {
        "description": description,
        "content": {"application/json": {"schema": body, "example": {"detail": detail}}},
    }
    if wait is not None:
        documented["headers"] = {"Retry-After": {"description": wait, "schema": {"type": "integer", "minimum": 1}}}
    return documented


responses: dict[int | str, dict[str, Any]] = {
    400: _documented("What should be counted is empty or no address", "Bad request"),
    429: _documented(
        "Too many attempts", "Too many attempts", "Seconds until an attempt is admitted; absent when no wait would help"
    ),
    503: _documented("Attempts cannot be counted now", "Temporarily unavailable", "Seconds"),
}
"""What a guarded route may answer, for OpenAPI: ``@app.post("/login", responses=responses)``, or of a whole router."""
