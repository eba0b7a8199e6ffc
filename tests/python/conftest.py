"""Fixtures of the whole suite: the package's own, a real HTTP server, and real servers of Redis and Valkey."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

from doorkeep import RedisStore
from support.proxy import Proxy
from support.servers import ENGINES, Server

pytest_plugins = ["doorkeep.testing"]

# Tests started in the background of a shell ignore interrupts, and so do their children.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Return a function that serves an application and returns its address."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(app: Any) -> str:
        server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        deadline = time.monotonic() + 30
        while not server.started:
            assert thread.is_alive(), "the server stopped before it started"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        host, port = server.servers[0].sockets[0].getsockname()
        return f"http://{host}:{port}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(timeout=30)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Server]]:
    """Return a function that returns the server of an engine that tests without faults share."""
    running: dict[str, Server] = {}

    def get(engine: str) -> Server:
        if engine not in running:
            running[engine] = Server(engine)
        return running[engine]

    yield get
    for server in running.values():
        server.close()


@pytest.fixture(params=ENGINES)
def shared(request: pytest.FixtureRequest, servers: Callable[[str], Server]) -> Server:
    """Return a server without faults, once of each engine."""
    return servers(request.param)


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a server of the test's own, for faults."""
    made = Server("redis")
    yield made
    made.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Return a proxy in front of `server`."""
    made = Proxy(server.port)
    yield made
    made.close()


@pytest.fixture
def open_store() -> Iterator[Callable[..., RedisStore]]:
    """Return a function that makes stores, each with its own prefix, closed at the end of the test."""
    made: list[RedisStore] = []

    def make(url: str, **options: Any) -> RedisStore:
        store = RedisStore(url, **{"prefix": f"test-{next(NUMBERS)}", "timeout": 2, **options})
        made.append(store)
        return store

    yield make
    for store in made:
        store.close()


NUMBERS = itertools.count()
