"""Decisions as HTTP says them: a status, and the header fields that go with it.

For adapters and for endpoints that answer a denial by themselves::

    decision = limiter.decide(*keys)
    if not decision:
        return Response(status=http.status(decision), headers=http.headers(decision, keys))

Knows no request and no framework. Invariant: nothing that derives from the value of a key is ever sent.
"""

from __future__ import annotations

from doorkeep._native import Key, _http_headers, _http_round_up, _http_status

# Type checkers know this name; importing typing for it would take longer than the rest of the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from doorkeep._native import Decision

__all__ = ["check_round_up", "headers", "status"]


def status(decision: Decision) -> int:
    """Give the status of a decision: 200 when it was allowed, 429 when denied, 503 when the limiter is unavailable.

    Parameters
    ----------
    decision
        Of any limiter.

    Raises
    ------
    TypeError
        It is no decision, such as one that was not awaited.
    """
    return _http_status(decision)


def headers(
    decision: Decision,
    keys: Iterable[Key] | Key = (),
    *,
    round_up: timedelta | float | str | None = None,
    rate_limit: bool = False,
) -> dict[str, str]:
    """Give the header fields of a decision.

    ``Retry-After`` stands on denials: whole seconds, rounded up, at least 1. It is left out when no wait helps, and is
    1 when the limiter is unavailable.

    Parameters
    ----------
    decision
        Of any limiter.
    keys
        The keys that were asked. Without them every wait is rounded up and no policy is named.
    round_up
        Makes the wait a multiple of this duration, unless the rule that denied is keyed by an address alone. Whoever
        asks about an account of somebody else must not read from the wait when others have tried it. Whole seconds, at
        least 1.
    rate_limit
        Adds ``RateLimit`` and ``RateLimit-Policy`` of draft-ietf-httpapi-ratelimit-headers-10, also when the decision
        is allowed. They tell a stranger how many attempts others have made.

    Returns
    -------
    dict of str to str
        Names and values. Empty when there is nothing to say.

    Raises
    ------
    ConfigError
        `round_up` is not a duration of whole seconds.
    TypeError
        `decision` is no decision, or one of `keys` is no key.
    """
    asked = (keys,) if isinstance(keys, Key) else keys
    return _http_headers(decision, round_up, rate_limit, *asked)


def check_round_up(round_up: timedelta | float | str | None) -> None:
    """Refuse a duration that `headers` would refuse, when a program starts and not at the first denial.

    Parameters
    ----------
    round_up
        As for `headers`. None is fine.

    Raises
    ------
    ConfigError
        It is not a duration of whole seconds, at least 1.
    """
    _http_round_up(round_up)
