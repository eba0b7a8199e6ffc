"""Everything that doorkeep raises, by what the caller does next.

Plain Python classes, so that they carry attributes, pickle and document like any other; the native module imports
them from here and raises them. A denial by ``decide`` or ``attempt`` is a value, not an exception: only entering a
denied attempt as a block raises.

Knows nothing of limiters. Invariant: no message holds a key's value.
"""

from __future__ import annotations

# Type checkers know this name; importing typing for it would take longer than the rest of the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta
    from typing import Any

    from doorkeep._native import Decision, Key

__all__ = [
    "AttemptDenied",
    "ConfigError",
    "DoorkeepError",
    "InvalidKeyError",
    "LimiterUnavailable",
    "RateLimitExceeded",
]


class DoorkeepError(Exception):
    """Base class of everything that doorkeep raises."""


class ConfigError(DoorkeepError, ValueError):
    """A number, duration, rate, rule or option is not acceptable: fix the configuration or the call.

    The message names the thing, its bound and the value that was given. Nothing was counted.
    """


class InvalidKeyError(DoorkeepError, ValueError):
    """A key is empty, is not text, or is not an address: answer 400.

    The message never holds the key's value. Nothing was counted.
    """


class AttemptDenied(DoorkeepError):
    """A denied attempt was entered as a block: answer 429.

    Attributes
    ----------
    decision : Decision
        Which rule denied, why, and how long to wait.
    keys : tuple of Key
        What the guard that denied had asked; empty when no guard was asked, and after a pickle.
    headers : mapping
        The header fields of the answer: ``Retry-After``, as the guard rounds it, ``Cache-Control``, and ``RateLimit``
        if the guard sends it.
    """

    decision: Decision
    keys: tuple[Key, ...] = ()
    # Made by the guard that denied; None when no guard was asked.
    _headers: Mapping[str, str] | None = None

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of the answer."""
        from doorkeep import http  # which imports this module

        fields = http.headers(self.decision) if self._headers is None else self._headers
        return {"Cache-Control": "no-store", **fields}

    def __reduce__(self) -> tuple[Any, ...]:
        # A key stays in its process.
        state = {name: value for name, value in self.__dict__.items() if name != "keys"}
        return type(self), (self.decision,), state

    def __str__(self) -> str:
        return f"attempt denied, rule=`{self.decision.rule}`, reason=`{self.decision.reason}`"


class LimiterUnavailable(AttemptDenied):
    """The limiter's store did not answer and the limiter is ``closed``: answer 503.

    Says nothing about the one who asked: they may be well within their limits.
    """


class RateLimitExceeded(DoorkeepError):
    """Something may not be issued now, because its subject has used up its rate: answer 429.

    `IssueGuard` raises it. No limiter does.

    Attributes
    ----------
    retry_after : timedelta or None
        How long its subject has to wait, if the provider knows.
    headers : mapping
        The header fields of the answer: ``Cache-Control``, and ``Retry-After`` if the wait is known.
    """

    retry_after: timedelta | None

    def __init__(self, *args: object, retry_after: timedelta | None = None) -> None:
        super().__init__(*args)
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of the answer."""
        from doorkeep._native import _http_wait  # which imports this module

        return {"Cache-Control": "no-store", **_http_wait(self.retry_after)}


def _denial(decision: Decision) -> AttemptDenied:
    """Make the exception that entering a denied attempt raises."""
    return (LimiterUnavailable if decision.reason == "unavailable" else AttemptDenied)(decision)
