"""Protects login endpoints against guessing.

Attempt limiters that are exact however many callers race, use a bounded amount of memory, and return the exact wait.
`doorkeep.aio` has the same limiters awaitable, `doorkeep.errors` the exceptions, `doorkeep.fastapi` a guard for
endpoints, `doorkeep.testing` a clock for tests.

>>> from doorkeep import AttemptLimiter
>>> strikes = AttemptLimiter(threshold=2, lockout_window="15m")
>>> [strikes.attempt("ann@example.com").name for _ in range(3)]
['ALLOWED', 'ALLOWED_LAST_ATTEMPT', 'DENIED']
"""

from doorkeep import http, presets
from doorkeep._issue import IssueGuard, key_from_claims
from doorkeep._keys import keys_for
from doorkeep._native import (
    Attempt,
    AttemptLimiter,
    ClientIp,
    Decision,
    FixedWindow,
    Key,
    Limiter,
    ManualClock,
    Rate,
    Rates,
    RedisStore,
    Reservation,
    Rule,
    StrikeRule,
    TokenBucket,
    canonical_email,
    canonical_username,
    lint,
    network,
)
from doorkeep._outcome import Outcome
from doorkeep.errors import (
    AttemptDenied,
    ConfigError,
    DoorkeepError,
    InvalidKeyError,
    LimiterUnavailable,
    RateLimitExceeded,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorkeep._provider import RateLimitProvider

__all__ = [
    "Attempt",
    "AttemptDenied",
    "AttemptLimiter",
    "ClientIp",
    "ConfigError",
    "Decision",
    "DoorkeepError",
    "FixedWindow",
    "InvalidKeyError",
    "IssueGuard",
    "Key",
    "Limiter",
    "LimiterUnavailable",
    "ManualClock",
    "Outcome",
    "Rate",
    "RateLimitExceeded",
    "RateLimitProvider",
    "Rates",
    "RedisStore",
    "Reservation",
    "Rule",
    "StrikeRule",
    "TokenBucket",
    "canonical_email",
    "canonical_username",
    "http",
    "key_from_claims",
    "keys_for",
    "lint",
    "network",
    "presets",
]


def __getattr__(name: str) -> object:
    # A protocol needs typing, whose import takes longer than the rest of the package, so it is imported on first use.
    if name == "RateLimitProvider":
        from doorkeep._provider import RateLimitProvider

        globals()[name] = RateLimitProvider
        return RateLimitProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
