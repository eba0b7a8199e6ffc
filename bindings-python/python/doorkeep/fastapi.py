"""A guard for FastAPI endpoints: each request is an attempt, counted before the endpoint runs.

::

    limiter = aio.Limiter()
    ClientAddress = Annotated[str | None, Depends(client_address(ClientIp()))]

    def login_keys(address: ClientAddress, form: LoginForm) -> list[Key]:
        return keys_for(rules, address=address, account=canonical_email(form.email))

    LoginAttempt = Annotated[aio.Attempt, Depends(guard(limiter, keys=login_keys))]

    @app.post("/login", responses=responses)
    async def login(form: LoginForm, address: ClientAddress, attempt: LoginAttempt):
        account = await find(canonical_email(form.email))
        # Whatever name found the account, the attempt counts under its stored name, too.
        if account and not await attempt.extend(*keys_for(rules, address=address, account=account.email)):
            account = None  # answered like a wrong password
        if not await verify(account, form.password):
            raise HTTPException(401)
        await attempt.success(forgive=[login_account_ip])

    install(app)

The attempt stays counted unless the endpoint settles it: whatever it answers or raises, and even if the client goes
away. `give_back_on` names the exceptions that report a failure of the application and give the attempt back.

What needs no FastAPI is in `doorkeep.starlette`, and can be imported from here, too.

Does no arithmetic and reads no clock. Invariant: a denial's bytes depend on nothing but the decision.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Annotated, Any, get_args
from weakref import WeakSet, WeakValueDictionary

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_dependant
from pydantic import BaseModel
from starlette.requests import HTTPConnection
from starlette.types import Scope

from doorkeep import ConfigError, Key, http
from doorkeep._give_back import error_classes
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
        the body and the query must have the same name and type in the endpoint, or in a dependency of it: FastAPI makes
        two bodies of two names, and a client could count with one and guess with the other. What it reads of headers
        and of the raw request is not compared.
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
        `give_back_on` lists something that is not a class of exceptions. At every request: `keys` reads a part of the
        body or the query that the endpoint does not read.
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

    # Compared first, so that a program with two bodies says so to the first request, and not "422" to honest clients.
    async def counting(
        connection: HTTPConnection, _: Annotated[None, Depends(_Comparison(keys))], named: Annotated[Any, Depends(keys)]
    ) -> AsyncIterator[Any]:
        async with attempt_for(connection, limiter, *named, **options) as attempt:
            yield attempt

    _guards.add(counting)

    # With scope="function" the exit comes before the response is sent, so that a client which breaks the connection
    # while it is sent cannot have its guess given back.
    async def attempt(counted: Annotated[Any, Depends(counting, scope="function")]) -> Any:
        return counted

    return attempt


# The dependencies that count: what the keys of one guard read does not vouch for those of another.
_guards: WeakSet[Callable[..., Any]] = WeakSet()


class _Comparison:
    """Refuses keys that are made from another body or another query than the endpoint reads."""

    def __init__(self, keys: Callable[..., Any]) -> None:
        self._keys = keys
        # By identity, since a route has no hash.
        self._compared: WeakValueDictionary[int, Any] = WeakValueDictionary()

    async def __call__(self, connection: HTTPConnection) -> None:
        route = _route_of(connection.scope)
        dependant: Dependant | None = getattr(route, "dependant", None)
        if dependant is None or self._compared.get(id(route)) is route:
            return
        of_keys = _parameters(get_dependant(path=dependant.path or "/", call=self._keys))
        of_rest = _parameters(dependant)
        for (_, name), kinds in of_keys.items() if of_rest else ():
            others = of_rest.get((_, name), [])
            if not any(_is_part(kind, other) for kind in kinds for other in others):
                raise ConfigError(
                    "the keys of a guard must be made from what the endpoint reads: "
                    f"give the parameter the same name and type in both, parameter=`{name}`"
                )
        self._compared[id(route)] = route


def _route_of(scope: Scope) -> Any:
    """Return what FastAPI made of the route at hand, with all that it depends on."""
    route = scope.get("route")
    # Newer releases make that once for each router which includes the route, and keep it here.
    included = scope.get("fastapi", {}).get("effective_route_context")
    return included if getattr(included, "original_route", None) is route else route


def _parameters(dependant: Dependant) -> dict[tuple[str, str], list[Any]]:
    """Return what is read from the body and the query outside guards: the types by the place and the name."""
    found: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)

    def visit(one: Dependant) -> None:
        for field in one.body_params:
            found["body", field.alias].append(field.field_info.annotation)
        for field in one.query_params:
            names = _names(field.field_info.annotation)
            for name in names.values() if names else [field.alias]:
                found["query", str(name)].append(str)
        for dependency in one.dependencies:
            if dependency.call not in _guards:
                visit(dependency)

    visit(dependant)
    return found


def _is_part(kind: Any, whole: Any) -> bool:
    """Return whether all that one type reads from JSON is read by another, too, under the same names."""
    return kind in (whole, *get_args(whole)) or _names(kind).items() <= _names(whole).items()


def _names(kind: Any) -> dict[str, Any]:
    """Return what each field of a model is called in JSON; nothing for what is not a model."""
    fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
    return {name: field.validation_alias or name for name, field in fields.items()}


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
