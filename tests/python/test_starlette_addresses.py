"""Clients without an address, over real sockets: clients that never had one, and clients that lost it by a reset."""

import itertools
import logging
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from doorkeep import ClientIp, InvalidKeyError, Limiter, Rule, StrikeRule, aio, keys_for
from doorkeep.starlette import AddressLimit, attempt_for, client_address, install
from support.starlette_app import IP
from support.web import CLIENT, Exchange, remaining

WIDE = Rule("wide", "5/1h", by=("address",))
ACCOUNT = StrikeRule("account", threshold=5, lockout_window="15m", by=("account",))
REQUEST = b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n"
UNIX = {"client": None, "server": ("/run/app.sock", None)}
RESET = struct.pack("ii", 1, 0)
LOST = {"client": None, "server": ("127.0.0.1", 80)}


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest) -> Any:
    return (Limiter if request.param == "blocking" else aio.Limiter)()


def guarded(
    limiter: Any,
    reached: list[str],
    *rules: Any,
    client_ip: ClientIp | None = None,
    accounts: Iterator[str] | None = None,
) -> Starlette:
    """An application whose endpoint counts the client's address and one account."""
    address_of = client_address(client_ip or ClientIp())

    async def login(request: Request) -> Response:
        keys = keys_for([*rules, ACCOUNT], address=address_of(request), account=next(accounts) if accounts else "ann")
        async with attempt_for(request, limiter, *keys):
            reached.append("ann")
        return PlainTextResponse("x")

    app = Starlette(routes=[Route("/login", login)])
    install(app)
    return app


def counted(limiter: Any, reached: list[str], client_ip: ClientIp | None = None) -> Starlette:
    """An application behind middleware that counts the client's address alone."""

    async def login(request: Request) -> Response:
        reached.append("x")
        return PlainTextResponse("x")

    app = Starlette(routes=[Route("/login", login)])
    app.add_middleware(AddressLimit, limiter=limiter, rules=[WIDE], client_ip=client_ip)
    return app


@contextmanager
def serving(app: Any, **options: Any) -> Iterator[int]:
    """Run an application in uvicorn, on a free port or as `options` say."""
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", proxy_headers=False, **options)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        sleep(0.01)
    try:
        yield 0 if "uds" in options else server.servers[0].sockets[0].getsockname()[1]
    finally:
        # Do not wait for a connection that was reset.
        server.should_exit = server.force_exit = True
        thread.join()


def reset(port: int, request: bytes = REQUEST) -> None:
    """Send a whole request, then end the connection by a reset, so that the server finds no peer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.sendall(request)


def spraying(limiter: Any, reached: list[str], client_ip: ClientIp | None = None) -> Starlette:
    """An application whose endpoint counts the client's address, and an account that is new with each request."""
    accounts = map(str, itertools.count())
    return guarded(limiter, reached, WIDE, client_ip=client_ip, accounts=accounts)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize("make", [counted, spraying])
def test_clients_that_reset_their_connection_get_no_more_than_the_address_admits(
    loop: Any, parser: Any, make: Any
) -> None:
    limiter, reached = Limiter(), []  # type: ignore[var-annotated]
    with serving(make(limiter, reached), loop=loop, http=parser) as port:
        for _ in range(200):
            reset(port)
        # All earlier requests are answered by the time that this one is.
        assert CLIENT.get(f"http://127.0.0.1:{port}/login").status_code in (200, 429)
    assert len(reached) <= 5
    # A request that did not reach the account cost it nothing.
    assert len(limiter) == (len(reached) if make is spraying else 0) + bool(reached)


@pytest.mark.parametrize("make", [counted, spraying])
def test_a_proxy_that_resets_its_connections_does_not_make_its_clients_free(make: Any) -> None:
    # As it does when its own client disconnects.
    limiter, reached = Limiter(), []  # type: ignore[var-annotated]
    request = REQUEST[:-2] + b"X-Forwarded-For: 203.0.113.9\r\n\r\n"
    with serving(make(limiter, reached, ClientIp(trusted_proxies=["127.0.0.1"]))) as port:
        for _ in range(200):
            reset(port, request)
        answer = CLIENT.get(f"http://127.0.0.1:{port}/login", headers={"x-forwarded-for": "203.0.113.9"})
        assert answer.status_code in (200, 429)
    assert len(reached) <= 5
    assert 5 - remaining(limiter, WIDE.ip_key("203.0.113.9")) == len(reached)


def test_a_client_whose_address_is_lost_is_refused_and_nothing_counted(limiter: Any) -> None:
    for make in (counted, lambda *arguments: guarded(*arguments, WIDE), guarded):
        reached: list[str] = []
        start = Exchange(path="/login", **LOST).run(make(limiter, reached))[0]
        assert start["status"] == 400
        assert (b"cache-control", b"no-store") in start["headers"]
        assert not reached
        assert len(limiter) == 0


def test_a_websocket_whose_address_is_lost_is_refused(limiter: Any) -> None:
    sent = Exchange("websocket", "/login", **LOST).run(counted(limiter, []))
    assert [message["type"] for message in sent] == ["websocket.close"]


@pytest.mark.parametrize("framework", [Starlette, FastAPI])
def test_a_client_whose_address_is_lost_is_refused_even_without_install(framework: Any) -> None:
    async def endpoint(request: Request) -> Response:
        address_of(request)
        return Response()

    address_of, app = client_address(ClientIp()), framework()
    app.router.routes.append(Route("/login", endpoint))
    start = Exchange(path="/login", **LOST).run(app)[0]
    assert start["status"] == 400
    assert (b"cache-control", b"no-store") in start["headers"]


def test_a_lost_address_is_not_a_trusted_unix_socket() -> None:
    unix = ClientIp(trusted_proxies=["unix"])
    forged = [(b"x-forwarded-for", b"203.0.113.9")]
    with pytest.raises(InvalidKeyError, match="the address of the client is lost"):
        client_address(unix)(Request(Exchange(headers=forged, **LOST).scope))
    assert client_address(unix)(Request(Exchange(headers=forged, **UNIX).scope)) == "203.0.113.9"
    assert client_address(ClientIp())(Request(Exchange(headers=forged, **UNIX).scope)) is None


@pytest.mark.parametrize("without", [UNIX, {"client": ("testclient", 50000)}, {"client": None, "server": None}])
def test_a_client_without_an_address_is_limited_by_the_other_rules(limiter: Any, without: dict[str, Any]) -> None:
    reached: list[str] = []
    app = guarded(limiter, reached, WIDE)
    statuses = [Exchange(path="/login", **without).run(app)[0]["status"] for _ in range(7)]
    assert statuses == [200] * 5 + [429] * 2


def test_middleware_admits_a_client_without_an_address_and_logs_it_each_time(
    limiter: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    reached: list[str] = []
    path = str(tmp_path / "socket")
    client = httpx.Client(transport=httpx.HTTPTransport(uds=path))
    with serving(counted(limiter, reached), uds=path), caplog.at_level(logging.WARNING, "doorkeep"), client:
        statuses = [client.get("http://x/login").status_code for _ in range(7)]
    assert statuses == [200] * 7
    assert len([record for record in caplog.records if "was not counted" in record.message]) == 7


def test_behind_a_trusted_unix_socket_the_address_of_the_header_is_counted(limiter: Any, tmp_path: Path) -> None:
    reached: list[str] = []
    path = str(tmp_path / "socket")
    client = httpx.Client(transport=httpx.HTTPTransport(uds=path))
    with serving(counted(limiter, reached, ClientIp(trusted_proxies=["unix"])), uds=path), client:
        for address in ("203.0.113.9", "203.0.113.10"):
            fields = {"x-forwarded-for": f"192.0.2.1, {address}"}
            statuses = [client.get("http://x/login", headers=fields).status_code for _ in range(8)]
            assert statuses == [200] * 5 + [429] * 3
    assert remaining(limiter, WIDE.ip_key("203.0.113.9")) == 0


def test_an_address_rule_left_out_is_logged_once(
    limiter: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doorkeep._keys._warned", False)
    app = guarded(limiter, [], IP)
    with caplog.at_level(logging.WARNING, "doorkeep"):
        for _ in range(3):
            Exchange(path="/login", **UNIX).run(app)
    assert len([record for record in caplog.records if "address" in record.message]) == 1
