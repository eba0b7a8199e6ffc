"""Blocks around a guess in Starlette: what stays counted, what is given back, and what a request shares."""

import asyncio
from typing import Any

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from doorkeep import (
    ClientIp,
    ConfigError,
    Key,
    Limiter,
    ManualClock,
    Rule,
    aio,
)
from doorkeep.errors import AttemptDenied
from doorkeep.starlette import AddressLimit, attempt_for, install
from support.starlette_app import ACCOUNT, ANN, HERE, IP, Down, Serve, left, make_app
from support.web import CLIENT, Exchange, remaining

CAROL = ACCOUNT.key("carol")


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest, doorkeep_clock: ManualClock) -> Any:
    return (Limiter if request.param == "blocking" else aio.Limiter)(clock=doorkeep_clock)


ENDS = ["x", "302", "401", "404", "422", "500", "503", "own", "limited", "redirect", "background", "stream", "crash"]


@pytest.mark.parametrize("how", [*ENDS, "denied", "settled"])
def test_a_guess_stays_counted_however_its_block_ends(serve: Serve, limiter: Any, how: str) -> None:
    url = serve(make_app(limiter))
    if how == "stream":
        with pytest.raises(httpx.RemoteProtocolError):
            CLIENT.get(f"{url}/login/{how}")
    else:
        CLIENT.get(f"{url}/login/{how}")
    assert left(limiter) == (2, 2)


@pytest.mark.parametrize(("error", "spent"), [(HTTPException(500), 1), (ValueError(), 1), (Down(), 0)])
def test_a_group_of_exceptions_gives_back_only_if_all_are_named(limiter: Any, error: Exception, spent: int) -> None:
    async def fail() -> None:
        raise error

    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN, give_back_on=Down), anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            try:
                await anyio.sleep(60)
            finally:
                raise Down
        return Response()

    with pytest.raises(Exception, match="unhandled errors in a TaskGroup"):
        Exchange().run(Starlette(routes=[Route("/", endpoint)]))
    assert remaining(limiter, ANN) == 3 - spent


@pytest.mark.parametrize("middleware", [True, False])
def test_a_named_exception_gives_back_the_account_but_not_what_middleware_counted(
    serve: Serve, limiter: Any, middleware: bool
) -> None:
    assert CLIENT.get(f"{serve(make_app(limiter, middleware=middleware))}/login/down").status_code == 500
    assert left(limiter) == (2 if middleware else 3, 3)


def test_a_named_exception_does_not_give_back_an_address_that_the_block_counted(limiter: Any) -> None:
    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, HERE, ANN, give_back_on=[Down]):
            raise Down

    with pytest.raises(Down):
        Exchange().run(Starlette(routes=[Route("/", endpoint)]))
    assert left(limiter) == (2, 3)


@pytest.mark.parametrize("odd", [KeyboardInterrupt, [int], "OSError"])
def test_give_back_on_without_exceptions_is_refused_and_nothing_counted(limiter: Any, odd: Any) -> None:
    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN, give_back_on=odd):
            return Response()

    with pytest.raises(ConfigError, match="^give_back_on must list classes of exceptions$"):
        Exchange().run(Starlette(routes=[Route("/", endpoint)]))
    assert remaining(limiter, ANN) == 3


def test_a_success_may_give_back_the_address_that_middleware_counted(serve: Serve, limiter: Any) -> None:
    assert CLIENT.get(f"{serve(make_app(limiter))}/login/success").status_code == 200
    assert left(limiter) == (3, 3)


def test_a_named_exception_lifts_the_lockout_that_its_own_attempt_engaged(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, rules=[Rule("wide", "100/1h", by=("address",))]))
    statuses = [CLIENT.get(f"{url}/login/{how}").status_code for how in ["401", "401", "down", "401", "401"]]
    assert statuses == [401, 401, 500, 401, 429]


def test_a_later_block_does_not_give_back_what_an_earlier_one_counted(limiter: Any) -> None:
    bob = ACCOUNT.key("bob")

    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ANN):
            pass
        async with attempt_for(request, limiter, bob, give_back_on=Down), attempt_for(request, limiter, CAROL):
            raise Down

    with pytest.raises(Down):
        Exchange().run(Starlette(routes=[Route("/", endpoint)]))
    assert [remaining(limiter, key) for key in (ANN, bob, CAROL)] == [2, 3, 3]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("middleware", [False, True])
def test_concurrent_blocks_are_separate_attempts(limiter: Any, middleware: bool, at_once: bool) -> None:
    # As in a batch of log-ins, or in several fields of one query.
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
        assert [isinstance(one, AttemptDenied) for one in denied] == [False] * 3 + [True] * 6
        return Response()

    app = Starlette(routes=[Route("/", endpoint)])
    if middleware:
        app.add_middleware(AddressLimit, limiter=limiter, rules=[IP], client_ip=ClientIp())
    assert Exchange(client=("127.0.0.1", 1)).run(app)[0]["status"] == 200
    assert entered == 3
    assert left(limiter) == (2 if middleware else 3, 0)


@pytest.mark.parametrize("around", [HERE, ANN])
@pytest.mark.parametrize("at_once", [False, True])
def test_the_second_block_inside_a_block_is_another_guess(limiter: Any, around: Key, at_once: bool) -> None:
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


def test_a_request_made_inside_a_block_is_a_separate_attempt(limiter: Any) -> None:
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
def test_a_block_without_keys_is_answered_400(limiter: Any, middleware: bool) -> None:
    async def endpoint(request: Request) -> Response:
        async with attempt_for(request, limiter, ACCOUNT.key("")):
            return Response()

    app = Starlette(routes=[Route("/", endpoint)])
    install(app)
    assert Exchange().run(app)[0]["status"] == 400
