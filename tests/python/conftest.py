"""Fixtures of the whole suite: the package's own, and a real HTTP server on a free loopback port."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn

pytest_plugins = ["doorkeep.testing"]


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Give a function that serves an application and returns its address."""
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
