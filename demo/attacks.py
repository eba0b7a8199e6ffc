"""The attacks on guarded login services, and what each must come to, over all of the services.

The results are the services' own count of the passwords that they looked at. What is expected allows for the time that
an attack took: on a slow machine 20 guesses a minute rightly are 21 after three seconds.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import timedelta

from guesses import Guess, count, send_all
from report import Row, tally

from doorkeep import Rates

CAPACITY = 5_000
FLOOD = 20_000

ADDRESS_RATES = Rates("20/1m,200/1h")
ACCOUNT_RATES = Rates("50/1h")
THRESHOLD = 5

# The longest wait in seconds that a denied guess can be told: until the lockout ends, until the rate admits one more.
LOCKOUT_WAIT = 15 * 60
ADDRESS_WAIT = 60 // 20
ACCOUNT_WAIT = 3600 // 50

OWNER = Guess(client="192.0.2.10", email="ann@example.com", password="correct horse battery staple")


async def attack(ports: Sequence[int]) -> AsyncIterator[Row]:
    """Guess passwords at the services on loopback ports, one attack after the other."""
    for row in await asyncio.gather(
        guess(
            ports,
            "500 guesses at one account from one address",
            (Guess("203.0.113.7", OWNER.email, f"guess {n}") for n in range(500)),
            exactly(THRESHOLD),
            LOCKOUT_WAIT,
        ),
        sign_in(ports, times=5, pause=0),
    ):
        yield row

    spray_began = time.monotonic()
    sprayed = await guess(
        ports,
        "one address tries 100 accounts",
        (Guess("203.0.113.8", f"user{n}@example.com", "123456") for n in range(100)),
        by_rates(ADDRESS_RATES, 20),
        ADDRESS_WAIT,
    )
    yield sprayed

    _, told = sprayed.told() or (0, 0)
    await asyncio.sleep(told)
    yield await guess(
        ports,
        "  10 more after waiting as Retry-After said",
        (Guess("203.0.113.8", f"user{n}@example.com", "123456") for n in range(100, 110)),
        by_rates(ADDRESS_RATES, 1, already=sprayed.got),
        ADDRESS_WAIT,
        began=spray_began,
    )

    yield await guess(
        ports,
        "200 addresses guess at one account",
        (Guess(f"198.51.100.{n}", "bob@example.com", f"guess {n}") for n in range(200)),
        by_rates(ACCOUNT_RATES, 50),
        ACCOUNT_WAIT,
    )


async def crowd_out(port: int, lockout_began: float) -> AsyncIterator[Row]:
    """Fill the memory of a service, to get rid of a lockout that began when `attack` did."""
    for row in await asyncio.gather(
        guess(
            [port],
            "20,000 first guesses, to crowd out a lockout",
            (Guess(f"2001:db8:0:{n:x}::1", f"flood{n}@example.com", "123456") for n in range(FLOOD)),
            exactly(FLOOD),
        ),
        sign_in([port], times=10, pause=0.2),
    ):
        yield row
    held = (await count([port]))["held"]
    yield Row("  held after that, windows and strike keys", held, "held", (0, 2 * CAPACITY))
    yield await guess(
        [port],
        "  the locked out address guesses again",
        [Guess("203.0.113.7", OWNER.email, "123456")],
        exactly(0),
        LOCKOUT_WAIT,
        began=lockout_began,
    )


async def guess(
    ports: Sequence[int],
    name: str,
    guesses: Iterable[Guess],
    expected: Callable[[float], tuple[int, int]],
    longest_wait: int | None = None,
    began: float | None = None,
) -> Row:
    """Send guesses, all of them wrong; `began` says when the first of those was sent that `expected` is about."""
    began = time.monotonic() if began is None else began
    before = await count(ports)
    answers = await send_all(ports, guesses)
    elapsed = time.monotonic() - began
    after = await count(ports)
    verified = after["wrong"] - before["wrong"]
    waits = None if longest_wait is None else (max(1, math.ceil(longest_wait - elapsed)), longest_wait)
    found = tally(verified, answers) + answered(before, after)
    return Row(name, verified, "verified", expected(elapsed), answers, waits, found)


async def sign_in(ports: Sequence[int], times: int, pause: float) -> Row:
    """Log in with the right password, one time after the other."""
    before = await count(ports)
    answers = []
    for turn in range(times):
        answers += await send_all([ports[turn % len(ports)]], [OWNER])
        await asyncio.sleep(pause)
    signed_in = (await count(ports))["right"] - before["right"]
    found = tally(signed_in, answers)
    return Row("  meanwhile the owner logs in from home", signed_in, "logged in", (times, times), answers, found=found)


def answered(before: Counter[str], after: Counter[str]) -> list[str]:
    """Say it if the services could not ask their store."""
    unanswered = after["unanswered"] - before["unanswered"]
    return [f"{unanswered:,} calls were not answered by Redis"] if unanswered else []


def exactly(number: int) -> Callable[[float], tuple[int, int]]:
    """Expect this number however long the attack took."""
    return lambda elapsed: (number, number)


def by_rates(rates: Rates, burst: int, already: int = 0) -> Callable[[float], tuple[int, int]]:
    """Expect the burst, or what the rates admit in the time that the attack took, less what came `already`."""
    return lambda elapsed: (burst, max(burst, rates.max_in(timedelta(seconds=elapsed)) - already))
