"""An application of Starlette with all ways to count and to fail, for tests of its surroundings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from doorkeep import (
    AttemptDenied,
    ClientIp,
    RateLimitExceeded,
    Rule,
    StrikeRule,
)
from doorkeep.starlette import AddressLimit, attempt_for, install
from support.web import remaining, result_of

IP = Rule("ip", "3/1h", by=("address",))
ACCOUNT = StrikeRule("account", threshold=3, lockout_window="15m", by=("account",))
HERE = IP.ip_key("127.0.0.1")
ANN = ACCOUNT.key("ann")
NOBODY = "redis://127.0.0.1:1/0"
Serve = Callable[[Any], str]


class WrongPassword(Exception):
    """An exception of the application for a wrong password."""


class Down(Exception):
    """A failure of the application that the block names."""


def make_app(limiter: Any, *, middleware: bool = True, **options: Any) -> Starlette:
    """An application that guards an account in its endpoint, behind middleware that counts the address."""

    async def login(request: Request) -> Response:
        how = request.path_params["how"]
        async with attempt_for(request, limiter, ANN, give_back_on=Down) as attempt:
            if how == "crash":
                raise ZeroDivisionError
            if how == "own":
                raise WrongPassword
            if how == "down":
                raise Down
            if how == "settled":
                await result_of(attempt.failure())
                raise Down
            if how == "denied":
                raise AttemptDenied(attempt.decision)
            if how == "limited":
                raise RateLimitExceeded
            if how == "success":
                await result_of(attempt.success(forgive=[ACCOUNT], give_back=[IP]))
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


def left(limiter: Any) -> tuple[int, int]:
    """Return what the address and the account have left of 3 each."""
    return remaining(limiter, HERE), remaining(limiter, ANN)
