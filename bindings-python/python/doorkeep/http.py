"""Decisions in HTTP: a status, and the header fields for it.

For adapters, and for endpoints that answer a denial themselves::

    decision = limiter.decide(*keys)
    if not decision:
        return Response(status=http.status(decision), headers=http.headers(decision, keys))

Knows no request and no framework. Invariant: nothing that is derived from the value of a key is sent.
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
    """Return the status of a decision: 200 if allowed, 429 if denied, 503 if the limiter is unavailable.

    Parameters
    ----------
    decision
        A decision of any limiter.

    Raises
    ------
    TypeError
        It is not a decision, such as one that was not awaited.
    """
    return _http_status(decision)


def headers(
    decision: Decision,
    keys: Iterable[Key] | Key = (),
    *,
    round_up: timedelta | float | str | None = None,
    rate_limit: bool = False,
) -> dict[str, str]:
    """Return the header fields of a decision.

    Denials have ``Retry-After``: whole seconds, rounded up, at least 1. It is omitted if waiting does not help, and is
    1 if the limiter is unavailable.

    Parameters
    ----------
    decision
        A decision of any limiter.
    keys
        The keys of the call. Without them every wait is rounded up and no policy is named.
    round_up
        Rounds the wait up to a multiple of this duration, unless the rule that denied is keyed by an address alone. The
        wait of another person's account must not reveal when others have tried it. Whole seconds, at least 1.
    rate_limit
        Adds ``RateLimit`` and ``RateLimit-Policy`` of draft-ietf-httpapi-ratelimit-headers-10, even if the decision is
        allowed. They show any client how many attempts others have made.

    Returns
    -------
    dict of str to str
        Names and values. May be empty.

    Raises
    ------
    ConfigError
        `round_up` is not a duration of whole seconds.
    TypeError
        `decision` is not a decision, or one of `keys` is not a key.
    """
    listed = (keys,) if isinstance(keys, Key) else keys
    return _http_headers(decision, round_up, rate_limit, *listed)


def check_round_up(round_up: timedelta | float | str | None) -> None:
    """Raise for a duration that `headers` would refuse, when a program starts and not at the first denial.

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
