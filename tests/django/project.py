"""Fixtures: a Django project with a database, users, a clock, and real servers of both kinds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import pytest
import uvicorn
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.db import connections
from django.test import override_settings

import urls
from backends import ASKED, SEEN, CountingHasher
from doorkeep import Limiter, ManualClock
from doorkeep.django import conf, signals
from support.servers import Server

PASSWORD = "correct horse"
STRIKES = {"threshold": 5, "lockout_window": "15m", "by": ["account", "address"]}
RULES = {
    "login-ip": {"rates": "1000/1h", "by": ["address"]},
    "login-account-ip": STRIKES,
    "login-account": {"rates": "50/1h", "by": ["account"]},
}


@pytest.fixture(scope="session", autouse=True)
def database() -> Iterator[None]:
    """Make the tables, once."""
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_user("ann", "ann@example.com", PASSWORD)
    get_user_model().objects.create_user("bob", "bob@example.com", PASSWORD)
    get_user_model().objects.create_superuser("root", "root@example.com", PASSWORD)
    yield
    connections.close_all()


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Let each test see its own passwords, views and events."""
    for seen in (SEEN, ASKED, urls.ran, urls.codes, signals.recent):
        seen.clear()
    CountingHasher.delay = 0.0
    yield
    connections.close_all()


@pytest.fixture
def configure(doorkeep_clock: ManualClock) -> Iterator[Callable[..., Limiter]]:
    """Yield a function that sets ``DOORKEEP``, with the test's clock, and returns its limiter."""
    overridden: list[override_settings] = []

    def set_doorkeep(**options: Any) -> Limiter:
        setting = {"rules": RULES, **({} if "redis" in options else {"clock": doorkeep_clock}), **options}
        overriding = override_settings(DOORKEEP=setting)
        overriding.enable()
        overridden.append(overriding)
        return conf.current().limiter

    yield set_doorkeep
    for overriding in reversed(overridden):
        overriding.disable()


@pytest.fixture
def limiter(configure: Callable[..., Limiter]) -> Limiter:
    """Return the limiter of a project with the rules of the README."""
    return configure()


class Threading(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 1024


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def wsgi() -> Iterator[str]:
    """Serve the project over WSGI, with a thread for each request, and return its address."""
    server = Threading(("127.0.0.1", 0), Quiet)
    server.set_app(closing(get_wsgi_application()))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(30)


@contextmanager
def uvicorn_of(app: Any, **options: Any) -> Iterator[uvicorn.Server]:
    """Serve an application by uvicorn."""
    # By default uvicorn trusts all forwarding headers from this machine.
    config = uvicorn.Config(app, log_level="critical", lifespan="off", proxy_headers=False, **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    yield server
    server.should_exit = True
    thread.join(30)


def address_of(server: uvicorn.Server) -> str:
    host, port = server.servers[0].sockets[0].getsockname()
    return f"http://{host}:{port}"


@pytest.fixture
def asgi() -> Iterator[str]:
    """Serve the project over ASGI, in uvicorn, and return its address."""
    with uvicorn_of(get_asgi_application(), host="127.0.0.1", port=0) as server:
        yield address_of(server)


@pytest.fixture(params=["wsgi", "asgi"])
def served(request: pytest.FixtureRequest) -> str:
    """Serve the project, once of each kind."""
    address: str = request.getfixturevalue(request.param)
    return address


def closing(app: Any) -> Any:
    # Each thread has its own connections, and ends with its request.
    def serve(environ: Any, start_response: Any) -> Iterator[bytes]:
        response = app(environ, start_response)
        try:
            yield from response
        finally:
            response.close()
            connections.close_all()

    return serve


@pytest.fixture
def server() -> Iterator[Server]:
    """Return a server of the test's own, for faults."""
    made = Server("redis")
    yield made
    made.close()
