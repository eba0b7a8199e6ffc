"""AttemptLimiter and TokenBucket: one key a call, over the engine.

Knows nothing of several keys. Invariant: each is the engine with one policy, so that what holds there holds here.
"""

from durations import duration
from engine import Engine, Policy
from errors import MAX_COUNT, MAX_TABLE, MAX_THRESHOLD, ConfigError, as_whole, shown, timestamp, whole
from keys import single_key
from rates import Rate


class Reservation:
    def __init__(self, key, decision):
        self.key = key
        self.decision = decision


class AttemptLimiter:
    def __init__(self, threshold, lockout_window, max_tracked_keys):
        threshold = whole("threshold", 1, MAX_THRESHOLD, threshold)
        window = duration("lockout window", lockout_window)
        self.engine = Engine(whole("max tracked keys", 1, MAX_TABLE, max_tracked_keys))
        self.policy = Policy("attempt-limiter", threshold=threshold, window=window)
        self.table = self.engine.table(self.policy)

    def reserve(self, key, now):
        reservation = Reservation(single_key(key), None)
        reservation.decision, _ = self.decide(reservation, now)
        return reservation

    def decide(self, reservation, now, store=True):
        return self.engine.decide([(self.policy, reservation.key)], timestamp(now), attempt=reservation, store=store)

    def attempt(self, key, now):
        return self.reserve(key, now).decision

    def repeat(self, reservation, now):
        """The same attempt again, after a reply that was lost: counted once."""
        key, now = reservation.key, timestamp(now)
        if not self.table.holds(key, reservation, now):
            return self.decide(reservation, now)[0]
        engaged = [self.policy.name] if self.table.entries[key].engager is reservation else []
        return self.engine.answer([(self.policy, key)], None, engaged, now)

    def cancel(self, reservation, now):
        return self.table.cancel(reservation.key, reservation, timestamp(now))

    def retry_after(self, key, now):
        decision, _ = self.decide(Reservation(single_key(key), None), now, store=False)
        return None if decision.allowed else decision.retry_after

    def locked(self, key, now):
        return self.retry_after(key, now) is not None

    def refund(self, key, now):
        self.table.refund(single_key(key), timestamp(now))

    def reset(self, key):
        self.table.forget(single_key(key))
        return True

    def size(self):
        return self.engine.size()

    def stats(self):
        return self.engine.stats()


class TokenBucket:
    def __init__(self, rate=100, window=60_000_000, capacity=10_000):
        rate = whole("rate", 1, MAX_COUNT, rate)
        window = duration("window", window)
        self.engine = Engine(whole("capacity", 1, MAX_TABLE, capacity))
        self.rate = rate
        self.policy = Policy("token-bucket", rates=(Rate(rate, window),))
        self.closed = False

    def allow(self, key, now):
        return self.allow_n(key, 1, now)

    def allow_n(self, key, n, now):
        number = as_whole(n)
        if number is None:
            raise ConfigError(f"n must be a whole number, value=`{shown(n)}`")
        if number < 0:
            return False
        if number == 0:
            return True
        if key == "":
            return False
        if number > self.rate:
            self.engine.count_denied(self.policy.name, "limited")
            return False
        if self.closed:
            return False
        decision, _ = self.engine.decide([(self.policy, single_key(key))], timestamp(now), number)
        return decision.allowed

    def retry_after(self, key, now):
        decision, _ = self.engine.decide([(self.policy, single_key(key))], timestamp(now), store=False)
        return None if decision.allowed else decision.retry_after

    def reset(self, key):
        if key != "":
            self.engine.reset(self.policy, single_key(key))
        return True

    def close(self):
        self.closed = True

    def size(self):
        return self.engine.size()

    def stats(self):
        return self.engine.stats()
