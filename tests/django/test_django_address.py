"""Clients without an address: clients that never have one, and clients that lost it with their connection."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from django.contrib import auth
from django.core.asgi import get_asgi_application
from django.test import AsyncRequestFactory, Client, RequestFactory, override_settings

from backends import SEEN
from doorkeep import InvalidKeyError, Limiter
from doorkeep.django import client_address, conf
from project import PASSWORD, RULES, address_of, uvicorn_of
from test_django_axes import SITE
from test_django_login import left
from urls import ran
from web import CLIENT

IP_ONLY = {"login-ip": {"rates": "3/1h", "by": ["address"]}}
GUESS = {"username": "ann", "password": "guess"}


@pytest.fixture
def deaf() -> Iterator[str]:
    """Serve the project from a server that does not report that a client has disconnected: Django then runs the view to
    its end."""
    app = get_asgi_application()

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        async def receive_no_end() -> Any:
            message = await receive()
            return message if message["type"] != "http.disconnect" else await asyncio.Event().wait()

        await app(scope, receive_no_end, send)

    with uvicorn_of(serve, host="127.0.0.1", port=0) as server:
        yield address_of(server)


def account_left() -> int:
    return conf.current().limiter.peek(conf.current().rule("login-account").key("ann")).remaining


def reset(url: str, path: str, body: bytes, kind: str, headers: str = "") -> None:
    """Send a request, and reset the connection before the server reads it."""
    place = urlsplit(url)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((str(place.hostname), place.port or 80), 10) as connection:
        connection.sendall(head.encode() + body)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_many(url: str, path: str, caplog: pytest.LogCaptureFixture, headers: str = "") -> int:
    """Let twenty clients hang up while the server is busy, and return how many were answered with 400."""
    thread = threading.Thread(target=CLIENT.get, args=[f"{url}/busy"])
    thread.start()
    deadline = time.monotonic() + 10
    while "busy" not in ran:
        assert time.monotonic() < deadline, "the server did not become busy"
        time.sleep(0.01)
    kind = "application/json" if path.startswith("/api") else "application/x-www-form-urlencoded"
    body = json.dumps(GUESS).encode() if path.startswith("/api") else b"account=ann"
    for _ in range(20):
        reset(url, path, body, kind, headers)
    thread.join()
    while (refused := caplog.text.count(f"Bad Request: {path}")) < 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    ran.remove("busy")
    return refused


@pytest.mark.parametrize("headers", ["", "X-Forwarded-For: 203.0.113.9\r\n"])
@pytest.mark.parametrize("path", ["/api/login", "/api/alogin", "/verify", "/averify", "/api/throttled", "/open/"])
def test_a_client_that_hangs_up_is_refused_and_not_counted(
    deaf: str, configure: Any, caplog: pytest.LogCaptureFixture, path: str, headers: str
) -> None:
    rules = {**RULES, "open-ip": {"rates": "5/1h", "by": ["address"]}}
    throttles = {"otp": ["login-account-ip"]}
    proxies = ["unix", "127.0.0.0/8"] if headers else []
    limiter = configure(
        rules=rules, login=list(RULES), paths={"/open/": ["open-ip"]}, throttles=throttles, trusted_proxies=proxies
    )
    assert reset_many(deaf, path, caplog, headers) == 20
    assert (SEEN, ran) == ([], [])
    assert len(limiter) == 0


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_an_empty_address_from_a_wsgi_server_on_tcp_is_lost(limiter: Limiter, family: int) -> None:
    with socket.socket(family) as listening:
        lost = {"REMOTE_ADDR": "", "gunicorn.socket": listening}
        with pytest.raises(InvalidKeyError, match="the client has gone"):
            client_address(RequestFactory().post("/", **lost))
        sent = {"content_type": "application/json", **lost}
        assert Client().post("/api/login", GUESS, **sent).status_code == 400  # type: ignore[arg-type]
    assert (SEEN, len(limiter)) == ([], 0)


def test_a_lost_address_is_refused_before_any_proxy_is_trusted(configure: Any) -> None:
    configure(trusted_proxies=["unix"])
    request = AsyncRequestFactory().post("/", headers={"X-Forwarded-For": "203.0.113.9"})
    request.scope["client"] = None
    request.META.pop("REMOTE_ADDR")
    with pytest.raises(InvalidKeyError):
        client_address(request)
    request.scope["server"] = ("/run/site.sock", None)
    assert client_address(request) == "203.0.113.9"


def test_a_log_in_by_axes_is_refused_when_the_address_is_lost(limiter: Limiter) -> None:
    with socket.socket() as listening, override_settings(**SITE):
        lost: dict[str, Any] = {"REMOTE_ADDR": "", "gunicorn.socket": listening}
        for _ in range(7):
            answer = Client().post("/api/login", GUESS, content_type="application/json", **lost)
            assert answer.status_code in (401, 429)
    assert (SEEN, len(limiter)) == ([], 0)


@pytest.fixture
def uds(tmp_path: Path) -> Iterator[httpx.Client]:
    """Serve the project on a Unix socket, as behind nginx, and return a client of it."""
    path = str(tmp_path / "s")
    transport = httpx.HTTPTransport(uds=path)
    with (
        uvicorn_of(get_asgi_application(), uds=path),
        httpx.Client(transport=transport, base_url="http://x", timeout=30) as client,
    ):
        yield client


def guesses(client: httpx.Client, count: int, address: str, password: str = "guess") -> list[int]:
    sent = {"username": "ann", "password": password}
    headers = {"X-Forwarded-For": address}
    return [client.post("/api/login", json=sent, headers=headers).status_code for _ in range(count)]


def test_a_proxy_on_a_unix_socket_is_trusted_when_it_is_configured(configure: Any, uds: httpx.Client) -> None:
    configure(trusted_proxies=["unix"])
    assert guesses(uds, 6, "203.0.113.9") == [401] * 5 + [429]
    # The entry that the client wrote itself is on the left.
    assert guesses(uds, 1, "198.51.100.7, 203.0.113.9") == [429]
    assert guesses(uds, 1, "198.51.100.7", PASSWORD) == [200]


def test_without_an_address_the_rules_of_the_account_apply(configure: Any, uds: httpx.Client) -> None:
    configure(rules={**RULES, "login-account": {"rates": "4/1h", "by": ["account"]}})
    assert guesses(uds, 1, "203.0.113.9", PASSWORD) == [200]
    assert guesses(uds, 6, "203.0.113.9") == [401] * 4 + [429] * 2


def test_an_unconfigured_socket_is_warned_about_at_each_uncounted_log_in(
    configure: Any, uds: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    configure(rules=IP_ONLY)
    assert guesses(uds, 6, "203.0.113.9") == [401] * 6
    assert caplog.text.count("a log-in is not counted: it has no address, and every rule for it is keyed by one") == 6
    caplog.clear()
    configure(rules=IP_ONLY, trusted_proxies=["unix"])
    assert guesses(uds, 4, "203.0.113.9") == [401] * 3 + [429]
    assert "is not counted" not in caplog.text


def test_a_path_that_is_not_counted_is_warned_about(
    configure: Any, uds: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    configure(rules={**RULES, **IP_ONLY}, login=["login-account"], paths={"/open/": ["login-ip"]})
    assert [uds.post("/open/").status_code for _ in range(2)] == [200] * 2
    assert caplog.text.count("a request that is counted by its path is not counted") == 2


def test_a_command_is_counted_by_the_account_and_warned_about_only_if_no_rule_is_left(
    configure: Any, caplog: pytest.LogCaptureFixture
) -> None:
    configure()
    with caplog.at_level(logging.WARNING, "doorkeep"):
        assert auth.authenticate(None, username="ann", password=PASSWORD) is not None
        assert auth.authenticate(None, username="ann", password="guess") is None
        assert account_left() == 49
        assert "is not counted" not in caplog.text
        configure(rules=IP_ONLY)
        for _ in range(2):
            assert auth.authenticate(None, username="ann", password=PASSWORD) is not None
    assert caplog.text.count("a log-in is not counted") == 2


@pytest.mark.parametrize("address", ["", "testclient"])
def test_the_test_client_works_without_an_address(limiter: Limiter, address: str) -> None:
    sent: dict[str, Any] = {"content_type": "application/json", "REMOTE_ADDR": address}
    assert Client().post("/api/login", {**GUESS, "password": PASSWORD}, **sent).status_code == 200
    assert Client().post("/api/login", GUESS, **sent).status_code == 401
    assert (account_left(), left()) == (49, 5)
    assert Client().post("/verify", {"account": "ann"}, REMOTE_ADDR=address).status_code == 200
