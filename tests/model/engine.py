"""The engine: test every check of a call, then commit all of them or none.

Knows nothing of key values, of settling or of how hosts spell their arguments. Invariant: one denial anywhere and
nothing is written anywhere, except states that the clock made impossible (healing).
"""

from dataclasses import dataclass

from errors import ConfigError
from gcra import NEVER, Windows, remaining, reset_after, wait
from strikes import Strikes


@dataclass(frozen=True)
class Policy:
    """What the engine needs to know of a rule: rates, or a threshold and a lockout window."""

    name: str
    rates: tuple = ()
    threshold: int = 0
    window: int = 0


@dataclass(frozen=True)
class Decision:
    outcome: str
    reason: str | None
    rule: str | None
    retry_after: int | None
    remaining: int
    reset_after: int
    engaged: tuple = ()

    @property
    def allowed(self):
        return self.outcome != "denied"


class Engine:
    def __init__(self, capacity):
        self.capacity = capacity
        self.windows = Windows(capacity)
        self.strikes = {}
        self.allowed = {}
        self.denied = {}

    def table(self, policy):
        if policy.name not in self.strikes:
            self.strikes[policy.name] = Strikes(policy.threshold, policy.window, self.capacity)
        return self.strikes[policy.name]

    def decide(self, checks, now, cost=1, attempt=None, store=True):
        """Decide on `checks`, a list of (policy, key) in call order without duplicates.

        Returns the decision and the charges on windows.
        """
        self.check_capacity(checks)
        denial = self.longest_denial(checks, now, cost)
        store = store and cost > 0
        if store and (denial is None or denial[0] != NEVER):
            self.heal(checks, now)
        charges, engaged = [], []
        if store and denial is None:
            self.make_room(checks, now)
            charges, engaged = self.commit(checks, now, cost, attempt)
        if store:
            self.count(checks, denial)
        return self.answer(checks, denial, engaged, now), charges

    def check_capacity(self, checks):
        windows = len(self.places(checks))
        strike_keys = max(len(self.strike_keys(policy, checks)) for policy, _ in checks)
        needed = max(windows, strike_keys)
        if needed > self.capacity:
            raise ConfigError(
                f"a call needs more windows than the capacity, windows={needed}, capacity={self.capacity}"
            )

    def places(self, checks):
        return [(policy.name, rate, key) for policy, key in checks for rate in policy.rates]

    def strike_keys(self, policy, checks):
        """The keys of the call that stand in the strike table of `policy`."""
        return [key for other, key in checks if other.threshold and other.name == policy.name]

    def longest_denial(self, checks, now, cost):
        """(wait, reason, rule) of the denying check with the longest wait, the first one among equals."""
        longest = None
        for policy, key in checks:
            for denial in self.denials(policy, key, checks, now, cost):
                if longest is None or denial[0] > longest[0]:
                    longest = denial
        return longest

    def denials(self, policy, key, checks, now, cost):
        for rate in policy.rates:
            tat, _ = self.windows.view((policy.name, rate, key), now)
            time = wait(tat, now, cost, rate)
            if time is not None:
                yield time, "limited", policy.name
        if not policy.threshold:
            return
        table = self.table(policy)
        if table.view(key, now).entry is None:
            time = table.saturated(self.strike_keys(policy, checks), now)
            reason = "saturated"
        else:
            time = table.wait(key, now)
            reason = "locked"
        if time is not None:
            yield time, reason, policy.name

    def heal(self, checks, now):
        for place in self.places(checks):
            self.windows.heal(place, now)
        for policy, key in checks:
            if policy.threshold:
                self.table(policy).heal(key, now)

    def make_room(self, checks, now):
        self.windows.make_room(self.places(checks), now)
        for policy, _ in checks:
            if policy.threshold:
                self.table(policy).make_room(self.strike_keys(policy, checks), now)

    def commit(self, checks, now, cost, attempt):
        charges, engaged = [], []
        for policy, key in checks:
            for rate in policy.rates:
                charges.append(self.windows.commit((policy.name, rate, key), now, cost))
            if policy.threshold and self.table(policy).commit(key, attempt, now):
                engaged.append(policy.name)
        return charges, engaged

    def answer(self, checks, denial, engaged, now):
        standing = [pair for policy, key in checks for pair in self.standing(policy, key, checks, now)]
        left = min(remaining for remaining, _ in standing)
        reset = max(reset for _, reset in standing)
        if denial is None:
            outcome = "allowed_last" if engaged else "allowed"
            return Decision(outcome, None, None, 0, left, reset, tuple(dict.fromkeys(engaged)))
        time, reason, rule = denial
        return Decision("denied", reason, rule, None if time == NEVER else time, left, reset)

    def standing(self, policy, key, checks, now):
        """(remaining, reset_after) of each window or strike key as it is now."""
        for rate in policy.rates:
            tat, _ = self.windows.view((policy.name, rate, key), now)
            yield remaining(tat, now, rate), reset_after(tat, now)
        if policy.threshold:
            table = self.table(policy)
            free = table.view(key, now).entry is None
            full = free and table.saturated(self.strike_keys(policy, checks), now) is not None
            yield 0 if full else table.remaining(key, now), table.reset_after(key, now)

    def count(self, checks, denial):
        """Count a call in the statistics: admitted once per rule, denied once at its rule."""
        if denial is None:
            for rule in dict.fromkeys(policy.name for policy, _ in checks):
                self.allowed[rule] = self.allowed.get(rule, 0) + 1
            return
        _, reason, rule = denial
        self.count_denied(rule, reason)

    def count_denied(self, rule, reason):
        reasons = self.denied.setdefault(rule, {})
        reasons[reason] = reasons.get(reason, 0) + 1

    def reset(self, policy, key):
        for place in self.places([(policy, key)]):
            self.windows.forget(place)
        if policy.threshold:
            self.table(policy).forget(key)

    def size(self):
        return len(self.windows.entries) + sum(len(table.entries) for table in self.strikes.values())

    def stats(self):
        evicted = self.windows.evicted + sum(table.evicted for table in self.strikes.values())
        return {"allowed": self.allowed, "denied": self.denied, "evicted": evicted, "tracked_keys": self.size()}
