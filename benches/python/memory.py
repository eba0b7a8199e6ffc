"""P1, P5 and P10: the limiters in memory, against calls that do nothing and against `limits`.

The rates are so wide that every call is admitted, which is the path that writes; P10 compares it with the other one.
"""

from collections.abc import Callable, Sequence
from itertools import count

import limits
from floor import Floor
from rounds import drawn, each, median_ns, ratio, run_of, spread, turns
from rounds import tell as tell_row

from doorkeep import AttemptLimiter, FixedWindow, Limiter, Outcome, Rule, TokenBucket

CALLS = 100_000
KEYS = 100_000
HOT = "ann@example.com"
# Written in full, since the peer reads it by the same text.
WIDE = "60000000/1m"


def tell(goal: str, what: str, *told: object, **more: object) -> None:
    tell_row(goal, f"Python: {what}", *told, **more)


def wide_rule() -> Rule:
    return Rule("login", WIDE)


class Strikes:
    """Rounds of attempts that are all admitted, the fourth of a key included; 4,000 of them to a limiter."""

    def __init__(self, keys: int = 1_000) -> None:
        self.calls = run_of(str, 0, keys) * 4

    def __call__(self) -> float:
        limiters = [AttemptLimiter(5, "1d") for _ in range(CALLS // len(self.calls))]
        return sum(each(limiter.attempt, self.calls) for limiter in limiters) / len(limiters)


def crossing() -> None:
    """P1: what a call costs over crossing into the native module alone."""
    hot, noop = [HOT] * CALLS, Floor(Outcome.ALLOWED)
    locked = AttemptLimiter(threshold=1, lockout_window="1d")
    locked.attempt(HOT)
    floor, admitted, denied = turns(lambda: each(noop.attempt, hot), Strikes(), lambda: each(locked.attempt, hot))
    beside = f"{median_ns(admitted)}, no-op {median_ns(floor)}"
    tell("P1", "AttemptLimiter.attempt, admitted, vs no-op to an enum", 4, ratio(admitted, floor), detail=beside)
    beside = f"{median_ns(denied)}, no-op {median_ns(floor)}"
    tell("P1", "AttemptLimiter.attempt, locked, vs no-op to an enum", 4, ratio(denied, floor), detail=beside)

    keys = [wide_rule().key(HOT)] * CALLS
    limiter = Limiter()
    floor, admitted = turns(lambda: each(noop.decide, keys), lambda: each(limiter.decide, keys))
    beside = f"{median_ns(admitted)}, no-op {median_ns(floor)}"
    tell("P1", "Limiter.decide, one rate, vs no-op to an object", 4, ratio(admitted, floor), detail=beside)


def peers() -> None:
    """P1: the same work as `limits` does with a fixed window, its least dear strategy."""
    item = limits.parse("60000000/minute")
    for keys, bound, what in ((1, 12, "hot"), (100_000, 15, "100 k keys")):
        rule, limiter = wide_rule(), Limiter(capacity=1_000_000)
        hit = limits.strategies.FixedWindowRateLimiter(limits.storage.MemoryStorage()).hit
        texts, objects = drawn(str, keys, CALLS), drawn(rule.key, keys, CALLS)
        key_of, allow = rule.key, limiter.allow
        ours, with_key, theirs = turns(
            lambda: each(allow, objects),
            lambda: each(lambda name: allow(key_of(name)), texts),
            lambda: each(lambda name: hit(item, name), texts),
        )
        beside = f"{median_ns(ours)}, limits {median_ns(theirs)}"
        tell("P1", f"Limiter.allow, {what}, vs limits", bound, ratio(theirs, ours), "higher", beside)
        beside = f"{median_ns(with_key)}, limits {median_ns(theirs)}"
        what = f"the same from texts, hashed in the call, {what}"
        tell("P1", what, bound, ratio(theirs, with_key), "higher", beside)


SIZES = (1_000, 10_000, 100_000, 1_000_000)
Asked = tuple[Callable[[object], object], Sequence[object]]
Subject = Callable[[int], Callable[[object], object]]
SUBJECTS: dict[str, tuple[Subject, Callable[[str], object]]] = {
    "AttemptLimiter": (lambda room: AttemptLimiter(1024, "1d", room).attempt, str),
    "Limiter, one rate": (lambda room: Limiter(capacity=room).allow, wide_rule().key),
    "TokenBucket": (lambda room: TokenBucket(rate=60_000_000, window="1m", capacity=room).allow, str),
    "FixedWindow": (lambda room: FixedWindow(limit=60_000_000, window="1d", max_keys=room).consume, str),
}


def growth() -> None:
    """P5: what a call costs from 10^3 to 10^6 keys, and under a flood of new keys at capacity."""
    for what, (make, key_of) in SUBJECTS.items():
        held = [held_by(make, key_of, size) for size in SIZES]
        told = turns(*(lambda pair=pair: each(*pair) for pair in held), rounds=5)
        beside = ", ".join(median_ns(times) for times in told)
        tell("P5", f"{what}, 10^3 to 10^6 keys", 6, ratio(told[-1], told[0]), detail=beside)
        tell_spread(f"{what}, 10^6 keys", *held[-1])

        floods = [Flood(held[SIZES.index(size)][0], key_of) for size in (SIZES[0], SIZES[-1])]
        few, many = turns(*floods, rounds=5)
        beside = f"{median_ns(few)}, {median_ns(many)}"
        tell("P5", f"{what}, flood at capacity, 10^3 to 10^6", 6, ratio(many, few), detail=beside)
        tell_spread(f"{what}, flood at 10^6", floods[1].call, floods[1].next())


def held_by(make: Subject, key_of: Callable[[str], object], size: int) -> Asked:
    """Give a limiter full of keys, and calls of keys that it holds."""
    call = make(size)
    for key in run_of(key_of, 0, size):
        call(key)
    return call, drawn(key_of, size, CALLS)


def tell_spread(what: str, call: Callable[[object], object], arguments: Sequence[object]) -> None:
    p50, p999 = spread(call, arguments)
    tell("P5", f"{what}, p99.9 vs p50", 100, p999 / p50, detail=f"{p999:,.0f} ns, {p50:,.0f} ns")


class Flood:
    """Rounds of keys that the full limiter has never seen."""

    def __init__(self, call: Callable[[object], object], key_of: Callable[[str], object]) -> None:
        self.call, self.key_of, self.starts = call, key_of, count(SIZES[-1], CALLS)

    def next(self) -> Sequence[object]:
        return run_of(self.key_of, next(self.starts), CALLS)

    def __call__(self) -> float:
        return each(self.call, self.next())


def refusals() -> None:
    """P10: a denial is what an attacker gets, so it must not be the dear answer."""
    tight, wide = Rule("tight", "1/1d"), wide_rule()
    spent, free = Limiter(capacity=200_000).allow, Limiter(capacity=200_000).allow
    compare("Limiter", (spent, tight.key), (free, wide.key))

    spent, free = (AttemptLimiter(threshold, "1d", 200_000).attempt for threshold in (1, 1024))
    compare("AttemptLimiter", (spent, str), (free, str))
    spent, free = (TokenBucket(rate=rate, window="1d", capacity=200_000).allow for rate in (1, 60_000_000))
    compare("TokenBucket", (spent, str), (free, str))
    spent, free = (FixedWindow(limit=limit, window="1d", max_keys=200_000).consume for limit in (1, 60_000_000))
    compare("FixedWindow", (spent, str), (free, str))


Asker = tuple[Callable[[object], object], Callable[[str], object]]


def compare(what: str, spent: Asker, free: Asker) -> None:
    """Compare a limiter whose keys are all spent with one that admits everything."""
    for call, key_of in (spent, free):
        for key in run_of(key_of, 0, KEYS):
            call(key)
    denied, admitted = (drawn(key_of, KEYS, CALLS) for _, key_of in (spent, free))
    against(what, lambda: each(spent[0], denied), lambda: each(free[0], admitted))


def against(what: str, spent: Callable[[], float], free: Callable[[], float]) -> None:
    denied, admitted = turns(spent, free)
    beside = f"denied {median_ns(denied)}, admitted {median_ns(admitted)}"
    tell("P10", f"{what}, denied vs admitted, 100 k keys", 1, ratio(denied, admitted), detail=beside)


if __name__ == "__main__":
    crossing()
    peers()
    refusals()
    growth()
