"""A process that forks: the child decides over its own connection, and the parent is not affected."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from doorkeep import AttemptLimiter, Limiter, Outcome, RedisStore, Rule, StrikeRule, aio
from support.children import Child, in_child
from support.deadlines import AT_ONCE, ONE_TIMEOUT, TIMEOUT, until, within
from support.servers import Server

# This is what these tests do: a parent with threads forks.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

OpenStore = Callable[..., RedisStore]
RULE = Rule("login-ip", "100/1h")
STRIKES = StrikeRule("login-account", threshold=3, lockout_window="1h")
WORKERS, CALLS = 4, 100
PRELOADED: dict[str, Any] = {}


@pytest.fixture
def store(shared: Server, open_store: OpenStore) -> RedisStore:
    """Return a store that this process has used."""
    store = open_store(shared.url, timeout=TIMEOUT, on_error="closed")
    assert not Limiter(store=store).peek(RULE.key("warm")).reason
    return store


def ask_blocking(store: RedisStore, name: str) -> Any:
    return Limiter(store=store).decide(RULE.key(name))


def ask_aio(store: RedisStore, name: str) -> Any:
    async def main() -> Any:
        return await aio.Limiter(store=store).decide(RULE.key(name))

    return asyncio.run(main())


@pytest.mark.parametrize("ask", [ask_blocking, ask_aio])
@pytest.mark.parametrize("used_by", [ask_blocking, ask_aio])
def test_a_forked_child_decides_and_the_parent_is_unaffected(
    store: RedisStore, used_by: Callable[..., Any], ask: Callable[..., Any]
) -> None:
    assert used_by(store, "ann").remaining == 99

    def work() -> list[int]:
        with within(ONE_TIMEOUT):
            return [ask(store, "ann").remaining for _ in range(3)]

    assert in_child(work) == [98, 97, 96]
    with within(AT_ONCE):
        assert used_by(store, "ann").remaining == 95
    assert in_child(work) == [94, 93, 92]


def test_a_grandchild_decides(store: RedisStore) -> None:
    def work() -> list[int]:
        own = ask_blocking(store, "ann").remaining
        return [own, in_child(lambda: ask_aio(store, "ann").remaining), ask_blocking(store, "ann").remaining]

    assert in_child(work) == [99, 98, 97]


def test_a_child_without_a_server_decides_within_the_timeout(server: Server, open_store: OpenStore) -> None:
    store = open_store(server.url, timeout=TIMEOUT)
    assert not ask_blocking(store, "ann").degraded

    def work() -> list[bool]:
        with within(ONE_TIMEOUT):
            first = [ask_blocking(store, "ann").degraded, ask_aio(store, "ann").degraded]
        with within(AT_ONCE):
            return [*first, ask_blocking(store, "ann").degraded]

    with server.frozen():
        assert in_child(work) == [True] * 3
    # Only the child's breaker opened.
    assert not ask_blocking(store, "ann").degraded


def test_a_child_whose_parent_found_no_server_connects_itself(server: Server, open_store: OpenStore) -> None:
    store = open_store(server.url, timeout=TIMEOUT)
    server.kill()
    assert ask_blocking(store, "ann").degraded
    server.restart()

    def work() -> list[bool]:
        return [ask_blocking(store, "ann").degraded, ask_aio(store, "ann").degraded]

    assert in_child(work) == [False, False]
    until(lambda: not Limiter(store=store).peek(RULE.key("ann")).degraded)


def test_a_child_of_a_parent_with_calls_in_flight_decides(server: Server, open_store: OpenStore) -> None:
    store = open_store(server.url, timeout=TIMEOUT, on_error="closed")
    limiter = aio.Limiter(store=store)
    ask_blocking(store, "warm")

    def work() -> str | None:
        with within(ONE_TIMEOUT):
            return ask_aio(store, "ann").reason

    async def main() -> list[str | None]:
        with server.frozen():
            calls = [limiter.decide(RULE.key("ann")) for _ in range(20)]
            child = Child(work)
            assert child.answer() == "unavailable"
        return [(await call).reason for call in calls]

    assert asyncio.run(main()) == ["unavailable"] * 20


def test_an_answer_of_the_parent_is_refused_in_the_child(server: Server, open_store: OpenStore) -> None:
    store = open_store(server.url, timeout=TIMEOUT)
    ask_blocking(store, "warm")
    with server.frozen():
        answer = aio.Limiter(store=store).decide(RULE.key("ann"))

        async def main() -> None:
            await answer

        def work() -> None:
            with pytest.raises(RuntimeError, match="aio.Limiter.decide was called before the fork"):
                asyncio.run(main())

        in_child(work)
        asyncio.run(main())


def test_an_attempt_that_the_parent_made_is_settled_by_the_child(store: RedisStore) -> None:
    limiter = Limiter(store=store)
    attempt = limiter.attempt(STRIKES.key("ann"), RULE.key("ann"))
    assert in_child(lambda: attempt.success(forgive=[STRIKES])) is True
    assert limiter.peek(STRIKES.key("ann")).remaining == 3


@pytest.mark.parametrize("ask", [ask_blocking, ask_aio])
def test_workers_of_a_preloaded_application_share_one_budget(store: RedisStore, ask: Callable[..., Any]) -> None:
    budget, strikes = Rule("preload", "37/1h"), AttemptLimiter(5, "1h", name="preload", store=store)
    limiter = Limiter(store=store)

    def one_by_one() -> tuple[int, Counter[Outcome]]:
        outcomes = Counter(strikes.attempt("ann") for _ in range(CALLS))
        return sum(bool(limiter.decide(budget.key("ann"))) for _ in range(CALLS)), outcomes

    async def gathered() -> tuple[int, Counter[Outcome]]:
        waiting, waiting_strikes = aio.Limiter(store=store), aio.AttemptLimiter(5, "1h", name="preload", store=store)
        outcomes = Counter(await asyncio.gather(*[waiting_strikes.attempt("ann") for _ in range(CALLS)]))
        decisions = await asyncio.gather(*[waiting.decide(budget.key("ann")) for _ in range(CALLS)])
        return sum(map(bool, decisions)), outcomes

    work = one_by_one if ask is ask_blocking else lambda: asyncio.run(gathered())
    answers = [child.answer() for child in [Child(work) for _ in range(WORKERS)]]
    assert sum(admitted for admitted, _ in answers) == 37
    assert sum((outcomes for _, outcomes in answers), Counter()) == {
        Outcome.ALLOWED: 4,
        Outcome.ALLOWED_LAST_ATTEMPT: 1,
        Outcome.DENIED: WORKERS * CALLS - 5,
    }


def guess(_: int) -> bool:
    """Call the limiter that the workers of the pool inherited."""
    return bool(PRELOADED["limiter"].decide(RULE.key("pool")))


def test_a_forked_pool_admits_one_budget(store: RedisStore) -> None:
    PRELOADED["limiter"] = Limiter(store=store)
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork")) as pool:
        assert sum(pool.map(guess, range(WORKERS * CALLS), chunksize=10)) == 100
    assert not guess(0)


def test_a_child_logs_its_own_outage_and_not_its_parents(server: Server, open_store: OpenStore) -> None:
    store = open_store(server.url, timeout=TIMEOUT)
    assert not ask_blocking(store, "ann").degraded
    server.kill()

    def work() -> list[str]:
        levels: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: levels.append(record.levelname)  # type: ignore[method-assign]
        logging.getLogger("doorkeep").addHandler(handler)
        for _ in range(3):
            assert ask_blocking(store, "ann").degraded
        return levels

    assert in_child(work) == ["WARNING"]
    assert ask_blocking(store, "ann").degraded
    assert in_child(work) == ["WARNING"]


def test_ids_of_children_are_different(store: RedisStore) -> None:
    wide = AttemptLimiter(1000, "1h", name="ids", store=store)

    def work() -> None:
        for _ in range(CALLS):
            wide.attempt("ann")

    for child in [Child(work) for _ in range(WORKERS)]:
        child.answer()
    # A call with an id that was used before would be treated as a repetition and not counted.
    assert wide.decide("ann").remaining == 1000 - WORKERS * CALLS - 1


def test_a_limiter_in_memory_is_the_childs_own() -> None:
    limiter = AttemptLimiter(2, "1h")
    assert limiter.attempt("ann") is Outcome.ALLOWED

    def work() -> list[Outcome]:
        return [limiter.attempt("ann"), limiter.attempt("ann")]

    both = [Outcome.ALLOWED_LAST_ATTEMPT, Outcome.DENIED]
    assert in_child(work) == both
    assert in_child(work) == both
    assert work() == both


def test_children_of_a_parent_at_work_never_hang(store: RedisStore) -> None:
    """Fork at any time: locks that the parent's threads hold must not block the child."""
    with asking_all_the_time(Limiter(store=store)):
        for _ in range(30):
            assert in_child(lambda: ask_blocking(store, f"child-{os.getpid()}").reason) is None


def test_children_of_a_parent_that_decides_locally_never_hang() -> None:
    """The tables of an outage also have locks, and the child must not wait for those of its parent."""
    limiter = Limiter(store=RedisStore("redis://127.0.0.1:1", on_error="local"))
    with asking_all_the_time(limiter):
        for _ in range(200):
            decision = in_child(lambda: limiter.decide(RULE.key("busy")))
            assert (decision.allowed, decision.degraded) == (True, True)


@contextlib.contextmanager
def asking_all_the_time(limiter: Limiter) -> Iterator[None]:
    over = threading.Event()

    def keep_asking() -> None:
        while not over.is_set():
            limiter.decide(RULE.key("busy"))

    asking = [threading.Thread(target=keep_asking) for _ in range(4)]
    for thread in asking:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in asking:
            thread.join()
