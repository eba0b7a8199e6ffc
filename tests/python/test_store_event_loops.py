"""A store under event loops: many of them, one after the other, stopped at any time, and at the end of a process."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import uvloop
from fastapi import Depends, FastAPI

from doorkeep import Key, Limiter, Outcome, RedisStore, Rule, StrikeRule, aio
from doorkeep.fastapi import guard, install
from support.deadlines import AT_ONCE, ONE_TIMEOUT, TIMEOUT, heartbeat, until, within
from support.servers import Server

OpenStore = Callable[..., RedisStore]
Run = Callable[[Coroutine[Any, Any, Any]], Any]
RULE = Rule("login-ip", "1000/30d")
STRIKES = StrikeRule("login-account", threshold=3, lockout_window="1h")


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Return a function that runs a coroutine in a new event loop."""
    return asyncio.run if request.param == "asyncio" else uvloop.run


@pytest.fixture
def limiter(servers: Callable[[str], Server], open_store: OpenStore) -> aio.Limiter:
    """Return a limiter, as a module-level one, over a server that answers."""
    return aio.Limiter(store=open_store(servers("redis").url, timeout=5, on_error="closed"))


@pytest.fixture
def beside(server: Server, open_store: OpenStore) -> aio.Limiter:
    """Return a connected limiter over `server`, which will be suspended for less than the timeout."""
    limiter = aio.Limiter(store=open_store(server.url, timeout=5, on_error="closed"))
    assert spent(limiter) == 0
    return limiter


def spent(limiter: aio.Limiter, name: str = "ann") -> int | None:
    """Return how much of the budget is spent in Redis, read without a loop; None if it does not answer."""
    decision = Limiter(store=limiter.store).peek(RULE.key(name))
    return None if decision.reason == "unavailable" else 1000 - decision.remaining


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# One limiter, many loops.


def test_three_consecutive_runs_use_one_limiter(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> list[int]:
        decisions = await asyncio.gather(*[limiter.decide(RULE.key("ann")) for _ in range(10)])
        return sorted(1000 - decision.remaining for decision in decisions)

    assert [run(main()) for _ in range(3)] == [list(range(1 + 10 * n, 11 + 10 * n)) for n in range(3)]


def test_50_runs_leak_no_loop_and_no_file(run: Run, limiter: aio.Limiter) -> None:
    loops: list[weakref.ref[Any]] = []

    async def main() -> int:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        return 1000 - (await limiter.decide(RULE.key("ann"))).remaining

    assert run(main()) == 1
    gc.collect()
    before = open_files()
    assert [run(main()) for _ in range(50)] == list(range(2, 52))
    gc.collect()
    assert [loop() for loop in loops] == [None] * 51
    assert open_files() <= before


def test_loops_in_threads_share_one_limiter(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> Counter[Outcome]:
        return Counter([(await limiter.decide(STRIKES.key("ann"))).outcome for _ in range(50)])

    with ThreadPoolExecutor(8) as pool:
        found = [made.result() for made in [pool.submit(run, main()) for _ in range(8)]]
    assert sum(found, Counter()) == {Outcome.ALLOWED: 2, Outcome.ALLOWED_LAST_ATTEMPT: 1, Outcome.DENIED: 397}


def test_500_tasks_are_all_woken_and_the_loop_continues(run: Run, limiter: aio.Limiter) -> None:
    async def main() -> int:
        async with heartbeat():
            tasks = [asyncio.create_task(limiter.decide(RULE.key("ann"))) for _ in range(500)]
            return sum(map(bool, await asyncio.wait_for(asyncio.gather(*tasks), 20)))

    assert run(main()) == 500
    assert spent(limiter) == 500


# Stopped in flight: an attempt that was sent stays counted.


def test_a_pending_answer_has_no_truth(run: Run, beside: aio.Limiter, server: Server) -> None:
    async def main() -> None:
        with server.frozen():
            answer = beside.decide(RULE.key("ann"))
            with pytest.raises(TypeError, match="the answer of aio.Limiter.decide has to be awaited first"):
                bool(answer)
        assert (await answer).allowed

    run(main())


def test_a_wait_that_times_out_leaves_the_attempt_counted(run: Run, beside: aio.Limiter, server: Server) -> None:
    async def main() -> None:
        with server.frozen(), pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(beside.decide(RULE.key("ann")), 0.05)
        assert (await beside.decide(RULE.key("other"))).allowed

    run(main())
    until(lambda: spent(beside) == 1)


def test_cancelled_tasks_leave_their_attempts_counted(run: Run, beside: aio.Limiter, server: Server) -> None:
    async def main() -> None:
        with server.frozen():
            tasks = [asyncio.create_task(beside.decide(RULE.key("ann"))) for _ in range(10)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(answer) for answer in done} == {asyncio.CancelledError}
        assert (await beside.decide(RULE.key("other"))).allowed

    run(main())
    until(lambda: spent(beside) == 10)


def test_a_loop_closed_with_calls_in_flight_leaves_them_counted_and_harms_no_other(
    run: Run, beside: aio.Limiter, server: Server
) -> None:
    async def leave() -> weakref.ref[Any]:
        tasks = [asyncio.create_task(beside.decide(RULE.key("ann"))) for _ in range(10)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in tasks)
        return weakref.ref(asyncio.get_running_loop())

    async def main() -> None:
        assert (await beside.decide(RULE.key("ann"))).allowed

    with server.frozen():
        gone = run(leave())
    run(main())
    until(lambda: spent(beside) == 11)
    gc.collect()
    assert gone() is None


def test_a_dropped_pending_answer_warns_and_stays_counted(run: Run, beside: aio.Limiter, server: Server) -> None:
    async def main() -> None:
        with server.frozen():
            beside.decide(RULE.key("ann"))

    with pytest.warns(RuntimeWarning, match="aio.Limiter.decide was never awaited; what it counted stays counted"):
        run(main())
    until(lambda: spent(beside) == 1)


# The end of a process.

PROGRAM = """
import asyncio, signal, sys, threading
from doorkeep import Limiter, RedisStore, Rule, aio

store = RedisStore(sys.argv[1], timeout=20, on_error="closed")
limiter, blocking, rule = aio.Limiter(store=store), Limiter(store=store), Rule("exit", "1000/1h")


def ask_for_ever():
    while True:
        blocking.decide(rule.key("ann"))


async def main():
    tasks = [asyncio.create_task(limiter.decide(rule.key("ann"))) for _ in range(20)]
    await asyncio.sleep(0.02)
    print("asked", flush=True)
    if "leave" not in sys.argv:
        await asyncio.gather(*tasks)


if "threads" in sys.argv:
    for _ in range(4):
        threading.Thread(target=ask_for_ever, daemon=True).start()
# Whatever started the tests may ignore it, and that would be inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main())
"""
CLEAN = (0, "asked\n", "")


def start(server: Server, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, server.url, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        output, errors = process.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, output, errors


@pytest.mark.parametrize("words", [["leave"], ["leave", "threads"]], ids=["tasks", "tasks and threads"])
def test_a_process_with_calls_in_flight_exits_cleanly(server: Server, words: list[str]) -> None:
    with server.frozen():
        assert [end(process) for process in [start(server, *words) for _ in range(10)]] == [CLEAN] * 10


@pytest.mark.parametrize("words", [["threads"], ["leave", "threads"]], ids=["awaited", "left"])
def test_a_process_whose_threads_keep_calling_exits_cleanly(server: Server, words: list[str]) -> None:
    assert [end(process) for process in [start(server, *words) for _ in range(10)]] == [CLEAN] * 10


@pytest.mark.parametrize("words", [[], ["threads"]], ids=["tasks", "tasks and threads"])
def test_sigterm_ends_a_process_with_calls_in_flight_immediately(server: Server, words: list[str]) -> None:
    with server.frozen():
        process = start(server, *words)
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        # The timeout of its store is ten times that.
        with within(2):
            process.send_signal(signal.SIGTERM)
            assert end(process) == (-signal.SIGTERM, "", "")


def test_sigint_ends_a_process_with_calls_in_flight_immediately(server: Server) -> None:
    with server.frozen():
        process = start(server)
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        with within(2):
            process.send_signal(signal.SIGINT)
            _, _, errors = end(process)
    assert errors.endswith("KeyboardInterrupt\n")


# Over HTTP.


def make_app(limiter: Any) -> FastAPI:
    app = FastAPI()
    install(app)

    def keys() -> list[Key]:
        return [STRIKES.key("ann")]

    @app.get("/login", dependencies=[Depends(guard(limiter, keys=keys))])
    async def login() -> str:
        return "counted"

    @app.get("/other")
    async def other() -> str:
        return "here"

    return app


@pytest.fixture(params=[Limiter, aio.Limiter], ids=["blocking", "aio"])
def make_limiter(request: pytest.FixtureRequest) -> Any:
    """Return the class of one kind of limiter."""
    return request.param


# Starlette prefers its own fork of httpx, which these tests do not install.
@pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette.testclient`")
def test_a_test_client_for_each_test_uses_one_limiter(limiter: aio.Limiter, make_limiter: Any) -> None:
    from fastapi.testclient import TestClient

    app = make_app(make_limiter(store=limiter.store))
    statuses = []
    for _ in range(5):
        with TestClient(app) as client:
            statuses.append(client.get("/login").status_code)
    statuses.append(TestClient(app).get("/login").status_code)
    assert statuses == [200, 200, 200, 429, 429, 429]


def test_a_closed_limiter_without_a_server_is_answered_503(
    serve: Callable[[Any], str], server: Server, open_store: OpenStore, make_limiter: Any
) -> None:
    store = open_store(server.url, timeout=TIMEOUT, on_error="closed")
    url = serve(make_app(make_limiter(store=store)))
    with httpx.Client(trust_env=False, verify=False, timeout=30) as client:
        assert client.get(f"{url}/login").status_code == 200
        server.kill()
        for _ in range(3):
            answer = client.get(f"{url}/login")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json() == {"detail": "Temporarily unavailable"}
        server.restart()
        until(lambda: client.get(f"{url}/login").status_code == 200)


def test_a_guard_over_a_silent_server_delays_no_other_request(
    server: Server, open_store: OpenStore, make_limiter: Any
) -> None:
    limiter = make_limiter(store=open_store(server.url, timeout=TIMEOUT, on_error="closed"))
    transport = httpx.ASGITransport(make_app(limiter))

    async def main() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            assert (await client.get("/login")).status_code == 200
            with server.frozen():
                start = time.monotonic()
                async with heartbeat():
                    guarded = [asyncio.create_task(client.get("/login")) for _ in range(10)]
                    await asyncio.sleep(0.05)
                    with within(AT_ONCE):
                        assert (await client.get("/other")).status_code == 200
                    statuses = {(await request).status_code for request in guarded}
                assert time.monotonic() - start <= ONE_TIMEOUT
        assert statuses == {503}

    asyncio.run(main())
