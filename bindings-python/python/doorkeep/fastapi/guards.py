"""The dependency that counts a request as an attempt before the endpoint runs.

Reads no request itself: the keys are a dependency of the application. Invariant: the attempt stays counted unless the
endpoint settles it or names the class of an exception that leaves it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from doorkeep import ConfigError, Key, http
from doorkeep._give_back import error_classes
from doorkeep.fastapi.comparing import Comparison, counting_dependencies
from doorkeep.starlette import attempt_for
from doorkeep.starlette.attempts import AnyLimiter, Duration, Errors, check_limiter

__all__ = ["guard"]


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
        A `doorkeep.Limiter` or a `doorkeep.aio.Limiter`; the attempt is of the same kind. A blocking limiter over a
        store runs in the thread pool; settle its attempts in endpoints that are plain functions.
    keys
        A dependency that returns the keys to count. Do not look up the account in it. Parameters that it reads from the
        body and the query must have the same name and type in the endpoint or in one of its dependencies: FastAPI makes
        two bodies of two names, and a client could count with one and guess with the other. Headers and the raw request
        are not compared.
    cost
        How much the request spends of each rate.
    give_back_on
        Exception classes that give the attempt back when they leave the endpoint, because they report a failure of the
        application, such as a database that is down. What was counted on an address alone stays counted.
    round_up
        A duration, at least ``1s``: ``Retry-After`` is rounded up to a multiple of it unless the rule that denied is
        keyed by the address alone, so that the wait does not reveal when others have guessed.
    rate_limit
        Whether to send ``RateLimit`` and ``RateLimit-Policy``. They show any client how many attempts are left, and so
        how many attempts others have made.

    Returns
    -------
    Callable
        For ``Depends``. If the attempt is denied, it raises `AttemptDenied` or `LimiterUnavailable`, which `install`
        answers.

    Raises
    ------
    ConfigError
        `limiter` is not a limiter, `keys` is not a function, `round_up` is not a duration of whole seconds, or
        `give_back_on` lists something that is not an exception class. At every request: `keys` reads a part of the
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

    # Compared first, so that a program with two bodies fails at its first request and does not send 422 to clients.
    async def counting(
        connection: HTTPConnection, _: Annotated[None, Depends(Comparison(keys))], named: Annotated[Any, Depends(keys)]
    ) -> AsyncIterator[Any]:
        async with attempt_for(connection, limiter, *named, **options) as attempt:
            yield attempt

    counting_dependencies.add(counting)

    # With scope="function" the block ends before the response is sent. Otherwise a client could get its guess back by
    # breaking the connection while the response is sent.
    async def attempt(counted: Annotated[Any, Depends(counting, scope="function")]) -> Any:
        return counted

    return attempt
