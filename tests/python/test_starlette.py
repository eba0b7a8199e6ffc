"""Starlette without FastAPI: the middleware that counts addresses, and which address it counts."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from doorkeep import (
    ClientIp,
    ConfigError,
    Limiter,
    ManualClock,
    Rule,
    StrikeRule,
    aio,
)
from doorkeep.starlette import AddressLimit, attempt_for, client_address
from support.starlette_app import ACCOUNT, ANN, HERE, IP, Serve, left, make_app
from support.web import CLIENT, Exchange, remaining, seen


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest, doorkeep_clock: ManualClock) -> Any:
    return (Limiter if request.param == "blocking" else aio.Limiter)(clock=doorkeep_clock)


def test_middleware_counts_every_request_before_it_is_routed_and_denies_it(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))
    statuses = [CLIENT.request(method, url + path).status_code for method, path in [
        ("GET", "/plain"), ("HEAD", "/nowhere"), ("OPTIONS", "/plain"), ("GET", "/plain"), ("GET", "/nowhere"),
    ]]  # fmt: skip
    assert statuses == [200, 404, 405, 429, 429]


def test_middleware_counts_concurrent_requests_exactly(serve: Serve, limiter: Any) -> None:
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


def test_middleware_skips_requests_to_which_it_does_not_apply(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, applies=lambda connection: connection.url.path.startswith("/login")))
    assert [CLIENT.get(url + "/plain").status_code for _ in range(5)] == [200] * 5
    assert CLIENT.get(url + "/login/x").status_code == 200
    assert left(limiter) == (2, 2)


def test_middleware_counts_a_cost(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, cost=2))
    assert [CLIENT.get(url + "/plain").status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("kind", ["lifespan", "something-new"])
def test_anything_but_a_request_passes_through_unchanged(limiter: Any, kind: str) -> None:
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
def test_middleware_refuses_rules_that_are_not_keyed_by_the_address_alone(limiter: Any, rules: list[Any]) -> None:
    with pytest.raises(ConfigError, match="^rules must be by the address alone, rules=`"):
        AddressLimit(Starlette(), limiter=limiter, rules=rules, client_ip=ClientIp())


@pytest.mark.parametrize("odd", [None, "redis://127.0.0.1", Limiter])
def test_middleware_refuses_an_invalid_limiter(odd: Any) -> None:
    with pytest.raises(ConfigError, match="^limiter must be a Limiter$"):
        AddressLimit(Starlette(), limiter=odd, rules=[IP])


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
    # A client that always sends the same header does not share a bucket with the others.
    assert Exchange(path="/plain", headers=[(b"x-forwarded-for", forwarded)]).run(app)[0]["status"] == 429
    assert Exchange(path="/plain", client=("198.51.100.7", 1)).run(app)[0]["status"] == 200


def test_the_first_entry_of_a_forwarding_header_has_no_effect(limiter: Any) -> None:
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


def test_an_attempt_is_shared_across_mounts_root_paths_and_other_middleware(limiter: Any) -> None:
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


def test_requests_share_nothing_even_if_the_server_shares_their_state(limiter: Any) -> None:
    app, state = make_app(limiter), {}  # type: ignore[var-annotated]
    for _ in range(2):
        Exchange(path="/login/x", client=("127.0.0.1", 1), state=state).run(app)
    assert left(limiter) == (1, 1)


def test_another_limiter_counts_separately(limiter: Any, doorkeep_clock: ManualClock) -> None:
    other = Limiter(clock=doorkeep_clock)
    app = Starlette(
        routes=[Mount("/", make_app(limiter))],
        middleware=[Middleware(AddressLimit, limiter=other, rules=[IP], client_ip=ClientIp())],
    )
    Exchange(path="/plain", client=("127.0.0.1", 1)).run(app)
    assert (remaining(limiter, HERE), remaining(other, HERE)) == (2, 2)
