"""Starlette without FastAPI: what middleware and blocks count, what a crash gives back, and what a denied one gets."""

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from doorkeep import (
    ClientIp,
    ConfigError,
    Key,
    Limiter,
    ManualClock,
    RateLimitExceeded,
    RedisStore,
    Rule,
    StrikeRule,
    aio,
)
from doorkeep.errors import AttemptDenied
from doorkeep.starlette import AddressLimit, attempt_for, client_address, install, lifespan
from support.web import CLIENT, Exchange, remaining, seen, told

IP = Rule("ip", "3/1h", by=("address",))
ACCOUNT = StrikeRule("account", threshold=3, lockout_window="15m", by=("account",))
HERE = IP.ip_key("127.0.0.1")
ANN = ACCOUNT.key("ann")
NOBODY = "redis://127.0.0.1:1/0"
Serve = Callable[[Any], str]


class WrongPassword(Exception):
    """An application's own way to say so."""


def make_app(limiter: Any, *, middleware: bool = True, **options: Any) -> Starlette:
    """An application that guards an account in its endpoint, behind middleware that counts the address."""

    async def login(request: Request) -> Response:
        how = request.path_params["how"]
        async with attempt_for(request, limiter, ANN, count_on=WrongPassword) as attempt:
            if how == "crash":
                raise ZeroDivisionError
            if how == "own":
                raise WrongPassword
            if how == "limited":
                raise RateLimitExceeded
            if how == "success":
                await told(attempt.success(forgive=[ACCOUNT], give_back=[IP]))
            if how.isdigit():
                raise HTTPException(int(how))
        if how == "redirect":
            return RedirectResponse("/", 302)
        if how == "background":
            return PlainTextResponse("x", background=BackgroundTask(crash))
        if how == "stream":
            return StreamingResponse(crashing_stream())
        return PlainTextResponse("x")

    async def websocket(websocket: WebSocket) -> None:
        if "late" in websocket.query_params:
            await websocket.accept()
        async with attempt_for(websocket, limiter, ANN):
            if "late" not in websocket.query_params:
                await websocket.accept()
            await websocket.close()

    app = Starlette(
        routes=[
            Route("/login/{how}", login, methods=["GET", "POST"]),
            WebSocketRoute("/ws", websocket),
            Route("/plain", lambda request: PlainTextResponse("x")),
        ]
    )
    install(app)
    if middleware:
        app.add_middleware(AddressLimit, **{"limiter": limiter, "rules": [IP], "client_ip": ClientIp()} | options)
    return app


async def crash() -> None:
    raise ZeroDivisionError


async def crashing_stream() -> AsyncIterator[bytes]:
    yield b"x"
    raise ZeroDivisionError


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest, doorkeep_clock: ManualClock) -> Any:
    return (Limiter if request.param == "blocking" else aio.Limiter)(clock=doorkeep_clock)


def left(limiter: Any) -> tuple[int, int]:
    """What the address and the account have left of 3 each."""
    return remaining(limiter, HERE), remaining(limiter, ANN)


# The middleware alone


def test_middleware_counts_every_request_before_it_is_routed_and_denies_it(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))
    statuses = [CLIENT.request(method, url + path).status_code for method, path in [
        ("GET", "/plain"), ("HEAD", "/nowhere"), ("OPTIONS", "/plain"), ("GET", "/plain"), ("GET", "/nowhere"),
    ]]  # fmt: skip
    assert statuses == [200, 404, 405, 429, 429]


def test_middleware_counts_exactly_however_many_come_at_once(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))

    async def attack() -> list[int]:
        async with httpx.AsyncClient(trust_env=False, timeout=60, limits=httpx.Limits(max_connections=50)) as client:
            answers = await asyncio.gather(*[client.get(url + "/plain") for _ in range(300)])
            return [answer.status_code for answer in answers]

    statuses = asyncio.run(attack())
    assert (statuses.count(200), statuses.count(429)) == (3, 297)


def test_a_denial_is_the_same_bytes_from_middleware_and_from_a_handler(
    serve: Serve, limiter: Any, doorkeep_clock: ManualClock
) -> None:
    rule = StrikeRule("ip", threshold=3, lockout_window="15m", by=("address",))
    by_middleware = serve(make_app(limiter, rules=[rule]))
    by_handler = serve(make_app(Limiter(clock=doorkeep_clock), middleware=False))
    for _ in range(3):
        assert CLIENT.get(by_middleware + "/plain").status_code == 200
        assert CLIENT.get(by_handler + "/login/x").status_code == 200
    denied = CLIENT.get(by_middleware + "/plain")
    assert seen(denied) == seen(CLIENT.get(by_handler + "/login/x"))
    assert (denied.status_code, denied.headers["retry-after"]) == (429, "900")
    assert denied.json() == {"detail": "Too many attempts"}


def test_middleware_leaves_out_what_does_not_apply(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, applies=lambda connection: connection.url.path.startswith("/login")))
    assert [CLIENT.get(url + "/plain").status_code for _ in range(5)] == [200] * 5
    assert CLIENT.get(url + "/login/x").status_code == 200
    assert left(limiter) == (2, 2)


def test_middleware_counts_a_cost(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, cost=2))
    assert [CLIENT.get(url + "/plain").status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("kind", ["lifespan", "something-new"])
def test_what_is_no_request_passes_through_untouched(limiter: Any, kind: str) -> None:
    passed: list[Any] = []

    async def app(*arguments: Any) -> None:
        passed.extend(arguments)

    scope, exchange = {"type": kind}, Exchange()
    middleware = AddressLimit(app, limiter=limiter, rules=[IP], client_ip=ClientIp())
    asyncio.run(middleware(scope, exchange.receive, exchange.send))
    assert passed == [scope, exchange.receive, exchange.send]
    assert scope == {"type": kind}


def test_middleware_reads_no_body_and_wraps_nothing(limiter: Any) -> None:
    passed: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append((receive, send))

    middleware = AddressLimit(app, limiter=limiter, rules=[IP], client_ip=ClientIp())
    for _ in range(3):
        exchange = Exchange()
        assert exchange.run(middleware) == []
        assert passed.pop() == (exchange.receive, exchange.send)
    denied = Exchange()
    assert [message["type"] for message in denied.run(middleware)] == ["http.response.start", "http.response.body"]
    assert denied.received == 0
    assert not passed


@pytest.mark.parametrize(
    "rules", [[], [ACCOUNT], [IP, Rule("none", "1/1m")], [Rule("two", "1/1m", by=("address", "account"))]]
)
def test_middleware_refuses_rules_that_are_not_of_the_address_alone(limiter: Any, rules: list[Any]) -> None:
    with pytest.raises(ConfigError, match="^rules must be by the address alone, rules=`"):
        AddressLimit(Starlette(), limiter=limiter, rules=rules, client_ip=ClientIp())


@pytest.mark.parametrize("odd", [None, "redis://127.0.0.1", Limiter])
def test_middleware_refuses_what_is_no_limiter(odd: Any) -> None:
    with pytest.raises(ConfigError, match="^limiter must be a Limiter$"):
        AddressLimit(Starlette(), limiter=odd, rules=[IP])


def test_a_request_without_an_address_is_not_counted_by_it_and_that_is_logged_once(
    limiter: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("doorkeep._keys._warned", False)
    app = make_app(limiter)
    path = str(tmp_path / "socket")

    async def call() -> list[int]:
        server = uvicorn.Server(uvicorn.Config(app, uds=path, log_level="critical", lifespan="off"))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=path)) as client:
            statuses = [(await client.get("http://x/login/x")).status_code for _ in range(5)]
        server.should_exit = True
        await serving
        return statuses

    with caplog.at_level(logging.WARNING, "doorkeep"):
        # The account is limited all the same.
        assert asyncio.run(call()) == [200, 200, 200, 429, 429]
    assert len([record for record in caplog.records if "address" in record.message]) == 1


@pytest.mark.parametrize(
    "forwarded",
    [
        b"203.0.113.9, garbage",
        b"",
        b",",
        b"\xff\xfe",
        b"198.51.100.1" * 5000,
        b"::ffff:1.2.3.4%eth0",
        b'"',
        b"1.2.3.4:x",
    ],
)
def test_a_header_of_any_kind_is_answered_and_counted(limiter: Any, forwarded: bytes) -> None:
    app = make_app(limiter, client_ip=ClientIp(trusted_proxies=["192.0.2.0/24"]))
    for _ in range(3):
        exchange = Exchange(path="/plain", headers=[(b"x-forwarded-for", forwarded)])
        assert exchange.run(app)[0]["status"] == 200
    # One who sends the same for ever is not on everybody's bucket.
    assert Exchange(path="/plain", headers=[(b"x-forwarded-for", forwarded)]).run(app)[0]["status"] == 429
    assert Exchange(path="/plain", client=("198.51.100.7", 1)).run(app)[0]["status"] == 200


def test_the_first_entry_of_a_forwarding_header_buys_nothing(limiter: Any) -> None:
    app = make_app(limiter, client_ip=ClientIp(trusted_proxies=["10.0.0.0/8"]))
    headers = [[(b"x-forwarded-for", b"1.2.3.%d, 3.3.3.3" % n)] for n in range(6)]
    statuses = [
        Exchange(path="/plain", client=("10.0.0.1", 1), headers=header).run(app)[0]["status"] for header in headers
    ]
    assert statuses == [200, 200, 200, 429, 429, 429]


@pytest.mark.parametrize(
    ("proxies", "peer", "address"),
    [
        ([], ("192.0.2.1", 1), "192.0.2.1"),
        (["192.0.2.1"], ("192.0.2.1", 1), "203.0.113.9"),
        (["192.0.2.1"], None, None),
        ([], ("testclient", 1), None),
        ([], ("", 0), None),
    ],
)
def test_the_address_of_a_request_is_the_peer_unless_a_proxy_is_trusted(
    proxies: list[str], peer: tuple[str, int] | None, address: str | None
) -> None:
    exchange = Exchange(client=peer, headers=[(b"x-forwarded-for", b"203.0.113.9")])
    assert client_address(ClientIp(trusted_proxies=proxies))(Request(exchange.scope)) == address


# Middleware and blocks of one limiter


def test_an_address_that_middleware_counted_is_not_counted_again(limiter: Any) -> None:
    async def endpoint(request: Request) -> Response:
        async with (
            attempt_for(request, limiter, IP.ip_key("192.0.2.1"), ANN) as one,
            attempt_for(request, limiter, IP.ip_key("192.0.2.1")) as two,
        ):
            assert one is two
        return Response()

    app = Starlette(routes=[Route("/", endpoint)])
    app.add_middleware(AddressLimit, limiter=limiter, rules=[IP], client_ip=ClientIp())
    assert Exchange().run(app)[0]["status"] == 200
    assert (remaining(limiter, IP.ip_key("192.0.2.1")), remaining(limiter, ANN)) == (2, 2)


def test_an_attempt_is_shared_through_mounts_root_paths_and_foreign_middleware(limiter: Any) -> None:
    class Foreign(BaseHTTPMiddleware):
        async def dispatch(self, request: Request, call_next: Any) -> Response:
            answer: Response = await call_next(request)
            return answer

    inner = make_app(limiter)
    outer = Starlette(
        routes=[Mount("/sub", Mount("/deep", inner))],
        middleware=[
            Middleware(AddressLimit, limiter=limiter, rules=[IP], client_ip=ClientIp()),
            Middleware(Foreign),
        ],
    )
    exchange = Exchange(path="/api/sub/deep/login/x", root_path="/api", client=("127.0.0.1", 1))
    assert exchange.run(outer)[0]["status"] == 200
    assert left(limiter) == (2, 2)


def test_requests_share_nothing_also_when_the_server_gives_all_the_same_state(limiter: Any) -> None:
    app, state = make_app(limiter), {}  # type: ignore[var-annotated]
    for _ in range(2):
        Exchange(path="/login/x", client=("127.0.0.1", 1), state=state).run(app)
    assert left(limiter) == (1, 1)


def test_another_limiter_counts_for_itself(limiter: Any, doorkeep_clock: ManualClock) -> None:
    other = Limiter(clock=doorkeep_clock)
    app = Starlette(
        routes=[Mount("/", make_app(limiter))],
        middleware=[Middleware(AddressLimit, limiter=other, rules=[IP], client_ip=ClientIp())],
    )
    Exchange(path="/plain", client=("127.0.0.1", 1)).run(app)
    assert (remaining(limiter, HERE), remaining(other, HERE)) == (2, 2)


# What stays counted, and what a crash gives back


@pytest.mark.parametrize("how", ["x", "302", "401", "404", "422", "own", "limited", "redirect", "background", "stream"])
def test_what_is_answered_or_reported_below_500_stays_counted(serve: Serve, limiter: Any, how: str) -> None:
    url = serve(make_app(limiter))
    if how == "stream":
        with pytest.raises(httpx.RemoteProtocolError):
            CLIENT.get(f"{url}/login/{how}")
    else:
        CLIENT.get(f"{url}/login/{how}")
    assert left(limiter) == (2, 2)


@pytest.mark.parametrize(("error", "spent"), [(HTTPException(401), 1), (HTTPException(500), 0), (ValueError(), 0)])
def test_of_a_group_of_exceptions_one_below_500_is_enough(limiter: Any, error: Exception, spent: int) -> None:
    async def fail() -> None:
        raise error

    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN), anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            try:
                await anyio.sleep(60)
            finally:
                raise KeyError
        return Response()

    with pytest.raises(Exception, match="unhandled errors in a TaskGroup"):
        Exchange().run(Starlette(routes=[Route("/", endpoint)]))
    assert remaining(limiter, ANN) == 3 - spent


@pytest.mark.parametrize("how", ["crash", "500", "503"])
def test_a_failure_gives_back_the_account_but_not_what_middleware_counted(serve: Serve, limiter: Any, how: str) -> None:
    assert CLIENT.get(f"{serve(make_app(limiter))}/login/{how}").status_code >= 500
    assert left(limiter) == (2, 3)


def test_a_failure_gives_back_everything_where_no_middleware_counted(serve: Serve, limiter: Any) -> None:
    assert CLIENT.get(f"{serve(make_app(limiter, middleware=False))}/login/crash").status_code == 500
    assert left(limiter) == (3, 3)


def test_a_success_may_give_back_the_address_that_middleware_counted(serve: Serve, limiter: Any) -> None:
    assert CLIENT.get(f"{serve(make_app(limiter))}/login/success").status_code == 200
    assert left(limiter) == (3, 3)


def test_a_failure_lifts_the_lockout_that_its_own_attempt_engaged(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, rules=[Rule("wide", "100/1h", by=("address",))]))
    statuses = [CLIENT.get(f"{url}/login/{how}").status_code for how in ["401", "401", "crash", "401", "401"]]
    assert statuses == [401, 401, 500, 401, 429]


def test_a_later_block_does_not_give_back_what_an_earlier_one_counted(limiter: Any) -> None:
    bob = ACCOUNT.key("bob")

    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN):
            pass
        async with attempt_for(request, limiter, bob), attempt_for(request, limiter, HERE):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Exchange().run(Starlette(routes=[Route("/", endpoint)]))
    assert [remaining(limiter, key) for key in (ANN, bob, HERE)] == [2, 3, 3]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("middleware", [False, True])
def test_blocks_beside_each_other_are_attempts_of_their_own(limiter: Any, middleware: bool, at_once: bool) -> None:
    # As in a batch of log-ins, or several fields of one query.
    entered = 0

    async def guess(request: Request) -> None:
        nonlocal entered
        async with attempt_for(request, limiter, ANN), attempt_for(request, limiter, ANN):
            entered += 1
            await anyio.sleep(0)

    async def endpoint(request: Request) -> Response:
        guesses = [guess(request) for _ in range(9)]
        if at_once:
            denied = await asyncio.gather(*guesses, return_exceptions=True)
        else:
            denied = [(await asyncio.gather(one, return_exceptions=True))[0] for one in guesses]
        assert [type(one) for one in denied] == [type(None)] * 3 + [AttemptDenied] * 6
        return Response()

    app = Starlette(routes=[Route("/", endpoint)])
    if middleware:
        app.add_middleware(AddressLimit, limiter=limiter, rules=[IP], client_ip=ClientIp())
    assert Exchange(client=("127.0.0.1", 1)).run(app)[0]["status"] == 200
    assert entered == 3
    assert left(limiter) == (2 if middleware else 3, 0)


@pytest.mark.parametrize("around", [HERE, ANN])
@pytest.mark.parametrize("at_once", [False, True])
def test_of_blocks_inside_one_block_the_second_is_another_guess(limiter: Any, around: Key, at_once: bool) -> None:
    entered = 0

    async def guess(request: Request) -> None:
        nonlocal entered
        async with attempt_for(request, limiter, ANN), attempt_for(request, limiter, ANN):
            entered += 1
            await anyio.sleep(0)

    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, around):
            if at_once:
                await asyncio.gather(*[guess(request) for _ in range(9)], return_exceptions=True)
            for _ in range(9):
                await guess(request)
        return Response()

    app = Starlette(routes=[Route("/", endpoint)])
    install(app)
    assert Exchange().run(app)[0]["status"] == 429
    assert entered == 3


def test_a_request_made_inside_a_block_is_an_attempt_of_its_own(limiter: Any) -> None:
    inner = make_app(limiter, middleware=False)

    async def endpoint(request: Request) -> Response:
        async with (
            attempt_for(request, limiter, ANN),
            httpx.AsyncClient(transport=httpx.ASGITransport(inner), base_url="http://inner") as client,
        ):
            await client.get("/login/401")
        return Response()

    assert Exchange().run(Starlette(routes=[Route("/", endpoint)]))[0]["status"] == 200
    assert remaining(limiter, ANN) == 1


def test_a_denied_block_is_not_entered_and_keeps_what_middleware_counted(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, rules=[Rule("ip", "9/1h", by=("address",))]))
    assert [CLIENT.get(f"{url}/login/401").status_code for _ in range(5)] == [401, 401, 401, 429, 429]
    assert remaining(limiter, Rule("ip", "9/1h", by=("address",)).ip_key("127.0.0.1")) == 4


def test_a_cancelled_request_stays_counted(limiter: Any) -> None:
    inside = asyncio.Event()

    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN):
            inside.set()
            await asyncio.sleep(60)
        return Response()

    async def hang_up() -> None:
        exchange = Exchange()
        app = Starlette(routes=[Route("/", endpoint)])
        request = asyncio.create_task(app(exchange.scope, exchange.receive, exchange.send))  # type: ignore[arg-type]
        await inside.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request

    asyncio.run(hang_up())
    assert remaining(limiter, ANN) == 2


@pytest.mark.parametrize("middleware", [True, False])
def test_no_key_at_all_is_answered_400(limiter: Any, middleware: bool) -> None:
    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ACCOUNT.key("")):
            return Response()

    app = Starlette(routes=[Route("/", endpoint)])
    install(app)
    assert Exchange().run(app)[0]["status"] == 400


# Websockets


def test_a_websocket_is_counted_when_it_connects_and_refused_with_an_answer(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter)).replace("http", "ws") + "/ws"
    for _ in range(3):
        with connect(url) as websocket, pytest.raises(ConnectionClosed):
            websocket.recv()
    with pytest.raises(InvalidStatus) as refused, connect(url):
        pass
    answer = refused.value.response
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1200")
    assert answer.body == b'{"detail":"Too many attempts"}'


def test_a_guarded_websocket_is_refused_before_it_is_accepted_and_closed_after(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, middleware=False)).replace("http", "ws") + "/ws"
    for _ in range(3):
        with connect(url) as websocket, pytest.raises(ConnectionClosed):
            websocket.recv()
    with pytest.raises(InvalidStatus) as refused, connect(url):
        pass
    assert (refused.value.response.status_code, refused.value.response.headers["retry-after"]) == (429, "900")
    with connect(url + "?late") as websocket, pytest.raises(ConnectionClosed) as closed:
        websocket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


def test_each_guess_over_one_websocket_is_counted(serve: Serve, limiter: Any) -> None:
    verified: list[str] = []

    async def guesses(websocket: WebSocket) -> None:
        await websocket.accept()
        async for password in websocket.iter_text():
            async with attempt_for(websocket, limiter, ANN):
                verified.append(password)
                await websocket.send_text("wrong")

    app = Starlette(routes=[WebSocketRoute("/", guesses)])
    install(app)
    with connect(serve(app).replace("http", "ws")) as websocket, pytest.raises(ConnectionClosed):
        for n in range(9):
            websocket.send(str(n))
            websocket.recv()
    assert verified == ["0", "1", "2"]


@pytest.mark.parametrize("middleware", [True, False])
def test_a_websocket_is_closed_where_the_server_cannot_answer_it(limiter: Any, middleware: bool) -> None:
    app = make_app(limiter, middleware=middleware)
    for _ in range(3):
        assert Exchange("websocket", "/ws").run(app)[0]["type"] == "websocket.accept"
    assert [(message["type"], message["code"]) for message in Exchange("websocket", "/ws").run(app)] == [
        ("websocket.close", 1008)
    ]


# Stores


@pytest.mark.parametrize("kind", [Limiter, aio.Limiter])
@pytest.mark.parametrize("middleware", [True, False])
def test_an_unavailable_limiter_is_answered_503(serve: Serve, kind: Any, middleware: bool) -> None:
    store = RedisStore(NOBODY, on_error="closed")
    answer = CLIENT.get(serve(make_app(kind(store=store), middleware=middleware)) + "/login/x")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {"detail": "Temporarily unavailable"}
    store.close()


@pytest.mark.parametrize("kind", [Limiter, aio.Limiter])
def test_a_store_is_shared_by_middleware_and_blocks_and_a_crash_reaches_it(
    serve: Serve, shared: Any, open_store: Any, kind: Any
) -> None:
    limiter = kind(store=open_store(shared.url))
    url = serve(make_app(limiter))
    assert [CLIENT.get(f"{url}/login/{how}").status_code for how in ["401", "crash", "401", "401"]] == [
        401,
        500,
        401,
        429,
    ]
    assert left(limiter) == (0, 1)


@pytest.mark.parametrize("kind", [Limiter, aio.Limiter])
def test_the_event_loop_goes_on_while_a_store_is_silent(kind: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = RedisStore(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", timeout=1, on_error="closed")
        app = make_app(kind(store=store), middleware=False)

        async def beats_during_a_request() -> int:
            exchange, beats = Exchange(path="/login/x"), 0
            request = asyncio.create_task(app(exchange.scope, exchange.receive, exchange.send))  # type: ignore[arg-type]
            while not request.done():
                await asyncio.sleep(0.01)
                beats += 1
            assert exchange.sent[0]["status"] == 503
            return beats

        # Two or three if the loop waited for the second that the call may take.
        assert asyncio.run(beats_during_a_request()) >= 10
        store.close()


def test_a_lifespan_closes_stores_after_the_applications_own_has_ended() -> None:
    events: list[str] = []
    store = RedisStore(NOBODY, on_error="closed")
    limiter = aio.Limiter(store=store)

    @asynccontextmanager
    async def own(app: Any) -> AsyncIterator[dict[str, str]]:
        events.append("started")
        yield {"word": "given"}
        assert (await limiter.allow(ANN)).reason == "unavailable"
        events.append("ended")

    app = Starlette(lifespan=lifespan(limiter, store, Limiter(), inner=own))
    assert asyncio.run(live(app)) == {"word": "given"}
    assert events == ["started", "ended"]
    assert Limiter(store=store).peek(ANN).reason == "unavailable"


async def live(app: Starlette) -> Any:
    """Start and end an application, and give the state that its requests would have."""
    async with app.router.lifespan_context(app) as state:
        return state


@pytest.mark.parametrize("moment", ["start", "end"])
def test_a_lifespan_closes_stores_also_when_the_applications_own_fails(shared: Any, moment: str) -> None:
    store = RedisStore(shared.url, on_error="closed", timeout=2)
    limiter = Limiter(store=store)
    assert limiter.peek(ANN)

    @asynccontextmanager
    async def own(app: Any) -> AsyncIterator[None]:
        if moment == "start":
            raise ZeroDivisionError
        yield
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(live(Starlette(lifespan=lifespan(limiter, inner=own))))
    assert limiter.peek(ANN).reason == "unavailable"


def test_a_lifespan_over_memory_alone_is_the_applications_own() -> None:
    assert asyncio.run(live(Starlette(lifespan=lifespan(Limiter())))) is None


# Fields and waits that are asked for


def test_fields_are_sent_only_when_asked_and_with_every_answer(serve: Serve, limiter: Any) -> None:
    asked, silent = (serve(make_app(limiter, rate_limit=rate_limit)) for rate_limit in (True, False))
    for path, status in [("/plain", 200), ("/nowhere", 404), ("/login/401", 401), ("/plain", 429)]:
        answer = CLIENT.get(asked + path)
        assert answer.status_code == status
        assert '"ip"' in answer.headers["ratelimit"]
        assert '"ip"' in answer.headers["ratelimit-policy"]
    assert not [name for name in CLIENT.get(silent + "/plain").headers if name.startswith("ratelimit")]


def test_fields_are_added_to_an_answer_without_headers(limiter: Any) -> None:
    async def bare(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    middleware = AddressLimit(bare, limiter=limiter, rules=[IP], rate_limit=True)
    assert {name for name, _ in Exchange().run(middleware)[0]["headers"]} == {b"ratelimit", b"ratelimit-policy"}


def test_fields_of_a_block_need_handlers_that_are_installed(limiter: Any) -> None:
    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN, rate_limit=True):
            raise HTTPException(401)

    app = Starlette(routes=[Route("/", endpoint)])
    with pytest.raises(ConfigError, match="^rate_limit needs install"):
        Exchange().run(app)
    app = Starlette(routes=[Route("/", endpoint)])
    install(app)
    names = [name for name, _ in Exchange().run(app)[0]["headers"]]
    assert names.count(b"ratelimit") == names.count(b"ratelimit-policy") == 1


def test_a_mounted_application_answers_for_itself_and_fields_are_sent_once(limiter: Any) -> None:
    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN, rate_limit=True):
            return Response()

    inner = Starlette(routes=[Route("/", endpoint)])
    outer = Starlette(routes=[Mount("/inner", inner)])
    for app in (inner, outer):
        install(app)
    for status in (200, 200, 200, 429):
        start = Exchange(path="/inner/").run(outer)[0]
        assert start["status"] == status
        assert [name for name, _ in start["headers"]].count(b"ratelimit") == 1


def test_the_wait_of_an_account_is_rounded_up_when_asked(limiter: Any, doorkeep_clock: ManualClock) -> None:
    async def endpoint(request: Request) -> Response:
        key: Key = HERE if "ip" in request.query_params else ANN
        async with attempt_for(request, limiter, key, round_up="10m"):
            return Response()

    app = Starlette(routes=[Route("/", endpoint)])
    install(app)
    waits = []
    for query in (b"", b"ip"):
        for _ in range(3):
            assert Exchange(query_string=query).run(app)[0]["status"] == 200
        waits.append(dict(Exchange(query_string=query).run(app)[0]["headers"])[b"retry-after"])
    assert waits == [b"1200", b"1200"]
    doorkeep_clock.advance("1m")
    waits = [dict(Exchange(query_string=query).run(app)[0]["headers"])[b"retry-after"] for query in (b"", b"ip")]
    # 840 s of a lockout are told in steps of ten minutes, the 1140 s of the address as they are.
    assert waits == [b"1200", b"1140"]


def test_a_handler_of_the_applications_own_stands_in_place_of_ours(limiter: Any) -> None:
    async def page(request: Request, error: Any) -> Response:
        return PlainTextResponse(f"wait {error.decision.retry_after_seconds} s", 429)

    from doorkeep import AttemptDenied

    app = make_app(limiter, middleware=False)
    app.add_exception_handler(AttemptDenied, page)
    bodies = [Exchange(path="/login/x").run(app)[-1]["body"] for _ in range(4)]
    assert bodies[-1] == b"wait 900 s"


def test_it_is_imported_without_fastapi() -> None:
    code = "import sys, doorkeep.starlette; assert 'fastapi' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
