"""A store whose server fails: what decides, how fast, what is logged, and that the server is used again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

import doorkeep
from doorkeep import AttemptDenied, AttemptLimiter, Limiter, Outcome, RedisStore, Rule, StrikeRule, aio
from doorkeep._native import Answer
from doorkeep.errors import LimiterUnavailable
from support.deadlines import AT_ONCE, ONE_TIMEOUT, TIMEOUT, heartbeat, until, within
from support.proxy import Proxy
from support.servers import Server

OpenStore = Callable[..., RedisStore]
NOBODY = "redis://ann:hunter2@127.0.0.1:1/0"
STRIKES = StrikeRule("login-account", threshold=3, lockout_window="1h")
RULE = Rule("login-ip", "3/1h")
AALD = [Outcome.ALLOWED, Outcome.ALLOWED, Outcome.ALLOWED_LAST_ATTEMPT, Outcome.DENIED]
HOUR = timedelta(hours=1)


@pytest.fixture(params=["blocking", "aio"])
def kind(request: pytest.FixtureRequest) -> ModuleType:
    """Return the module with the limiters of one kind."""
    return doorkeep if request.param == "blocking" else aio


def result_of(answer: Any) -> Any:
    """Return an answer, after awaiting it if it is awaitable."""
    return asyncio.run(wait(answer)) if isinstance(answer, Answer) else answer


async def wait(answer: Any) -> Any:
    return await answer


def is_used(limiter: Limiter) -> bool:
    """Return whether the store answers. Counts nothing."""
    decision = limiter.peek(RULE.key("somebody"))
    return not decision.degraded and decision.reason != "unavailable"


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.doorkeep_event) for record in caplog.records]  # type: ignore[attr-defined]


# F01: no server listens.


def test_without_a_server_the_tables_of_the_process_decide(kind: Any, open_store: OpenStore) -> None:
    store = open_store(NOBODY, timeout=TIMEOUT)
    limiter = kind.Limiter(store=store)
    with within(TIMEOUT):
        decisions = [result_of(limiter.decide(STRIKES.key("ann"))) for _ in range(4)]
    assert [decision.outcome for decision in decisions] == AALD
    assert all(decision.degraded for decision in decisions)
    assert decisions[3].reason == "locked"
    assert HOUR - timedelta(minutes=1) < decisions[3].retry_after <= HOUR
    assert limiter.stats()["store_failed"] == {"local": 4}
    strikes = kind.AttemptLimiter(3, "1h", name="strikes", store=store)
    assert [result_of(strikes.attempt("ann")) for _ in range(4)] == AALD
    assert result_of(strikes.locked("ann")) is True
    bucket = kind.TokenBucket(2, "1h", name="bucket", store=store)
    assert [result_of(bucket.allow("ann")) for _ in range(3)] == [True, True, False]
    window = kind.FixedWindow(2, "1h", name="window", store=store)
    assert [bool(result_of(window.consume("ann"))) for _ in range(3)] == [True, True, False]
    assert [result_of(made.reset("ann")) for made in (strikes, bucket, window)] == [False] * 3
    assert result_of(strikes.attempt("ann")) is Outcome.ALLOWED


def test_an_open_store_without_a_server_admits_everything(kind: Any, open_store: OpenStore) -> None:
    store = open_store(NOBODY, timeout=TIMEOUT, on_error="open")
    limiter = kind.Limiter(store=store)
    with within(TIMEOUT):
        for _ in range(10):
            decision = result_of(limiter.decide(STRIKES.key("ann")))
            assert decision.outcome is Outcome.ALLOWED
            assert decision.degraded
    strikes = kind.AttemptLimiter(1, "1h", name="strikes", store=store)
    assert [result_of(strikes.attempt("ann")) for _ in range(3)] == [Outcome.ALLOWED] * 3
    assert result_of(strikes.locked("ann")) is False
    bucket = kind.TokenBucket(1, "1h", name="bucket", store=store)
    assert [result_of(bucket.allow("ann")) for _ in range(3)] == [True] * 3
    assert limiter.stats()["store_failed"] == {"open": 10}


def test_a_closed_store_without_a_server_is_unavailable_and_raises_nothing(kind: Any, open_store: OpenStore) -> None:
    store = open_store(NOBODY, timeout=TIMEOUT, on_error="closed")
    limiter = kind.Limiter(store=store)
    strikes = kind.AttemptLimiter(5, "1h", name="strikes", store=store)
    bucket = kind.TokenBucket(5, "1h", name="bucket", store=store)
    window = kind.FixedWindow(5, "1h", name="window", store=store)
    for decision in (limiter.decide(RULE.key("ann"), STRIKES.key("ann")), strikes.decide("ann"), window.consume("ann")):
        decision = result_of(decision)
        assert (decision.outcome, decision.reason) == (Outcome.DENIED, "unavailable")
        assert (decision.retry_after, decision.retry_after_seconds, decision.degraded) == (None, None, False)
    assert result_of(strikes.attempt("ann")) is Outcome.DENIED
    assert result_of(strikes.locked("ann")) is True
    assert result_of(strikes.retry_after("ann")) is None
    assert [result_of(bucket.allow("ann")), result_of(bucket.allow_n("ann", 2))] == [False, False]
    outcome, reservation = result_of(strikes.reserve("ann"))
    assert outcome is Outcome.DENIED
    assert result_of(strikes.cancel(reservation)) == "nothing"
    attempt = result_of(limiter.attempt(RULE.key("ann")))
    assert not attempt.allowed
    assert result_of(attempt.success()) is False
    assert result_of(limiter.reset(RULE.key("ann"))) is False
    with pytest.raises(LimiterUnavailable) as raised:
        enter(limiter.attempt(RULE.key("ann")))
    assert isinstance(raised.value, AttemptDenied)


def enter(attempt: Any) -> None:
    async def awaited() -> None:
        async with attempt:
            pass

    if isinstance(attempt, Answer):
        asyncio.run(awaited())
        return
    with attempt:
        pass


def test_the_limiters_own_on_error_overrides_the_stores(kind: Any, open_store: OpenStore) -> None:
    store = open_store(NOBODY, timeout=TIMEOUT, on_error="closed")
    assert result_of(kind.Limiter(store=store, on_error="open").decide(RULE.key("ann"))).allowed
    assert result_of(kind.AttemptLimiter(3, "1h", name="s", store=store, on_error="local").decide("ann")).degraded


def test_an_outage_is_two_warnings_without_key_or_password(
    kind: Any, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "doorkeep")
    with contextlib.closing(Server("redis", "--user", "ann", "on", ">hunter2", "~*", "+@all")) as server:
        store = open_store(server.url.replace("//", "//ann:hunter2@"), timeout=TIMEOUT)
        limiter = kind.Limiter(store=store)
        assert not result_of(limiter.decide(STRIKES.key("bob@example.com"))).degraded
        server.kill()
        for _ in range(20):
            assert result_of(limiter.decide(STRIKES.key("bob@example.com"))).degraded
        assert lines(caplog) == [("WARNING", "store_down")]
        server.restart()
        until(lambda: is_used(Limiter(store=store)))
        assert not result_of(limiter.decide(STRIKES.key("bob@example.com"))).degraded
    assert lines(caplog) == [("WARNING", "store_down"), ("WARNING", "store_up")]
    for record in caplog.records:
        assert record.name == "doorkeep"
        assert f"127.0.0.1:{server.port}" in record.getMessage()
        for secret in ("bob", "hunter2", STRIKES.key("bob@example.com").digest):
            assert secret not in str(record.__dict__)


def test_a_raising_log_handler_does_not_affect_a_decision(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)

    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise ZeroDivisionError

    handler = Broken()
    logging.getLogger("doorkeep").addHandler(handler)
    try:
        assert Limiter(store=open_store(NOBODY)).decide(RULE.key("ann")).degraded
    finally:
        logging.getLogger("doorkeep").removeHandler(handler)
    assert [result_of.exc_type for result_of in unraisable] == [ZeroDivisionError]


# F02: the server accepts everything and does not answer.


def test_100_calls_on_a_silent_server_end_in_one_timeout_and_the_loop_continues(
    server: Server, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "doorkeep")
    store = open_store(server.url, timeout=TIMEOUT)
    limiter, blocking = aio.Limiter(store=store), Limiter(store=store)

    async def main() -> None:
        assert not (await limiter.decide(RULE.key("warm"))).degraded
        with server.frozen():
            async with heartbeat():
                with within(ONE_TIMEOUT):
                    decisions = await asyncio.gather(*[limiter.decide(RULE.key("ann")) for _ in range(100)])
                with within(AT_ONCE):
                    assert (await limiter.decide(RULE.key("ann"))).degraded
        assert all(decision.degraded for decision in decisions)
        assert sum(map(bool, decisions)) == 3

    asyncio.run(main())
    until(lambda: is_used(blocking))
    # Calls that the server reads after their timeout may be counted, but never more than were made.
    assert blocking.peek(RULE.key("warm")).remaining == 2
    assert lines(caplog) == [("WARNING", "store_down"), ("WARNING", "store_up")]


def test_threads_on_a_silent_server_each_wait_one_timeout(server: Server, open_store: OpenStore) -> None:
    limiter = Limiter(store=open_store(server.url, timeout=TIMEOUT, on_error="closed"))
    limiter.peek(RULE.key("warm"))
    with server.frozen(), ThreadPoolExecutor(20) as pool, within(ONE_TIMEOUT):
        reasons = Counter(decision.reason for decision in pool.map(limiter.decide, [RULE.key("ann")] * 40))
    assert reasons == {"unavailable": 40}
    until(lambda: is_used(limiter))


def test_a_late_reply_is_never_used_for_another_call(proxy: Proxy, open_store: OpenStore) -> None:
    store = open_store(proxy.url, timeout=TIMEOUT, on_error="closed")
    limiter = Limiter(store=store)
    for name, cost in (("spent", 3), ("fresh", 1)):
        assert limiter.decide(RULE.key(name), cost=cost)
    proxy.set("stall")
    assert limiter.decide(RULE.key("spent")).reason == "unavailable"
    proxy.set("pass")
    until(lambda: is_used(limiter))
    for _ in range(20):
        assert limiter.peek(RULE.key("fresh")).remaining == 2
        assert limiter.peek(RULE.key("spent")).remaining == 0


# F05: the server comes and goes.


def test_a_flapping_network_logs_one_line_per_transition(
    proxy: Proxy, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "doorkeep")
    store = open_store(proxy.url, timeout=TIMEOUT)
    limiter, verdicts, stop = aio.Limiter(store=store), list[bool](), time.monotonic() + 2.6

    async def guess() -> None:
        while time.monotonic() < stop:
            verdicts.append((await limiter.decide(STRIKES.key("ann"))).allowed)
            await asyncio.sleep(0.005)

    async def main() -> None:
        async with heartbeat():
            guessing = [asyncio.create_task(guess()) for _ in range(5)]
            for fault in ("pass", "rst", "pass", "rst", "pass"):
                proxy.set(fault)
                await asyncio.sleep(0.5)
            await asyncio.gather(*guessing)

    asyncio.run(main())
    until(lambda: is_used(Limiter(store=store)))
    seen = lines(caplog)
    outages = len(seen) // 2
    assert 1 <= outages <= 2
    assert seen == [("WARNING", "store_down"), ("WARNING", "store_up")] * outages
    # One budget in Redis, and one for each outage.
    assert 3 <= sum(verdicts) <= 3 * (1 + outages)


# F07 and F08: the server forgets.


def test_a_killed_and_restarted_server_admits_one_more_budget(kind: Any, server: Server, open_store: OpenStore) -> None:
    store = open_store(server.url, timeout=TIMEOUT, on_error="closed")
    strikes = kind.AttemptLimiter(3, "1h", name="login", store=store)
    assert [result_of(strikes.attempt("ann")) for _ in range(4)] == AALD
    server.kill()
    assert result_of(strikes.decide("ann")).reason == "unavailable"
    server.restart()
    until(lambda: is_used(Limiter(store=store)))
    assert [result_of(strikes.attempt("ann")) for _ in range(4)] == AALD


def test_scripts_flushed_under_20_threads_change_no_verdict(shared: Server, open_store: OpenStore) -> None:
    limiter = Limiter(store=open_store(shared.url, on_error="closed"))
    rule, over = Rule("flushed", "500/1h"), threading.Event()

    def flush() -> None:
        while not over.is_set():
            shared.ask("SCRIPT", "FLUSH")

    flushing = threading.Thread(target=flush)
    flushing.start()
    try:
        with ThreadPoolExecutor(20) as pool:
            reasons = Counter(decision.reason for decision in pool.map(limiter.decide, [rule.key("ann")] * 1000))
    finally:
        over.set()
        flushing.join()
    assert reasons == {None: 500, "limited": 500}


def test_scripts_flushed_under_20_tasks_change_no_verdict(shared: Server, open_store: OpenStore) -> None:
    limiter, rule = aio.Limiter(store=open_store(shared.url, on_error="closed")), Rule("flushed", "500/1h")

    async def some() -> list[str | None]:
        return [(await limiter.decide(rule.key("ann"))).reason for _ in range(50)]

    async def main() -> Counter[str | None]:
        calling = asyncio.gather(*[some() for _ in range(20)])
        while not calling.done():
            await asyncio.to_thread(shared.ask, "SCRIPT", "FLUSH")
        return Counter(reason for found in calling.result() for reason in found)

    assert asyncio.run(main()) == {None: 500, "limited": 500}


# F10 and F11: the server answers, but refuses writes.


@pytest.mark.parametrize(
    ("fault", "relief", "why"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "OOM"),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "READONLY"),
    ],
    ids=["full", "demoted"],
)
def test_a_server_that_refuses_writes_still_denies_locked_keys(
    kind: Any,
    server: Server,
    open_store: OpenStore,
    caplog: pytest.LogCaptureFixture,
    fault: tuple[str, ...],
    relief: tuple[str, ...],
    why: str,
) -> None:
    caplog.set_level(logging.DEBUG, "doorkeep")
    store = open_store(server.url, timeout=TIMEOUT)
    limiter, closed = kind.Limiter(store=store), kind.Limiter(store=store, on_error="closed")
    for _ in range(3):
        assert result_of(limiter.decide(STRIKES.key("locked")))
    server.ask(*fault)
    for _ in range(3):
        decision = result_of(limiter.decide(STRIKES.key("locked")))
        assert (decision.reason, decision.degraded) == ("locked", False)
        assert HOUR - timedelta(minutes=1) < decision.retry_after <= HOUR
        assert result_of(limiter.decide(STRIKES.key("new"))).degraded
        assert result_of(closed.decide(STRIKES.key("new"))).reason == "unavailable"
    assert result_of(limiter.reset(STRIKES.key("locked"))) in (True, False)
    # One line for all calls, and the breaker stayed closed.
    assert lines(caplog) == [("ERROR", "store_refused")]
    assert why in caplog.text
    server.ask(*relief)
    until(lambda: result_of(closed.decide(STRIKES.key("new"))).reason is None)
    assert not result_of(limiter.decide(STRIKES.key("new"))).degraded
    assert lines(caplog) == [("ERROR", "store_refused")]


# F31 to F33: the connection ends while idle.


def kill_clients(server: Server) -> None:
    server.ask("CLIENT", "KILL", "TYPE", "normal")


def close_idle_clients(server: Server) -> None:
    server.ask("CONFIG", "SET", "timeout", "1")
    until(lambda: b"name=" not in server.ask("CLIENT", "LIST").partition(b"\n")[2])
    server.ask("CONFIG", "SET", "timeout", "0")


@pytest.mark.parametrize("end", [kill_clients, close_idle_clients])
def test_a_connection_that_ends_while_idle_is_not_noticed(
    kind: Any,
    server: Server,
    open_store: OpenStore,
    caplog: pytest.LogCaptureFixture,
    end: Callable[[Server], None],
) -> None:
    caplog.set_level(logging.DEBUG, "doorkeep")
    limiter = kind.Limiter(store=open_store(server.url, timeout=TIMEOUT))
    for _ in range(3):
        assert result_of(limiter.allow(STRIKES.key("ann")))
    end(server)
    with within(TIMEOUT):
        decision = result_of(limiter.decide(STRIKES.key("ann")))
    assert (decision.reason, decision.degraded) == ("locked", False)
    assert not result_of(limiter.decide(STRIKES.key("bob"))).degraded
    assert limiter.stats()["store_failed"] == {}
    assert lines(caplog) == []


# F29: the reply is lost after the script has run.


def test_calls_whose_replies_are_lost_count_at_most_once(kind: Any, proxy: Proxy, open_store: OpenStore) -> None:
    store = open_store(proxy.url, timeout=TIMEOUT, on_error="closed")
    limiter, rule = kind.Limiter(store=store), Rule("lost", "1000/1h")
    assert result_of(limiter.decide(rule.key("ann")))
    proxy.set("drop_down")
    with within(ONE_TIMEOUT):
        decisions = at_once(lambda: limiter.decide(rule.key("ann")), 20)
    assert {decision.reason for decision in decisions} == {"unavailable"}
    proxy.set("rst")
    proxy.set("pass")
    until(lambda: is_used(Limiter(store=store)))
    spent = 1000 - result_of(limiter.peek(rule.key("ann"))).remaining
    assert spent == 1 + 20


def at_once(call: Callable[[], Any], calls: int) -> list[Any]:
    """Make concurrent calls."""

    async def awaited(answers: list[Any]) -> list[Any]:
        return await asyncio.gather(*answers)

    with ThreadPoolExecutor(calls) as pool:
        answers = [made.result() for made in [pool.submit(call) for _ in range(calls)]]
    return asyncio.run(awaited(answers)) if isinstance(answers[0], Answer) else answers


# The store is closed by its owner.


def test_a_store_closed_during_calls_answers_by_on_error(server: Server, open_store: OpenStore) -> None:
    store = open_store(server.url, timeout=TIMEOUT, on_error="closed")
    strikes = AttemptLimiter(3, "1h", name="login", store=store)
    assert strikes.attempt("ann")
    with server.frozen(), within(ONE_TIMEOUT), ThreadPoolExecutor(10) as pool:
        asked = [pool.submit(strikes.decide, "ann") for _ in range(10)]
        store.close()
        assert {answer.result().reason for answer in asked} == {"unavailable"}
    with within(AT_ONCE):
        assert strikes.decide("ann").reason == "unavailable"
