"""Makes decisions over Redis from Python's asyncio, as many as it can.

Reads lines `subject shape in-flight milliseconds` and answers each with the decisions a second. `shapes.json` says what
a shape asks.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from time import perf_counter

import limits
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter

from doorkeep import RedisStore, Rule, aio

SHAPES = json.loads((Path(__file__).parent / "shapes.json").read_text())
Call = Callable[[int], Awaitable[bool]]


def doorkeep(url: str, shape: str) -> Call:
    told = SHAPES[shape]
    limiter = aio.Limiter(store=RedisStore(url, prefix="bench", timeout=2, on_error="closed"))
    rules = [Rule(name, rates) for name, rates in told["rules"].items()]
    number = told["keys"]
    keys = [tuple(rule.key(f"{(i * (place + 1)) % number}") for place, rule in enumerate(rules)) for i in range(number)]

    async def call(turn: int) -> bool:
        decision = await limiter.decide(*keys[turn % number])
        if decision.reason == "unavailable":
            raise RuntimeError("the store did not answer")
        return decision.allowed

    return call


def peer(url: str, shape: str) -> Call:
    told = SHAPES[shape]
    # One connection for each call in flight, of which its pool would refuse more than 100.
    storage = RedisStorage(f"async+{url}", implementation="redispy", max_connections=1024)
    hit, item = FixedWindowRateLimiter(storage).hit, limits.parse("60000000/day")
    keys = [f"user-{i}" for i in range(told["keys"])]
    return lambda turn: hit(item, keys[turn % len(keys)])


async def measure(call: Call, in_flight: int, seconds: float) -> float:
    turns, done = count(), 0

    async def work() -> None:
        nonlocal done
        while perf_counter() < end:
            await call(next(turns))
            done += 1

    start = perf_counter()
    end = start + seconds
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return done / (perf_counter() - start)


def main(url: str) -> None:
    subjects = {"doorkeep": doorkeep, "limits": peer}
    calls: dict[tuple[str, str], Call] = {}
    loop = asyncio.new_event_loop()
    for line in sys.stdin:
        subject, shape, in_flight, milliseconds = line.split()
        if (subject, shape) not in calls:
            calls[subject, shape] = subjects[subject](url, shape)
        measured = measure(calls[subject, shape], int(in_flight), int(milliseconds) / 1000)
        print(loop.run_until_complete(measured), flush=True)
    loop.close()


if __name__ == "__main__":
    main(sys.argv[1])
