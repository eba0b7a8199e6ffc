"""How the parts written in Python measure: contenders take turns, and the ratio is that of the same turn.

Knows no limiter. A busy moment of the machine hits both sides of a ratio, and the median drops the turns that it hit
unevenly. Nothing here asserts; a missed goal is a row like any other.
"""

import gc
import json
import random
import statistics
from collections.abc import Callable, Sequence
from time import perf_counter_ns, thread_time_ns

Contender = Callable[[], float]

ROUNDS = 9


def turns(*contenders: Contender, rounds: int = ROUNDS) -> list[list[float]]:
    """Run the contenders in turn and give what each told in each round; the first round only warms up."""
    told: list[list[float]] = [[] for _ in contenders]
    places = list(range(len(contenders)))
    for turn in range(rounds + 1):
        # To and fro, so that nobody always comes first.
        for place in places if turn % 2 else reversed(places):
            gc.collect()
            gc.disable()
            measured = contenders[place]()
            gc.enable()
            if turn:
                told[place].append(measured)
    return told


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Give the median of the rounds' ratios."""
    return statistics.median(our / their for our, their in zip(ours, theirs, strict=True))


def each(call: Callable[[object], object], arguments: Sequence[object]) -> float:
    """Give the nanoseconds of this thread a call, the loop around it included."""
    start = thread_time_ns()
    for argument in arguments:
        call(argument)
    return (thread_time_ns() - start) / len(arguments)


def spread(call: Callable[[object], object], arguments: Sequence[object]) -> tuple[float, float]:
    """Give the median and the 99.9th percentile of single calls in ns, what reading the clock costs taken off."""
    empty = min(-(perf_counter_ns() - perf_counter_ns()) for _ in range(10_000))
    times = []
    gc.disable()
    for argument in arguments:
        start = perf_counter_ns()
        call(argument)
        times.append(perf_counter_ns() - start - empty)
    gc.enable()
    times.sort()
    return max(times[len(times) // 2], 1), times[len(times) * 999 // 1000]


def drawn(make: Callable[[str], object], of: int, count: int, start: int = 0, seed: int = 7) -> list[object]:
    """Make `count` keys, each of one of `of` texts drawn at random, the same ones in every run.

    Every one is a new object, in the order of use, as a request's are: old ones would add the cache misses of their own
    memory to those of the limiter.
    """
    rng = random.Random(seed)
    return [make(f"user-{start + rng.randrange(of)}@example.com") for _ in range(count)]


def run_of(make: Callable[[str], object], start: int, count: int) -> list[object]:
    """Make the keys of `count` texts, one after the other."""
    return [make(f"user-{i}@example.com") for i in range(start, start + count)]


def tell(
    goal: str, what: str, target: float, measured: float, better: str = "lower", detail: str = "", unit: str = ""
) -> None:
    """Print one measurement."""
    row = {
        "goal": goal,
        "what": what,
        "target": target,
        "ratio": measured,
        "better": better,
        "unit": unit,
        "detail": detail,
    }
    print(json.dumps(row), flush=True)


def median_ns(times: Sequence[float]) -> str:
    """Give the median of some times as text."""
    return f"{statistics.median(times):,.0f} ns"
