"""Starts two guarded login services on free loopback ports, attacks them, and prints what came of it.

In memory the services are attacked one after the other. With REDIS_URL they share one budget there, and are attacked
both at once. With --redis they share a server of the demo's own, which then fails while the attack goes on.

Exits 1 when a number is not as expected. Ends the processes that it started, whatever happens.
"""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import Awaitable
from contextlib import aclosing

import outage
import server
from attacks import CAPACITY, attack, crowd_out
from report import Report
from services import SERVICES, serving, serving_all

MEMORY_SECONDS = 120
REDIS_SECONDS = 90
RULES = """\
  login-ip          20/1m,200/1h                         by address
  login-account-ip  5 attempts, then locked out for 15m  by account and address
  login-account     50/1h                                by account
"""
IN_MEMORY = f"""\
Two login services, each guarded by doorkeep in the memory of its own process, under the same three rules:

{RULES}
"verified" counts the passwords that a service really looked at. First guesses at new accounts from new addresses are
let in, but however many come, they must not crowd out a lockout. At most {CAPACITY:,} windows of rates and {CAPACITY:,}
keys with strikes are kept.
"""
ONE_BUDGET = f"""\
Two login services, a FastAPI and an Express one, guarded by doorkeep on one budget in {{place}}:

{RULES}
Each attack is split over both. "verified" counts the passwords that they really looked at, in all.
"""
OUTAGES = f"""\
Now Redis fails while one address guesses at one account, over both services. Their mode, on_error, says what they
answer then:

  local   each decides by itself, by the same rules: one more budget for each of the two services
  open    lets everybody in, without counting: no bound
  closed  lets nobody in, and answers 503

A server that comes back without its data has one more budget for all.
No answer may take longer than {outage.LONGEST_SECONDS} s.
"""


async def main() -> int:
    """Run the demo within its deadline; a signal that ends it ends its processes first."""
    demonstration, seconds = chosen()
    running = asyncio.ensure_future(demonstration)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        return await asyncio.wait_for(running, seconds)
    except asyncio.CancelledError:
        return 130
    except asyncio.TimeoutError:
        print(f"demo: not done within {seconds} s", file=sys.stderr)
    except (FileNotFoundError, RuntimeError) as error:
        print(f"demo: {error}", file=sys.stderr)
    return 1


def chosen() -> tuple[Awaitable[int], int]:
    """Give what is asked for, and how long it may take."""
    if "--redis" in sys.argv[1:]:
        return break_redis(), REDIS_SECONDS
    if url := os.environ.get("REDIS_URL"):
        return share_redis(url), REDIS_SECONDS
    return attack_memory(), MEMORY_SECONDS


async def attack_memory() -> int:
    """Attack every service on its own, print the table, and give the exit code."""
    print(IN_MEMORY)
    report = Report()
    report.begin("service")
    for service in SERVICES:
        print(flush=True)
        async with serving(service, DEMO_CAPACITY=str(CAPACITY)) as port:
            began = time.monotonic()
            async for row in attack([port]):
                report.add(service, row)
            async for row in crowd_out(port, began):
                report.add(service, row)
    return report.end()


async def share_redis(url: str) -> int:
    """Attack all services at once on a server that is there."""
    print(ONE_BUDGET.format(place="the Redis that REDIS_URL names"))
    report = Report()
    await attack_all(report, url)
    return report.end()


async def break_redis() -> int:
    """Attack all services at once on a server that is started for it, then let it fail."""
    report = Report()
    async with server.running() as redis:
        print(ONE_BUDGET.format(place="a Redis of their own"))
        await attack_all(report, redis.url)
        print("", OUTAGES, sep="\n")
        report.begin("mode")
        for mode in outage.MODES:
            print(flush=True)
            async with (
                serving_all(REDIS_URL=redis.url, DEMO_PREFIX=fresh_prefix(), DEMO_ON_ERROR=mode) as ports,
                aclosing(outage.attack(ports, redis, mode)) as rows,
            ):
                async for row in rows:
                    report.add(mode, row)
    return report.end()


async def attack_all(report: Report, url: str) -> None:
    """Attack all services on one budget."""
    report.begin("service")
    print(flush=True)
    async with serving_all(REDIS_URL=url, DEMO_PREFIX=fresh_prefix()) as ports:
        async for row in attack(ports):
            report.add("both", row)


def fresh_prefix() -> str:
    """Name a budget that nobody has drawn on. What is left of it expires by itself."""
    return f"demo-{secrets.token_hex(4)}"


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
