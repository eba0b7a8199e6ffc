"""The FastAPI guard, over real HTTP: what is counted, what is given back, and what any client can see."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Body, Depends, FastAPI, HTTPException, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from doorkeep import (
    AttemptDenied,
    ConfigError,
    InvalidKeyError,
    Key,
    Limiter,
    ManualClock,
    RateLimitExceeded,
    Rule,
    StrikeRule,
    aio,
    keys_for,
    network,
    presets,
)
from doorkeep._native import _restore_decision
from doorkeep.errors import _denial
from doorkeep.fastapi import guard, install
from support.web import CLIENT, remaining, result_of, seen

PASSWORD = "correct horse"
ACCOUNT_IP = StrikeRule("login-account-ip", threshold=5, lockout_window="15m", by=("account", "address"))
IP = Rule("login-ip", "1000/1h", by=("address",))
Serve = Callable[[Any], str]


class Form(BaseModel):
    """The form of a login."""

    email: str
    password: str


class WrongPassword(Exception):
    """An exception of the application for a wrong password."""


class Down(Exception):
    """A failure of the application that the guard names."""


def login_keys(request: Request, form: Form) -> list[Key]:
    assert request.client is not None
    address = request.client.host
    return [IP.ip_key(address), ACCOUNT_IP.key(form.email, network(address))]


async def verify(form: Form, verified: list[str]) -> bool:
    verified.append(form.email)
    # Long enough for every other request to have arrived.
    await asyncio.sleep(0.05)
    return form.password == PASSWORD


def make_app(limiter: Limiter | aio.Limiter, verified: list[str] | None = None) -> FastAPI:
    app = FastAPI()
    install(app)
    looked_at = [] if verified is None else verified
    Guarded = Annotated[Any, Depends(guard(limiter, keys=login_keys, give_back_on=Down))]

    @app.post("/login")
    async def login(form: Form, attempt: Guarded) -> dict[str, bool]:
        if not await verify(form, looked_at):
            raise HTTPException(401, "wrong")
        await result_of(attempt.success(forgive=[ACCOUNT_IP]))
        return {"ok": True}

    @app.post("/answer/{status}")
    async def answer(status: int, form: Form, attempt: Guarded) -> None:
        raise HTTPException(status)

    @app.post("/own")
    async def own(form: Form, attempt: Guarded) -> None:
        raise WrongPassword

    @app.post("/returned")
    async def returned(form: Form, attempt: Guarded) -> JSONResponse:
        return JSONResponse({}, 500)

    @app.post("/down")
    async def down(form: Form, attempt: Guarded) -> None:
        raise Down

    @app.post("/settled")
    async def settled(form: Form, attempt: Guarded) -> None:
        await result_of(attempt.failure())
        raise Down

    @app.post("/denied")
    async def denied(form: Form, attempt: Guarded) -> None:
        raise _denial(attempt.decision)

    @app.post("/crash")
    def crash(form: Form, attempt: Guarded) -> None:
        raise ZeroDivisionError

    @app.post("/query")
    async def query(form: Form, attempt: Guarded, number: int) -> None: ...

    @app.post("/stream")
    async def stream(form: Form, attempt: Guarded) -> StreamingResponse:
        async def chunks() -> Any:
            yield b"x"
            raise ConnectionResetError

        return StreamingResponse(chunks())

    @app.exception_handler(WrongPassword)
    async def wrong(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({}, 401)

    return app


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest, doorkeep_clock: ManualClock) -> Any:
    return (Limiter if request.param == "blocking" else aio.Limiter)(clock=doorkeep_clock)


def left(limiter: Any, email: str = "ann") -> int:
    """Return how many guesses the account has left from this address."""
    return remaining(limiter, ACCOUNT_IP.key(email, network("127.0.0.1")))


def post(url: str, path: str, password: str = "guess", email: str = "ann") -> httpx.Response:
    return CLIENT.post(url + path, json={"email": email, "password": password})


def raw_login(password: str) -> bytes:
    body = json.dumps({"email": "ann", "password": password})
    head = "POST /login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def send_guess(url: httpx.URL, password: str) -> int:
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(raw_login(password))
    answer = await reader.read()
    writer.close()
    return int(answer.split(b" ")[1])


def test_500_parallel_guesses_verify_five_passwords(serve: Serve, limiter: Any) -> None:
    verified: list[str] = []
    url = serve(make_app(limiter, verified))

    async def attack() -> list[int]:
        return await asyncio.gather(*[send_guess(httpx.URL(url), f"guess {n}") for n in range(500)])

    statuses = asyncio.run(attack())
    assert len(verified) == 5
    assert (statuses.count(401), statuses.count(429)) == (5, 495)


def test_a_denial_reports_the_wait_and_ends_after_it(serve: Serve, limiter: Any, doorkeep_clock: ManualClock) -> None:
    url = serve(make_app(limiter))
    for _ in range(5):
        assert post(url, "/login").status_code == 401
    denied = post(url, "/login", PASSWORD)
    assert (denied.status_code, denied.headers["retry-after"]) == (429, "900")
    assert denied.json() == {"detail": "Too many attempts"}
    doorkeep_clock.advance("899500ms")
    assert post(url, "/login", PASSWORD).headers["retry-after"] == "1"
    doorkeep_clock.advance("500ms")
    assert post(url, "/login", PASSWORD).status_code == 200


def test_a_success_forgives_the_account_and_keeps_the_address_counted(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))
    for _ in range(3):
        for _ in range(3):
            assert post(url, "/login").status_code == 401
        assert post(url, "/login", PASSWORD).status_code == 200
    assert left(limiter) == 5
    assert remaining(limiter, IP.ip_key("127.0.0.1")) == 1000 - 12


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 422, 429, 451])
def test_an_answer_below_500_is_a_counted_guess(serve: Serve, limiter: Any, status: int) -> None:
    assert post(serve(make_app(limiter)), f"/answer/{status}").status_code == status
    assert left(limiter) == 4


@pytest.mark.parametrize("path", ["/answer/500", "/answer/503", "/crash", "/own", "/denied", "/settled"])
def test_no_exception_gives_a_guess_back_unless_its_class_is_named(serve: Serve, limiter: Any, path: str) -> None:
    post(serve(make_app(limiter)), path)
    assert left(limiter) == 4


def test_an_exception_named_in_give_back_on_gives_back_the_account_and_not_the_address(
    serve: Serve, limiter: Any
) -> None:
    assert post(serve(make_app(limiter)), "/down").status_code == 500
    assert left(limiter) == 5
    assert remaining(limiter, IP.ip_key("127.0.0.1")) == 999


class VerifyMismatchError(Exception):
    """The exception that argon2's hasher raises on a wrong password."""


class Hasher:
    """A password hasher that raises on a wrong password, and records the passwords that it checked."""

    def __init__(self) -> None:
        self.looked_at: list[str] = []

    def verify(self, password: str) -> bool:
        self.looked_at.append(password)
        if password != PASSWORD:
            raise VerifyMismatchError
        return True


@pytest.mark.parametrize("handled", [True, False])
@pytest.mark.parametrize("task", [True, False])
def test_a_password_check_that_raises_runs_as_often_as_the_policy_allows(
    serve: Serve, limiter: Any, handled: bool, task: bool
) -> None:
    hasher, app = Hasher(), FastAPI()
    install(app)

    @app.post("/login")
    async def login(form: Form, attempt: Annotated[Any, Depends(guard(limiter, keys=login_keys))]) -> None:
        if task:
            await asyncio.gather(run_in_threadpool(hasher.verify, form.password), asyncio.sleep(0))
        hasher.verify(form.password)
        await result_of(attempt.success(forgive=[ACCOUNT_IP]))

    if handled:

        @app.exception_handler(VerifyMismatchError)
        async def wrong(request: Request, error: Exception) -> JSONResponse:
            return JSONResponse({"detail": "wrong"}, 401)

    url = serve(app)
    statuses = [post(url, "/login", f"guess {n}").status_code for n in range(100)]
    assert hasher.looked_at == [f"guess {n}" for n in range(5)]
    assert statuses == [401 if handled else 500] * 5 + [429] * 95
    assert post(url, "/login", PASSWORD).status_code == 429


@pytest.mark.parametrize("error", [ValueError("too long"), RequestValidationError([])])
def test_a_client_that_crashes_the_endpoint_after_the_check_gets_no_extra_guesses(
    serve: Serve, limiter: Any, error: Exception
) -> None:
    # Like an audit row whose column is too short for the header that the client sends.
    app, looked_at = FastAPI(), []
    install(app)

    def keys(form: Form) -> list[Key]:
        return keys_for([presets.otp_verify], account=form.email)

    @app.post("/otp", dependencies=[Depends(guard(limiter, keys=keys))])
    async def otp(form: Form, request: Request) -> bool:
        looked_at.append(form.password)
        is_right = form.password == "000777"
        if len(request.headers["user-agent"]) > 255:
            raise error
        return is_right

    url = serve(app)
    bodies = [{"email": "ann", "password": f"{n:06}"} for n in range(100)]
    statuses = [CLIENT.post(url + "/otp", json=body, headers={"user-agent": "x" * 256}).status_code for body in bodies]
    assert len(looked_at) == statuses.index(429) == 5
    assert statuses[5:] == [429] * 95


def test_a_returned_response_is_a_counted_guess_at_any_status(serve: Serve, limiter: Any) -> None:
    assert post(serve(make_app(limiter)), "/returned").status_code == 500
    assert left(limiter) == 4


def test_a_request_that_fails_validation_after_it_was_counted_stays_counted(serve: Serve, limiter: Any) -> None:
    assert post(serve(make_app(limiter)), "/query?number=x").status_code == 422
    assert left(limiter) == 4


def test_a_failure_while_the_answer_is_sent_is_not_given_back(serve: Serve, limiter: Any) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        post(serve(make_app(limiter)), "/stream")
    assert left(limiter) == 4


def test_a_client_that_disconnects_stays_counted(serve: Serve, limiter: Any) -> None:
    verified: list[str] = []
    url = httpx.URL(serve(make_app(limiter, verified)))
    with socket.create_connection((url.host, url.port or 80)) as connection:
        connection.sendall(raw_login("guess"))
        deadline = time.monotonic() + 30
        while not verified:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert post(str(url), "/login").status_code == 401
    assert left(limiter) == 3


@pytest.mark.parametrize("email", ["", "\0"])
def test_an_empty_key_is_answered_400_and_counts_nothing(serve: Serve, limiter: Any, email: str) -> None:
    answer = post(serve(make_app(limiter)), "/login", email=email)
    if email:
        assert answer.status_code == 401
        return
    assert (answer.status_code, answer.json()) == (400, {"detail": "Bad request"})
    assert len(limiter) == 0


def test_a_denial_is_the_same_bytes_for_a_known_and_an_unknown_account(serve: Serve, limiter: Any) -> None:
    url = serve(make_app(limiter))
    for email in ("ann", "nobody"):
        for _ in range(5):
            post(url, "/login", email=email)
    known, unknown = (post(url, "/login", email=email) for email in ("ann", "nobody"))
    assert known.status_code == 429
    assert seen(known) == seen(unknown)


def test_an_endless_wait_has_no_retry_after(serve: Serve, limiter: Any) -> None:
    app = FastAPI()
    install(app)
    rule = Rule("small", "2/1h")

    def keys() -> list[Key]:
        return [rule.key("a")]

    @app.get("/", dependencies=[Depends(guard(limiter, keys=keys, cost=3))])
    async def dear() -> None: ...

    answer = CLIENT.get(serve(app))
    assert answer.status_code == 429
    assert "retry-after" not in answer.headers


def test_an_unavailable_limiter_is_answered_503(serve: Serve) -> None:
    app = FastAPI()
    install(app)
    # Only a store can be unavailable, so the decision is built here.
    unavailable = _restore_decision(0, "unavailable", "login", None, 0, timedelta(0), False, [])

    @app.get("/")
    async def closed() -> None:
        raise _denial(unavailable)

    answer = CLIENT.get(serve(app))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json() == {"detail": "Temporarily unavailable"}


class TwoGuards:
    """An application with two guards of one limiter: one for all routes and one for an endpoint."""

    def __init__(self, limiter: Any) -> None:
        self.limiter = limiter
        self.attempts: list[tuple[Any, Any]] = []
        self.extra = StrikeRule("login-account", threshold=3, lockout_window="15m")
        self.app = FastAPI(dependencies=[Depends(guard(limiter, keys=self.ip))])
        install(self.app)
        self.app.add_api_route("/login/{email}", self.login(), methods=["POST"])

    def ip(self) -> list[Key]:
        return [IP.ip_key("192.0.2.1")]

    async def keys(self, email: str) -> list[Key]:
        return [IP.ip_key("192.0.2.1"), self.extra.key(email)]

    def login(self) -> Callable[..., Awaitable[None]]:
        first, second = guard(self.limiter, keys=self.ip), guard(self.limiter, keys=self.keys, give_back_on=Down)

        async def login(
            email: str, one: Annotated[Any, Depends(first)], two: Annotated[Any, Depends(second)], fail: str = ""
        ) -> None:
            self.attempts.append((one, two))
            if fail == "crash":
                raise ZeroDivisionError
            if fail == "down":
                raise Down

        return login

    def remaining(self) -> list[int]:
        return [remaining(self.limiter, key) for key in (IP.ip_key("192.0.2.1"), self.extra.key("ann"))]


def test_a_second_guard_of_one_limiter_shares_the_attempt_and_counts_only_new_keys(serve: Serve, limiter: Any) -> None:
    two = TwoGuards(limiter)
    assert CLIENT.post(serve(two.app) + "/login/ann").status_code == 200
    assert two.attempts[0][0] is two.attempts[0][1]
    assert two.remaining() == [999, 2]


def test_a_crash_leaves_the_keys_of_every_guard_counted(serve: Serve, limiter: Any) -> None:
    two = TwoGuards(limiter)
    assert CLIENT.post(serve(two.app) + "/login/ann?fail=crash").status_code == 500
    assert two.remaining() == [999, 2]


def test_an_exception_named_by_one_guard_gives_back_the_keys_of_every_guard(serve: Serve, limiter: Any) -> None:
    two = TwoGuards(limiter)
    assert CLIENT.post(serve(two.app) + "/login/ann?fail=down").status_code == 500
    assert two.remaining() == [999, 3]


def test_a_denial_by_the_second_guard_leaves_the_first_counted(serve: Serve, limiter: Any) -> None:
    two = TwoGuards(limiter)
    url = serve(two.app)
    statuses = [CLIENT.post(f"{url}/login/ann").status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert two.remaining() == [995, 0]


@pytest.mark.parametrize("odd", [KeyboardInterrupt, [int], "OSError", 5])
def test_give_back_on_without_exceptions_is_refused_when_the_guard_is_made(odd: Any) -> None:
    with pytest.raises(ConfigError, match="^give_back_on must list classes of exceptions$"):
        guard(Limiter(), keys=list, give_back_on=odd)


@pytest.mark.parametrize("embedded", [False, True])
def test_keys_made_from_another_body_than_the_endpoint_reads_are_refused(
    serve: Serve, limiter: Any, embedded: bool
) -> None:
    app, checked = FastAPI(), []
    install(app)
    Parameter = Annotated[Form, Body(embed=True)] if embedded else Form

    def keys(form: Parameter) -> list[Key]:
        return [ACCOUNT_IP.key(form.email, "here")]

    def nested(counted: Annotated[Any, Depends(keys)]) -> list[Key]:
        return list(counted)

    for path, chosen in (("/plain", keys), ("/nested", nested)):

        @app.post(path, dependencies=[Depends(guard(limiter, keys=chosen))])
        async def login(login: Parameter) -> None:
            checked.append(login.email)

    url = serve(app)
    two = {"form": {"email": "mallory", "password": "x"}, "login": {"email": "ann", "password": "x"}}
    for path in ("/plain", "/nested"):
        assert [CLIENT.post(url + path, json=two).status_code for _ in range(7)] == [500] * 7
    assert not checked
    assert len(limiter) == 0


def test_keys_made_from_the_body_that_the_endpoint_reads_are_accepted(serve: Serve, limiter: Any) -> None:
    app = FastAPI()
    install(app)

    def keys(email: Annotated[str, Body()]) -> list[Key]:
        return [ACCOUNT_IP.key(email, "here")]

    def alone(form: Form) -> list[Key]:
        return [ACCOUNT_IP.key(form.email, "here")]

    @app.post("/fields", dependencies=[Depends(guard(limiter, keys=keys))])
    async def fields(email: Annotated[str, Body()], password: Annotated[str, Body()]) -> None: ...

    @app.post("/alone", dependencies=[Depends(guard(limiter, keys=alone))])
    async def only_counted() -> None: ...

    url = serve(app)
    assert [post(url, path).status_code for path in ("/fields", "/alone")] == [200, 200]


def bare_app(limiter: Any) -> FastAPI:
    """An application without `install`."""
    app = FastAPI()

    @app.post("/login", dependencies=[Depends(guard(limiter, keys=login_keys, rate_limit=False))])
    async def login(form: Form) -> None: ...

    return app


@pytest.mark.parametrize("mounted", [False, True])
def test_a_denial_is_answered_without_install(serve: Serve, limiter: Any, mounted: bool) -> None:
    app = bare_app(limiter)
    if mounted:
        outer = FastAPI()
        outer.mount("/inner", app)
        app = outer
    url = serve(app) + ("/inner" if mounted else "")
    answers = [post(url, "/login") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert answers[5].json() == {"detail": "Too many attempts"}
    assert answers[5].headers["retry-after"] == "900"
    assert answers[5].headers["cache-control"] == "no-store"


def test_a_handler_of_the_application_answers_denials_with_their_fields_and_keys(serve: Serve, limiter: Any) -> None:
    app, seen_keys = bare_app(limiter), []

    @app.exception_handler(AttemptDenied)
    async def mine(request: Request, denied: AttemptDenied) -> JSONResponse:
        seen_keys.append(denied.keys)
        return JSONResponse({"mine": True}, 429, denied.headers)

    url = serve(app)
    answers = [post(url, "/login") for _ in range(6)]
    assert answers[5].json() == {"mine": True}
    assert answers[5].headers["retry-after"] == "900"
    assert seen_keys == [(IP.ip_key("127.0.0.1"), ACCOUNT_IP.key("ann", network("127.0.0.1")))]


@pytest.mark.parametrize("place", ["application", "router", "mounted"])
def test_a_websocket_is_refused_without_install(serve: Serve, limiter: Any, place: str) -> None:
    app, router = FastAPI(), APIRouter()

    def keys() -> list[Key]:
        return [ACCOUNT_IP.key("ann", "here")]

    @(app if place == "application" else router).websocket("/ws")
    async def websocket(websocket: WebSocket, attempt: Annotated[Any, Depends(guard(limiter, keys=keys))]) -> None:
        await websocket.accept()
        await websocket.close()

    app.include_router(router)
    if place == "mounted":
        outer = FastAPI()
        outer.mount("/inner", app)
        app = outer
    url = serve(app).replace("http", "ws") + ("/inner/ws" if place == "mounted" else "/ws")
    for _ in range(5):
        with connect(url):
            pass
    with pytest.raises(InvalidStatus) as refused, connect(url):
        pass
    answer = refused.value.response
    # Older releases of Starlette end it with a server error, which is also a refusal.
    if answer.status_code != 500:
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "900")
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("mounted", [False, True])
def test_a_handler_of_http_exceptions_answers_denials_without_install(
    serve: Serve, limiter: Any, mounted: bool
) -> None:
    app = bare_app(limiter)

    @app.exception_handler(StarletteHTTPException)
    async def shaped(request: Request, error: StarletteHTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    if mounted:
        outer = FastAPI()
        outer.mount("/inner", app)
        app = outer
    url = serve(app) + ("/inner" if mounted else "")
    answers = [post(url, "/login") for _ in range(6)]
    assert answers[5].json() == {"error": "Too many attempts"}
    assert (answers[5].status_code, answers[5].headers["retry-after"]) == (429, "900")


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html,*/*;q=0.8", ""])
def test_a_denial_is_json_whatever_the_client_accepts(serve: Serve, limiter: Any, accept: str) -> None:
    url = serve(make_app(limiter))
    for _ in range(5):
        post(url, "/login")
    denied = CLIENT.post(url + "/login", json={"email": "ann", "password": "x"}, headers={"accept": accept})
    assert denied.json() == {"detail": "Too many attempts"}
    assert denied.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [400, 429, 503])
def test_a_refusal_is_not_stored_by_caches(serve: Serve, limiter: Any, status: int) -> None:
    app = make_app(limiter)
    unavailable = _restore_decision(0, "unavailable", "login", None, 0, timedelta(0), False, [])
    raised = {400: InvalidKeyError("none"), 429: RateLimitExceeded(), 503: _denial(unavailable)}

    @app.get("/raise")
    async def refuse() -> None:
        raise raised[status]

    answer = CLIENT.get(serve(app) + "/raise")
    assert (answer.status_code, answer.headers["cache-control"]) == (status, "no-store")


def test_a_refusal_to_issue_has_retry_after_if_the_wait_is_known(serve: Serve, limiter: Any) -> None:
    app = make_app(limiter)
    waits = {"known": timedelta(seconds=1.5), "unknown": None}

    @app.get("/issue/{wait}")
    async def issue(wait: str) -> None:
        raise RateLimitExceeded(retry_after=waits[wait])

    url = serve(app)
    answers = [CLIENT.get(f"{url}/issue/{wait}") for wait in waits]
    assert [(answer.status_code, answer.headers.get("retry-after")) for answer in answers] == [(429, "2"), (429, None)]


@pytest.mark.parametrize("odd", [None, "redis://127.0.0.1", Limiter])
def test_an_invalid_limiter_is_refused_when_the_guard_is_made(odd: Any) -> None:
    with pytest.raises(ConfigError, match="^limiter must be a Limiter$"):
        guard(odd, keys=list)


@pytest.mark.parametrize("odd", [None, [], "account"])
def test_keys_that_are_not_a_function_are_refused_when_the_guard_is_made(odd: Any) -> None:
    with pytest.raises(ConfigError, match="^keys must be a function$"):
        guard(Limiter(), keys=odd)
