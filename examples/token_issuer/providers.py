"""Providers decide how many tokens a subject gets. A provider is anything with ``allow``, ``reset`` and ``close``.

`doorkeep.TokenBucket` is one. The two here are written for this service: they show the protocol
`doorkeep.RateLimitProvider`, which needs no base class. Invariant: a call to ``allow`` checks and counts in one step.
"""

import threading
from collections import Counter
from datetime import datetime, timezone

from doorkeep import FixedWindow, RedisStore


class SharedWindow:
    """A fixed window in Redis: all replicas of the service draw on one budget."""

    def __init__(self, limit: int, window: str, store: RedisStore) -> None:
        # Without its server it issues nothing: a provider answers yes or no, and "unavailable" is a no.
        self._window = FixedWindow(limit=limit, window=window, name="token-issue", store=store, on_error="closed")

    def allow(self, key: str) -> bool:
        """Count one token for the key, or deny it."""
        return self._window.consume(key).allowed

    def reset(self, key: str) -> None:
        """Forget what the key has used."""
        self._window.reset(key)

    def close(self) -> None:
        """Leave the store open: it belongs to the caller who created it."""


class DailyQuota:
    """A number of tokens per calendar day in UTC, counted in this process without doorkeep.

    Keeps an entry for each subject of the day, which come from claims that the service has checked. Keys that a
    stranger can choose need a table with a cap.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()  # two threads must not both take the last token
        self._day = datetime.now(timezone.utc).date()
        self._used: Counter[str] = Counter()

    def allow(self, key: str) -> bool:
        """Count one token for the key, or deny it."""
        with self._lock:
            today = datetime.now(timezone.utc).date()
            if today != self._day:
                self._day, self._used = today, Counter()
            if self._used[key] >= self._limit:
                return False
            self._used[key] += 1
            return True

    def reset(self, key: str) -> None:
        """Forget what the key has used today."""
        with self._lock:
            del self._used[key]

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
