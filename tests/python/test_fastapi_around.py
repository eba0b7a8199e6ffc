"""The surroundings of a guarded FastAPI endpoint: middleware, addresses, websockets, fields and documentation."""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import http_sfv
import httpx
import pytest
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, HTTPException, WebSocket
from fastapi.middleware.cors import CORSMiddleware
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from doorkeep import (
    ClientIp,
    ConfigError,
    IssueGuard,
    Key,
    Limiter,
    ManualClock,
    RedisStore,
    Rule,
    StrikeRule,
    TokenBucket,
    aio,
    canonical_email,
    keys_for,
)
from doorkeep.fastapi import AddressLimit, client_address, guard, install, lifespan, responses
from support.web import CLIENT, Exchange, remaining, result_of, seen

IP = Rule("ip", "6/1h", by=("address",))
ACCOUNT = StrikeRule("account", threshold=3, lockout_window="15m", by=("account",))
CLIENT_IP = ClientIp(trusted_proxies=["127.0.0.1"])
ClientAddress = Annotated[str | None, Depends(client_address(CLIENT_IP))]
HERE = IP.ip_key("127.0.0.1")
ANN = ACCOUNT.key("ann@example.com")
Serve = Callable[[Any], str]


def keys(address: ClientAddress, email: str) -> list[Key]:
    return keys_for([IP, ACCOUNT], address=address, account=canonical_email(email))


def make_app(limiter: Any, **options: Any) -> FastAPI:
    app = FastAPI()
    install(app)
    app.add_middleware(AddressLimit, limiter=limiter, rules=[IP], client_ip=CLIENT_IP)
    Guarded = Annotated[Any, Depends(guard(limiter, keys=keys, give_back_on=ConnectionError, **options))]
    router = APIRouter(responses=responses)

    @router.post("/login/{how}")
    async def login(how: str, attempt: Guarded, background: BackgroundTasks) -> str:
        if how == "wrong":
            raise HTTPException(401)
        if how == "crash":
            raise ZeroDivisionError
        if how == "down":
            raise ConnectionError
        if how == "background":
            background.add_task(lambda: 1 / 0)
        if how == "success":
            await result_of(attempt.success(forgive=[ACCOUNT], give_back=[IP]))
        if how == "token":
            guard_of_tokens = IssueGuard(TokenBucket(rate=1, window="1h"))
            for _ in range(2):
                guard_of_tokens.check({"sub": "ann"})
        return how

    @router.websocket("/ws")
    async def websocket(websocket: WebSocket, attempt: Guarded) -> None:
        await websocket.accept()
        await websocket.close()

    app.include_router(router)
    return app


def post(url: str, how: str, email: str = "ann@example.com", **headers: str) -> httpx.Response:
    return CLIENT.post(f"{url}/login/{how}", params={"email": email}, headers=headers)


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest, doorkeep_clock: ManualClock) -> Any:
    return (Limiter if request.param == "blocking" else aio.Limiter)(clock=doorkeep_clock)


def left(limiter: Any) -> tuple[int, int]:
    """Return what the address has left of 6, and the account of 3."""
    return remaining(limiter, HERE), remaining(limiter, ANN)


@pytest.mark.parametrize(
    ("how", "after"),
    [
        ("wrong", (5, 2)),
        ("background", (5, 2)),
        ("token", (5, 2)),
        ("crash", (5, 2)),
        ("down", (5, 3)),
        ("success", (6, 3)),
    ],
)
def test_middleware_and_guard_count_a_request_once(
    serve: Serve, limiter: Any, how: str, after: tuple[int, int]
) -> None:
    answer = post(serve(make_app(limiter)), how)
    assert left(limiter) == after
    if how == "token":
        assert (answer.status_code, answer.json()) == (429, {"detail": "Too many attempts"})


def test_a_request_that_is_refused_before_the_guard_is_counted_on_the_address_alone(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))
    assert [post(url, "wrong", email).status_code for email in ("", "no email", "\0@b.c")] == [400] * 3
    assert CLIENT.post(f"{url}/login/wrong").status_code == 422
    assert CLIENT.get(f"{url}/nowhere").status_code == 404
    assert left(limiter) == (1, 3)


def test_the_clients_address_is_a_dependency(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))
    forged = {"x-forwarded-for": "1.2.3.4, 203.0.113.9"}
    assert [post(url, "wrong", f"{n}@b.c", **forged).status_code for n in range(8)] == [401] * 6 + [429] * 2
    assert remaining(limiter, IP.ip_key("203.0.113.9")) == 0
    assert post(url, "wrong", **{"x-forwarded-for": "203.0.113.10"}).status_code == 401


def test_a_denial_is_the_same_bytes_by_middleware_and_by_a_guard(serve: Serve, doorkeep_clock: ManualClock) -> None:
    by_guard = serve(make_app(Limiter(clock=doorkeep_clock)))
    app = FastAPI()
    rule = StrikeRule("ip", threshold=3, lockout_window="15m", by=("address",))
    app.add_middleware(AddressLimit, limiter=Limiter(clock=doorkeep_clock), rules=[rule])
    by_middleware = serve(app)
    for url in (by_guard, by_middleware):
        for _ in range(3):
            assert post(url, "wrong").status_code in (401, 404)
    assert seen(post(by_guard, "wrong")) == seen(post(by_middleware, "wrong"))


def test_scripts_of_other_origins_can_read_a_denial_if_cors_is_the_outer_middleware(serve: Serve, limiter: Any) -> None:
    app = make_app(limiter)
    origin = {"origin": "https://shop.example"}
    app.add_middleware(
        CORSMiddleware, allow_origins=[origin["origin"]], allow_methods=["POST"], expose_headers=["Retry-After"]
    )
    url = serve(app)
    for _ in range(20):
        preflight = CLIENT.options(f"{url}/login/wrong", headers={**origin, "access-control-request-method": "POST"})
        assert preflight.status_code == 200
    assert [post(url, "wrong", **origin).status_code for _ in range(3)] == [401] * 3
    denied = post(url, "wrong", **origin)
    assert denied.status_code == 429
    assert denied.headers["access-control-allow-origin"] == origin["origin"]
    assert denied.headers["access-control-expose-headers"] == "Retry-After"


def test_a_guarded_websocket_is_refused_before_it_is_accepted(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter)).replace("http", "ws") + "/ws?email=ann@example.com"
    for _ in range(3):
        with connect(url):
            pass
    with pytest.raises(InvalidStatus) as refused, connect(url):
        pass
    assert refused.value.response.status_code == 429
    assert refused.value.response.headers["retry-after"] == "900"
    assert left(limiter) == (2, 0)


def test_fields_are_sent_with_every_answer_when_enabled_and_are_lists(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, rate_limit=True))
    for status in (401, 401, 401, 429):
        answer = post(url, "wrong")
        assert answer.status_code == status
        for name in ("ratelimit", "ratelimit-policy"):
            parsed = http_sfv.List()
            parsed.parse(answer.headers[name].encode())
            assert len(parsed) > 0
            assert answer.headers.get_list(name) == [answer.headers[name]]
        assert ANN.digest not in str(answer.headers)


def test_fields_are_not_sent_by_default(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))
    for _ in range(4):
        assert not [name for name in post(url, "wrong").headers if name.startswith("ratelimit")]


def test_the_wait_of_an_account_is_rounded_up_when_configured(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, round_up=timedelta(hours=1)))
    assert [post(url, "wrong").headers.get("retry-after") for _ in range(4)] == [None, None, None, "3600"]


def test_the_fields_of_an_account_are_rounded_up_before_and_after_a_denial(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter, round_up="1h", rate_limit=True))
    answers = [post(url, "wrong") for _ in range(4)]
    assert [answer.headers["ratelimit"].rpartition(";")[2] for answer in answers] == ["t=3600"] * 4


@pytest.mark.parametrize("round_up", [0, "500ms", "1500ms", "soon", -1])
def test_rounding_to_a_fraction_of_a_second_is_refused_when_the_guard_is_made(round_up: Any) -> None:
    with pytest.raises(ConfigError):
        guard(Limiter(), keys=keys, round_up=round_up)


def test_the_answers_of_a_guarded_route_are_in_its_documentation(limiter: Any) -> None:
    described = make_app(limiter).openapi()["paths"]["/login/{how}"]["post"]["responses"]
    assert {"200", "400", "422", "429", "503"} == set(described)
    for status in ("429", "503"):
        assert described[status]["headers"]["Retry-After"]["schema"] == {"type": "integer", "minimum": 1}
        assert described[status]["content"]["application/json"]["example"]["detail"]


def test_a_route_keeps_the_answers_that_it_documents_itself(limiter: Any) -> None:
    app = FastAPI()

    @app.get("/", responses={**responses, 404: {"description": "Nobody"}})
    async def show() -> None: ...

    assert {"200", "400", "404", "429", "503"} == set(app.openapi()["paths"]["/"]["get"]["responses"])


@pytest.mark.parametrize("kind", [Limiter, aio.Limiter])
def test_a_guard_over_a_store_counts_and_a_give_back_reaches_it(
    serve: Serve, shared: Any, open_store: Callable[..., RedisStore], kind: Any
) -> None:
    limiter = kind(store=open_store(shared.url))
    url = serve(make_app(limiter))
    assert [post(url, how).status_code for how in ("wrong", "down", "wrong", "wrong", "wrong")] == [
        401, 500, 401, 401, 429,
    ]  # fmt: skip
    assert left(limiter) == (1, 0)


def test_a_lifespan_also_works_for_fastapi() -> None:
    store = RedisStore("redis://127.0.0.1:1/0", on_error="closed")
    app = FastAPI(lifespan=lifespan(store))
    exchange = Exchange("lifespan")
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

    async def receive() -> Any:
        return next(messages)

    exchange.receive = receive  # type: ignore[method-assign]
    assert [message["type"] for message in exchange.run(app)] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
