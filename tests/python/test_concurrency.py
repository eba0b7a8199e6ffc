"""However many callers race for a key, exactly the allowed number pass."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from doorkeep import AttemptLimiter, FixedWindow, Limiter, Outcome, Rule, StrikeRule, TokenBucket, aio

CALLS = 500
RULE = Rule("login-ip", "5/1h")
STRIKES = StrikeRule("login-account", threshold=5, lockout_window="1h")


def race(call: Callable[[], Any], calls: int = CALLS) -> list[Any]:
    """Make all calls from threads that wait for each other first."""
    threads = 20
    start = threading.Barrier(threads)

    def some() -> list[Any]:
        start.wait()
        return [call() for _ in range(calls // threads)]

    with ThreadPoolExecutor(threads) as pool:
        return [answer for found in [pool.submit(some) for _ in range(threads)] for answer in found.result()]


def test_500_reserves_from_threads_admit_the_threshold_and_engage_one_lockout() -> None:
    strikes = AttemptLimiter(threshold=5, lockout_window="1h")
    outcomes = Counter(outcome for outcome, _ in race(lambda: strikes.reserve("ann")))
    assert outcomes == {Outcome.ALLOWED: 4, Outcome.ALLOWED_LAST_ATTEMPT: 1, Outcome.DENIED: 495}


def test_500_attempts_from_a_large_thread_pool_admit_the_threshold() -> None:
    strikes = AttemptLimiter(threshold=5, lockout_window="1h")
    with ThreadPoolExecutor(100) as pool:
        outcomes = Counter(pool.map(strikes.attempt, ["ann"] * CALLS))
    assert outcomes == {Outcome.ALLOWED: 4, Outcome.ALLOWED_LAST_ATTEMPT: 1, Outcome.DENIED: 495}


def test_500_calls_on_two_keys_from_threads_admit_what_both_allow() -> None:
    limiter = Limiter()
    wide = Rule("wide", "50/1h")
    decisions = race(lambda: limiter.decide(RULE.key("ann"), STRIKES.key("ann"), wide.key("ann")))
    assert sum(map(bool, decisions)) == 5
    assert limiter.peek(wide.key("ann")).remaining == 45


def test_500_calls_from_threads_take_the_tokens_of_one_bucket() -> None:
    bucket = TokenBucket(rate=5, window="1h")
    assert sum(race(lambda: bucket.allow("ann"))) == 5


def test_500_calls_from_threads_fill_one_window() -> None:
    window = FixedWindow(limit=5, window="1h")
    assert sum(map(bool, race(lambda: window.consume("ann")))) == 5


def test_cancels_from_threads_leave_no_strike_behind() -> None:
    strikes = AttemptLimiter(threshold=1024, lockout_window="1h")

    def reserve_and_cancel() -> str:
        _, reservation = strikes.reserve("ann")
        return strikes.cancel(reservation)

    assert Counter(race(reserve_and_cancel, 10_000)) == {"given_back": 10_000}
    assert strikes.decide("ann").remaining == 1023


def test_an_attempt_settled_from_many_threads_is_settled_once() -> None:
    attempt = Limiter().attempt(RULE.key("ann"))
    assert sum(race(attempt.cancel)) == 1


def test_500_gathered_attempts_admit_the_threshold() -> None:
    async def main() -> Counter[Outcome]:
        strikes = aio.AttemptLimiter(threshold=5, lockout_window="1h")
        return Counter(await asyncio.gather(*[strikes.attempt("ann") for _ in range(CALLS)]))

    assert asyncio.run(main()) == {Outcome.ALLOWED: 4, Outcome.ALLOWED_LAST_ATTEMPT: 1, Outcome.DENIED: 495}


def test_500_tasks_that_yield_before_they_settle_admit_the_threshold() -> None:
    async def login(limiter: aio.Limiter) -> bool:
        attempt = await limiter.attempt(STRIKES.key("ann"))
        await asyncio.sleep(0)
        return attempt.allowed

    async def main() -> int:
        limiter = aio.Limiter()
        return sum(await asyncio.gather(*[login(limiter) for _ in range(CALLS)]))

    assert asyncio.run(main()) == 5


def test_20_concurrent_right_passwords_admit_five_and_again_after_their_reset() -> None:
    strikes = AttemptLimiter(threshold=5, lockout_window="15m")
    outcomes = Counter(race(lambda: strikes.attempt("ann"), 20))
    assert outcomes == {Outcome.ALLOWED: 4, Outcome.ALLOWED_LAST_ATTEMPT: 1, Outcome.DENIED: 15}
    for _ in range(5):
        assert strikes.reset("ann")
    assert strikes.attempt("ann") is Outcome.ALLOWED


def test_one_limiter_serves_several_event_loops_one_after_another_and_in_threads() -> None:
    limiter = aio.Limiter()

    async def once() -> bool:
        return bool(await limiter.decide(RULE.key("ann")))

    admitted = [asyncio.run(once()) for _ in range(3)]
    admitted += race(lambda: asyncio.run(once()), 20)
    assert sum(admitted) == 5


FORK = """
import os
from doorkeep import Limiter, Rule
rule, limiter = Rule("login-ip", "5/1h"), Limiter()
limiter.decide(rule.key("ann"))
child = os.fork()
if child == 0:
    # Four are left in the copy; the parent must not see them spent.
    os._exit(sum(bool(limiter.decide(rule.key("ann"))) for _ in range(10)))
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), limiter.peek(rule.key("ann")).remaining)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_decides_on_its_own_copy() -> None:
    # In its own interpreter, so that it does not fork under the threads of other tests.
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "4 4\n"
