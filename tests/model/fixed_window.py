"""FixedWindow: at most `limit` attempts in a window that opens at the first one.

Knows nothing of the other limiters. Invariant: a denied attempt changes nothing, except a start that the clock made
impossible (healing).
"""

from dataclasses import dataclass

from durations import duration
from engine import Decision
from errors import MAX_COUNT, MAX_TABLE, timestamp, whole
from keys import single_key

NAME = "fixed-window"


@dataclass
class Opened:
    start: int
    count: int
    order: int


class FixedWindow:
    def __init__(self, limit, window, max_keys=100_000):
        self.limit = whole("limit", 1, MAX_COUNT, limit)
        self.window = duration("window", window)
        self.max_keys = whole("max keys", 1, MAX_TABLE, max_keys)
        self.entries = {}
        self.inserted = 0
        self.allowed = 0
        self.denied = 0
        self.evicted = 0

    def consume(self, key, now):
        key = single_key(key)
        now = timestamp(now)
        opened = self.entries.get(key)
        if opened is None or self.elapsed(opened, now):
            opened = self.open(key, now)
        if opened.start > now + self.window:
            opened.start = now
        wait = opened.start + self.window - now
        if opened.count + 1 > self.limit:
            self.denied += 1
            return Decision("denied", "limited", NAME, wait, 0, wait)
        opened.count += 1
        self.allowed += 1
        return Decision("allowed", None, None, 0, self.limit - opened.count, wait)

    def peek(self, key, now):
        key = single_key(key)
        now = timestamp(now)
        opened = self.entries.get(key)
        if opened is None or self.elapsed(opened, now):
            return Decision("allowed", None, None, 0, self.limit, 0)
        start = now if opened.start > now + self.window else opened.start
        wait = start + self.window - now
        if opened.count + 1 > self.limit:
            return Decision("denied", "limited", NAME, wait, 0, wait)
        return Decision("allowed", None, None, 0, self.limit - opened.count, wait)

    def elapsed(self, opened, now):
        return now - opened.start >= self.window

    def open(self, key, now):
        self.entries.pop(key, None)
        while len(self.entries) >= self.max_keys:
            self.drop_one(now)
        self.inserted += 1
        self.entries[key] = Opened(now, 0, self.inserted)
        return self.entries[key]

    def drop_one(self, now):
        """The elapsed first, then those with budget left by their end, the exhausted last; ties by oldest insertion."""

        def eviction_order(key):
            opened = self.entries[key]
            if self.elapsed(opened, now):
                return 0, opened.start, opened.order
            return 2 if opened.count >= self.limit else 1, opened.start, opened.order

        key = min(self.entries, key=eviction_order)
        if not self.elapsed(self.entries[key], now):
            self.evicted += 1
        del self.entries[key]

    def reset(self, key):
        self.entries.pop(single_key(key), None)
        return True

    def size(self):
        return len(self.entries)

    def stats(self):
        return {
            "allowed": {NAME: self.allowed} if self.allowed else {},
            "denied": {NAME: {"limited": self.denied}} if self.denied else {},
            "evicted": self.evicted,
            "tracked_keys": self.size(),
        }
