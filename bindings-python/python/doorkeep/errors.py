"""All errors that doorkeep raises, grouped by what the caller does next.

Plain Python classes, so that they have attributes, pickle and are documented like other classes; the native module
imports and raises them. A denial by ``decide`` or ``attempt`` is a value, not an exception: only entering a denied
attempt as a block raises.

Knows nothing of limiters. Invariant: no message contains the value of a key.
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
    """Base class of all errors that doorkeep raises."""


class ConfigError(DoorkeepError, ValueError):
    """A number, duration, rate, rule or option is invalid: fix the configuration or the call.

    The message names the parameter, its bound and the value. Nothing was counted.
    """


class InvalidKeyError(DoorkeepError, ValueError):
    """A key is empty, not a string, or not an address: answer 400.

    The message never contains the value of the key. Nothing was counted.
    """


class AttemptDenied(DoorkeepError):
    """A denied attempt was entered as a block: answer 429.

    Attributes
    ----------
    decision : Decision
        The rule that denied, the reason and the wait.
    keys : tuple of Key
        The keys of the guard that denied; empty without a guard, and after pickling.
    headers : mapping
        The header fields of the answer: ``Retry-After`` as rounded by the guard, ``Cache-Control``, and ``RateLimit``
        if the guard sends it.
    """

    decision: Decision
    keys: tuple[Key, ...] = ()
    # Set by the guard that denied; None without a guard.
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
        # A key is not pickled: it stays in its process.
        state = {name: value for name, value in self.__dict__.items() if name != "keys"}
        return type(self), (self.decision,), state

    def __str__(self) -> str:
        return f"attempt denied, rule=`{self.decision.rule}`, reason=`{self.decision.reason}`"


class LimiterUnavailable(AttemptDenied):
    """The store did not answer and the limiter is ``closed``: answer 503.

    It does not mean that the client has made too many attempts.
    """


class RateLimitExceeded(DoorkeepError):
    """A token must not be issued now, because its subject has used up its rate: answer 429.

    `IssueGuard` raises it. No limiter does.

    Attributes
    ----------
    retry_after : timedelta or None
        How long the subject has to wait, if the provider reports it.
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
