"""The surroundings of a guess in Starlette: websockets, stores, the lifespan, and the fields of answers."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from doorkeep import (
    ConfigError,
    Key,
    Limiter,
    ManualClock,
    RedisStore,
    aio,
)
from doorkeep.starlette import AddressLimit, attempt_for, install, lifespan
from support.starlette_app import ANN, HERE, IP, NOBODY, Serve, left, make_app
from support.web import CLIENT, Exchange


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest, doorkeep_clock: ManualClock) -> Any:
    return (Limiter if request.param == "blocking" else aio.Limiter)(clock=doorkeep_clock)


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
def test_a_store_is_shared_by_middleware_and_blocks_and_a_give_back_reaches_it(
    serve: Serve, shared: Any, open_store: Any, kind: Any
) -> None:
    limiter = kind(store=open_store(shared.url))
    url = serve(make_app(limiter))
    assert [CLIENT.get(f"{url}/login/{how}").status_code for how in ["401", "down", "401", "401"]] == [
        401,
        500,
        401,
        429,
    ]
    assert left(limiter) == (0, 1)


@pytest.mark.parametrize("kind", [Limiter, aio.Limiter])
def test_the_event_loop_continues_while_a_store_is_silent(kind: Any) -> None:
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

        # It would be two or three if the loop waited for the second that the call may take.
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
        assert (await limiter.decide(ANN)).reason == "unavailable"
        events.append("ended")

    app = Starlette(lifespan=lifespan(limiter, store, Limiter(), inner=own))
    assert asyncio.run(live(app)) == {"word": "given"}
    assert events == ["started", "ended"]
    assert Limiter(store=store).peek(ANN).reason == "unavailable"


async def live(app: Starlette) -> Any:
    """Start and end an application, and return the state that its requests would have."""
    async with app.router.lifespan_context(app) as state:
        return state


@pytest.mark.parametrize("moment", ["start", "end"])
def test_a_lifespan_closes_stores_even_if_the_applications_own_fails(shared: Any, moment: str) -> None:
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


# Fields and waits that are enabled


def test_fields_are_sent_only_when_enabled_and_with_every_answer(serve: Serve, limiter: Any) -> None:
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


def test_a_mounted_application_answers_its_own_errors_and_fields_are_sent_once(limiter: Any) -> None:
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


@pytest.mark.parametrize("mounted", [False, True])
def test_a_denial_is_answered_without_install(serve: Serve, limiter: Any, mounted: bool) -> None:
    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN):
            return Response()

    async def websocket(websocket: WebSocket) -> None:
        async with attempt_for(websocket, limiter, ANN):
            await websocket.accept()

    app = Starlette(routes=[Route("/", endpoint), WebSocketRoute("/ws", websocket)])
    if mounted:
        app = Starlette(routes=[Mount("/inner", app)])
    url = serve(app) + ("/inner" if mounted else "")
    answers = [CLIENT.get(url + "/") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    with pytest.raises(InvalidStatus) as refused, connect(url.replace("http", "ws") + "/ws"):
        pass
    # Older releases of Starlette end a websocket with a server error, which is also a refusal.
    for answer in [answers[3], *([refused.value.response] if refused.value.response.status_code != 500 else [])]:
        assert answer.status_code == 429
        assert (answer.headers["retry-after"], answer.headers["cache-control"]) == ("900", "no-store")
        assert answer.headers["content-type"].startswith("text/plain")


def test_the_wait_of_an_account_is_rounded_up_when_configured(limiter: Any, doorkeep_clock: ManualClock) -> None:
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
    # 840 s of a lockout are rounded up to ten minutes, the 1140 s of the address are not rounded.
    assert waits == [b"1200", b"1140"]


def test_a_handler_of_the_application_replaces_ours(limiter: Any) -> None:
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
