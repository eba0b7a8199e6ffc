"""Protects login endpoints against guessing.

Attempt limiters that are exact however many callers race, hold a bounded amount of memory, and say precisely how long
to wait. `doorkeep.aio` has the same limiters awaitable, `doorkeep.errors` what they raise, `doorkeep.fastapi` a guard
for endpoints, `doorkeep.testing` a clock for tests.

>>> from doorkeep import AttemptLimiter
>>> strikes = AttemptLimiter(threshold=2, lockout_window="15m")
>>> [strikes.attempt("ann@example.com").name for _ in range(3)]
['ALLOWED', 'ALLOWED_LAST_ATTEMPT', 'DENIED']
"""

from doorkeep._native import (
    Attempt,
    AttemptLimiter,
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

__all__ = [
    "Attempt",
    "AttemptDenied",
    "AttemptLimiter",
    "ConfigError",
    "Decision",
    "DoorkeepError",
    "FixedWindow",
    "InvalidKeyError",
    "Key",
    "Limiter",
    "LimiterUnavailable",
    "ManualClock",
    "Outcome",
    "Rate",
    "RateLimitExceeded",
    "Rates",
    "RedisStore",
    "Reservation",
    "Rule",
    "StrikeRule",
    "TokenBucket",
    "network",
]
