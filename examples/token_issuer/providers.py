"""What may say how many tokens a subject gets: anything with ``allow``, ``reset`` and ``close``.

`doorkeep.TokenBucket` has them as it is. The two here are written for this service: they show the protocol
`doorkeep.RateLimitProvider`, which asks for no base class. Invariant: a call to ``allow`` asks and counts in one step.
"""

import threading
from collections import Counter
from datetime import datetime, timezone

from doorkeep import FixedWindow, RedisStore


class SharedWindow:
    """A fixed window in Redis: all replicas of the service draw on one budget."""

    def __init__(self, limit: int, window: str, store: RedisStore) -> None:
        # Without its server it issues nothing. A verdict of "unavailable" is no, since a provider says yes or no.
        self._window = FixedWindow(limit=limit, window=window, name="token-issue", store=store, on_error="closed")

    def allow(self, key: str) -> bool:
        """Count one token for the key, or refuse it."""
        return self._window.consume(key).allowed

    def reset(self, key: str) -> None:
        """Forget what the key has used."""
        self._window.reset(key)

    def close(self) -> None:
        """Leave the store open: it belongs to whoever made it."""


class DailyQuota:
    """So many tokens a day, by the calendar in UTC, counted in this process without doorkeep.

    Holds an entry for each subject of the day: those come from claims that the service has checked. Keys that a
    stranger can choose need a table with a cap.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()  # two threads must not both take the last token
        self._day = datetime.now(timezone.utc).date()
        self._used: Counter[str] = Counter()

    def allow(self, key: str) -> bool:
        """Count one token for the key, or refuse it."""
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
        """Hold nothing that would have to be closed."""
