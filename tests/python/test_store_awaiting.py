"""Answers of a store, awaited on every kind of event loop: early, late, in blocks, and never."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from doorkeep import AttemptDenied, ConfigError, InvalidKeyError, Limiter, RedisStore, Rule, StrikeRule, aio
from support.proxy import Proxy
from support.servers import Server

OpenStore = Callable[..., RedisStore]
RULE = Rule("login-ip", "5/1h")
WIDE = Rule("wide", "100000/365d")
STRIKES = StrikeRule("login-account", threshold=5, lockout_window="1h")


class NoReaders(asyncio.SelectorEventLoop):
    """A loop without add_reader, like the Proactor of Windows."""

    def add_reader(self, *arguments: Any) -> Any:
        raise NotImplementedError


def loops() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    made: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
        "asyncio": asyncio.new_event_loop,
        "no readers": NoReaders,
    }
    if sys.platform != "win32":
        import uvloop

        made["uvloop"] = uvloop.new_event_loop
    return made


LOOPS = loops()
Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine to its end on a new loop of each kind."""
    make = LOOPS[request.param]

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        event_loop = make()
        try:
            return event_loop.run_until_complete(main)
        finally:
            event_loop.run_until_complete(event_loop.shutdown_asyncgens())
            event_loop.close()

    return run


@pytest.fixture
def redis(servers: Callable[[str], Server]) -> Server:
    return servers("redis")


@pytest.fixture
def limiter(redis: Server, open_store: OpenStore) -> aio.Limiter:
    return aio.Limiter(store=open_store(redis.url))


@pytest.fixture
def slow(proxy: Proxy, open_store: OpenStore) -> Iterator[aio.Limiter]:
    """Return a limiter, connected and used, whose server takes two seconds per call from now on."""
    limiter = aio.Limiter(store=open_store(proxy.url, on_error="closed"))
    asyncio.run(wait(limiter.decide(RULE.key("warm"))))
    proxy.set("stall")
    yield limiter
    proxy.set("pass")


async def wait(answer: Any) -> Any:
    return await answer


def left(limiter: aio.Limiter, key: str, rule: Rule = RULE) -> int:
    """Return how many calls the server still admits, over a separate connection."""
    return int(asyncio.run(wait(limiter.peek(rule.key(key)))).remaining)


def test_an_answer_works_wherever_a_coroutine_does(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> None:
        assert await limiter.decide(RULE.key("a"))
        assert await asyncio.create_task(limiter.decide(RULE.key("a")))
        assert await asyncio.wait_for(limiter.decide(RULE.key("a")), 5)
        assert all(await asyncio.gather(limiter.decide(RULE.key("a")), limiter.decide(RULE.key("a"))))
        assert not await limiter.decide(RULE.key("a"))
        done, pending = await asyncio.wait([asyncio.ensure_future(limiter.peek(RULE.key("a")))])
        assert [bool(task.result()) for task in done] == [False]
        assert not pending

    run(main())


def test_10_000_calls_in_flight_are_all_answered(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> None:
        decisions = await asyncio.gather(*[limiter.decide(WIDE.key("a")) for _ in range(10_000)])
        assert sorted(decision.remaining for decision in decisions) == list(range(90_000, 100_000))

    run(main())


def test_the_request_is_sent_at_the_call_and_the_await_may_come_late(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> None:
        answer = limiter.decide(RULE.key("a"), cost=5)
        time.sleep(0.2)
        assert not await limiter.peek(RULE.key("a"))
        assert await answer

    run(main())


def test_a_call_may_be_made_before_a_loop_runs_or_in_another_loop(limiter: aio.Limiter) -> None:
    early = limiter.decide(RULE.key("a"))
    assert asyncio.run(wait(early)).remaining == 4

    async def call() -> Any:
        return limiter.decide(RULE.key("a"))

    assert asyncio.run(wait(asyncio.run(call()))).remaining == 3


def test_errors_are_raised_by_the_await_and_not_by_the_call(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> None:
        strikes = aio.AttemptLimiter(5, "1h", name="errors", store=limiter.store)
        for answer in (strikes.attempt(""), strikes.locked(""), strikes.reset("")):
            with pytest.raises(InvalidKeyError, match="a key must not be empty"):
                await answer
        many = [RULE.key(str(n)) for n in range(17)]
        for bad in (limiter.decide(), limiter.decide(*many), limiter.decide(RULE.key("a"), cost=-1)):
            with pytest.raises(ConfigError):
                await bad
        attempt = await limiter.attempt(RULE.key("a"))
        with pytest.raises(ConfigError, match="stands in more than one of"):
            await attempt.success(forgive=["other"], give_back=["other"])
        assert await attempt.success(forgive=["other"])

    run(main())


def test_an_answer_is_awaited_once(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> None:
        answer = limiter.decide(RULE.key("a"))
        await answer
        with pytest.raises(RuntimeError, match="aio.Limiter.decide was already awaited"):
            await answer

    run(main())


def test_an_await_outside_asyncio_raises_and_does_not_hang(slow: aio.Limiter) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        slow.decide(RULE.key("a")).send(None)


def test_a_cancelled_call_runs_to_its_end_and_stays_counted(run: Run, proxy: Proxy, open_store: OpenStore) -> None:
    limiter = aio.Limiter(store=open_store(proxy.url, prefix="cancelled"))

    async def main() -> None:
        await limiter.decide(RULE.key("warm"))
        proxy.set("stall")
        task = asyncio.create_task(limiter.decide(RULE.key("a")))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(limiter.decide(RULE.key("a")), 0.05)
        proxy.set("pass")
        # The connection is the same, and usable: replies of cancelled calls are not used for others.
        assert (await limiter.decide(RULE.key("b"), cost=2)).remaining == 3
        assert (await limiter.peek(RULE.key("a"))).remaining == 3
        assert proxy.accepted == 1

    run(main())


def test_an_attempt_in_a_block_is_settled_by_how_the_block_ends(run: Run, limiter: aio.Limiter) -> None:
    keys = (RULE.key("a"), STRIKES.key("a"))

    async def remaining() -> tuple[int, int]:
        first, second = await asyncio.gather(*[limiter.peek(key) for key in keys])
        return first.remaining, second.remaining

    async def main() -> None:
        async with limiter.attempt(*keys) as attempt:
            assert attempt.allowed
            assert await attempt.success(forgive=[STRIKES])
        assert await remaining() == (4, 5)
        with pytest.raises(ZeroDivisionError):
            async with limiter.attempt(*keys, give_back_on=ZeroDivisionError):
                raise ZeroDivisionError
        assert await remaining() == (4, 5)
        with pytest.raises(KeyError):
            async with await limiter.attempt(*keys, give_back_on=ZeroDivisionError):
                raise KeyError
        assert await remaining() == (3, 4)
        attempt = await limiter.attempt(*keys)
        assert (await attempt.extend(WIDE.key("a"))).remaining == 99_999
        assert attempt.holds(WIDE.key("a"))
        assert await attempt.cancel() is True
        assert await attempt.cancel() is False
        assert await remaining() == (3, 4)
        await limiter.decide(RULE.key("a"), cost=3)
        with pytest.raises(AttemptDenied) as denied:
            async with limiter.attempt(*keys):
                pass
        assert denied.value.decision.rule == "login-ip"

    run(main())


def test_a_task_cancelled_inside_the_block_leaves_the_attempt_counted(run: Run, limiter: aio.Limiter) -> None:
    async def login(entered: asyncio.Event) -> None:
        async with limiter.attempt(RULE.key("a")):
            entered.set()
            await asyncio.sleep(60)

    async def main() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(login(entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await limiter.peek(RULE.key("a"))).remaining == 4

    run(main())


def test_a_named_exception_gives_back_even_if_the_task_is_cancelled_meanwhile(run: Run, limiter: aio.Limiter) -> None:
    async def login(crashing: asyncio.Event) -> None:
        async with limiter.attempt(RULE.key("a"), give_back_on=ZeroDivisionError):
            crashing.set()
            raise ZeroDivisionError

    async def main() -> None:
        crashing = asyncio.Event()
        task = asyncio.create_task(login(crashing))
        await crashing.wait()
        # The task now waits for the answer to its give back.
        task.cancel()
        with pytest.raises((asyncio.CancelledError, ZeroDivisionError)):
            await task
        async with asyncio.timeout(5) if sys.version_info >= (3, 11) else _Nothing():
            while (await limiter.peek(RULE.key("a"))).remaining != 5:
                await asyncio.sleep(0.01)

    run(main())


class _Nothing:
    async def __aenter__(self) -> None: ...
    async def __aexit__(self, *arguments: object) -> None: ...


def test_a_loop_is_freed_with_its_bridge(run: Run, limiter: aio.Limiter) -> None:
    seen: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def main() -> None:
        seen.append(weakref.ref(asyncio.get_running_loop()))
        await asyncio.gather(*[limiter.decide(WIDE.key("a")) for _ in range(10)])

    run(main())
    descriptors = count_descriptors()
    for _ in range(50):
        run(main())
    gc.collect()
    assert [ref for ref in seen if ref() is not None] == []
    assert count_descriptors() <= descriptors


def count_descriptors() -> int:
    return len(os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", LOOPS)
def test_a_loop_closed_with_calls_in_flight_is_freed_without_harm(kind: str, slow: aio.Limiter, proxy: Proxy) -> None:
    def leave() -> weakref.ref[asyncio.AbstractEventLoop]:
        event_loop = LOOPS[kind]()

        async def main() -> None:
            for _ in range(10):
                tasks.append(asyncio.ensure_future(slow.decide(WIDE.key("a"))))
            await asyncio.sleep(0.05)

        tasks: list[Any] = []
        event_loop.run_until_complete(main())
        event_loop.close()
        return weakref.ref(event_loop)

    descriptors = count_descriptors()
    left_behind = [leave() for _ in range(3)]
    proxy.set("pass")
    deadline = time.monotonic() + 5
    while (count_descriptors() > descriptors or any(ref() for ref in left_behind)) and time.monotonic() < deadline:
        time.sleep(0.02)
        gc.collect()
    assert not any(ref() for ref in left_behind)
    assert count_descriptors() <= descriptors
    assert left(slow, "a", WIDE) == 100_000 - 30


def test_a_blocking_call_inside_a_running_loop_is_answered(run: Run, limiter: aio.Limiter) -> None:
    blocking = Limiter(store=limiter.store)

    async def main() -> None:
        answer = limiter.decide(RULE.key("a"))
        assert blocking.decide(RULE.key("a"))
        assert await answer

    run(main())
