"""The outcome of an attempt as a real ``IntEnum``, and the pair that ``reserve`` returns.

Knows nothing else. Invariant: a denial is false, so that code that only tests truth fails closed.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Outcome", "Reserved"]


class Outcome(IntEnum):
    """The result of an attempt. A denial is falsy.

    Attributes
    ----------
    DENIED
        The attempt must not proceed; nothing was counted.
    ALLOWED
        The attempt may proceed; it is counted.
    ALLOWED_LAST_ATTEMPT
        The attempt may proceed, and it engaged the lockout. Returned once per lockout, so that it can be logged once.
    """

    DENIED = 0
    ALLOWED = 1
    ALLOWED_LAST_ATTEMPT = 2


class Reserved(tuple):  # type: ignore[type-arg]
    """The outcome and the reservation of ``AttemptLimiter.reserve``, false if the attempt is denied."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self[0])
