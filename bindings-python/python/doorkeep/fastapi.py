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

The attempt stays counted unless the endpoint settles it: whatever it answers or raises, and even if the client goes
away. `give_back_on` names the exceptions that report a failure of the application and give the attempt back.

What needs no FastAPI is in `doorkeep.starlette`, and can be imported from here, too.

Does no arithmetic and reads no clock. Invariant: a denial's bytes depend on nothing but the decision.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Annotated, Any
from weakref import WeakValueDictionary

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from starlette.requests import HTTPConnection

from doorkeep import ConfigError, Key, http
from doorkeep._leaving import error_classes
from doorkeep.starlette import AddressLimit, attempt_for, client_address, install, lifespan
from doorkeep.starlette.attempts import AnyLimiter, Duration, Errors, check_limiter

__all__ = ["AddressLimit", "attempt_for", "client_address", "guard", "install", "lifespan", "responses"]


def guard(
    limiter: AnyLimiter,
    keys: Callable[..., Iterable[Key] | Awaitable[Iterable[Key]]],
    *,
    cost: int = 1,
    give_back_on: Errors = (),
    round_up: Duration | None = None,
    rate_limit: bool = False,
) -> Callable[..., Awaitable[Any]]:
    """Make a dependency that counts the request as an attempt and returns the attempt.

    A second guard of the same limiter in one request returns the same attempt and counts only the keys that are new.

    Parameters
    ----------
    limiter
        A `doorkeep.Limiter` or a `doorkeep.aio.Limiter`; the attempt is of the same kind. A blocking one over a store
        is asked in the thread pool; settle its attempts in endpoints that are no coroutines.
    keys
        A dependency of its own that returns the keys to count. Keep look-ups of the account out of it. What it reads of
        the body must have the same parameter name in the endpoint: FastAPI makes two bodies of two names, and a client
        could count with one and guess with the other.
    cost
        How much the request spends of each rate.
    give_back_on
        Exception classes that give the attempt back when they leave the endpoint, because they report a failure of the
        application, such as a database that is down. What was counted on an address alone stays counted.
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
        `limiter` is not a limiter, `keys` is not a function, `round_up` is not a duration of whole seconds, or
        `give_back_on` lists something that is not a class of exceptions. At a request: `keys` reads a part of the body
        that the endpoint does not read.
    """
    check_limiter(limiter)
    if not callable(keys):
        raise ConfigError("keys must be a function")
    http.check_round_up(round_up)
    options: dict[str, Any] = {
        "cost": cost,
        "give_back_on": error_classes(give_back_on),
        "round_up": round_up,
        "rate_limit": rate_limit,
    }

    checked: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by identity: routes have no hash

    async def counting(connection: HTTPConnection, named: Annotated[Any, Depends(keys)]) -> AsyncIterator[Any]:
        route = connection.scope.get("route")
        if route is not None and checked.get(id(route)) is not route:
            _check_body(route, keys)
            checked[id(route)] = route
        async with attempt_for(connection, limiter, *named, **options) as attempt:
            yield attempt

    # With scope="function" the exit comes before the response is sent, so that a client which breaks the connection
    # while it is sent cannot have its guess given back.
    async def attempt(counted: Annotated[Any, Depends(counting, scope="function")]) -> Any:
        return counted

    return attempt


def _check_body(route: Any, keys: Callable[..., Any]) -> None:
    """Refuse keys that are made from another body than the one that the endpoint reads."""
    dependant: Dependant | None = getattr(route, "dependant", None)
    if dependant is None:
        return
    read_by_keys: set[str] = set()
    read_elsewhere: set[str] = set()

    def visit(one: Dependant, read: set[str]) -> None:
        read = read_by_keys if one.call is keys else read
        read.update(field.alias for field in one.body_params)
        for dependency in one.dependencies:
            visit(dependency, read)

    visit(dependant, read_elsewhere)
    unread = read_by_keys - read_elsewhere
    if unread and read_elsewhere:
        raise ConfigError(
            "the keys of a guard must be made from the body that the endpoint reads: "
            f"give the parameter the same name in both, parameter=`{min(unread)}`"
        )


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
    400: _documented("The account or the address is missing or invalid", "Bad request"),
    429: _documented(
        "Too many attempts", "Too many attempts", "Seconds until an attempt is admitted; absent when no wait would help"
    ),
    503: _documented("Attempts cannot be counted now", "Temporarily unavailable", "Seconds"),
}
"""What a guarded route may answer, for OpenAPI: ``@app.post("/login", responses=responses)``, or of a whole router."""
