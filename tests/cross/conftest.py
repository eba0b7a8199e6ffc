"""Fixtures: one server of each engine, and workers of every language on it.

The server's launcher is the Python suite's. Invariant: when a test ends, no key that it left lives for ever.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from processes import LANGUAGES, Worker

from support.servers import ENGINES, Server

NUMBERS = itertools.count()
# What a test gets when it does not say more. Long periods: nothing comes back while a test runs.
RULES = {
    "login-ip": {"rates": "7/1h"},
    "login-account-ip": {"threshold": 5, "lockout_window": "15m"},
}
LIMITERS = {
    "rules": RULES,
    "strikes": {"name": "login-strikes", "threshold": 5, "lockout_window": "15m"},
    "bucket": {"name": "login-tokens", "rate": 9, "window": "1h"},
    "window": {"name": "login-window", "limit": 11, "window": "1h"},
}


@pytest.fixture(scope="session", params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Give a running server, once of each engine."""
    made = Server(request.param)
    yield made
    made.close()


@pytest.fixture
def prefix(server: Server) -> Iterator[str]:
    """Give a prefix that no other test uses."""
    made = f"cross-{next(NUMBERS)}"
    yield made
    immortal = [key for key in server.keys(f"{made}:*") if server.ask("PTTL", key) == -1]
    assert immortal == []


@pytest.fixture
def start(server: Server, prefix: str) -> Iterator[Callable[..., Worker]]:
    """Give a function that starts a worker over the server."""
    started: list[Worker] = []

    def make(language: str, environment: dict[str, str] | None = None, **options: Any) -> Worker:
        worker = Worker(language, **(environment or {}))
        started.append(worker)
        worker.ask("open", url=server.url, prefix=prefix, **{**LIMITERS, **options})
        return worker

    yield make
    for worker in started:
        worker.close()


@pytest.fixture(params=itertools.permutations(LANGUAGES, 2), ids="-".join)
def pair(request: pytest.FixtureRequest, start: Callable[..., Worker]) -> tuple[Worker, Worker]:
    """Give two workers of different languages, in either order."""
    one, other = request.param
    return start(one), start(other)
