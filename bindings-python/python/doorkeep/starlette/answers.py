"""What a denied request is answered, in middleware and by exception handlers alike.

Knows no limiter: it is given a decision, or an error that holds one. Invariant: the bytes depend on the decision and
on the guard's options alone, so that they are the same for accounts that exist and accounts that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketState

from doorkeep import ConfigError, Decision, Key, http
from doorkeep.errors import AttemptDenied, InvalidKeyError, LimiterUnavailable, RateLimitExceeded

# Where fields for an answer wait in the scope until it starts.
_FIELDS = "doorkeep.fields"
_TOO_MANY = "Too many attempts"
_BAD = "Bad request"
# RFC 6455: the server ends the connection because of a policy.
_POLICY_VIOLATION = 1008


def install(app: Starlette) -> None:
    """Answer denials: 429 with ``Retry-After``, 503 when the limiter is unavailable, 400 for an invalid key.

    ``Retry-After`` is left out when waiting cannot help, or the wait is not known. A websocket is refused with the same
    answer where the server can send one before accepting it, and closed with code 1008 otherwise. A mounted application
    answers its own errors.
    Without `install` a denial and a lost address are answered as any other ``HTTPException``; an invalid key and
    `RateLimitExceeded` are a 500.

    Parameters
    ----------
    app
        An application of Starlette or FastAPI that has not started. Its handlers of `AttemptDenied`, `InvalidKeyError`
        and `RateLimitExceeded` are set; a handler of your own, added later, takes their place and finds the header
        fields to send in ``error.headers``.
    """
    for error in (AttemptDenied, InvalidKeyError, RateLimitExceeded):
        app.add_exception_handler(error, _handle)
    app.add_middleware(_Fields)


def admit(
    scope: Scope, decision: Decision, keys: Iterable[Key], *, round_up: Any = None, rate_limit: bool = False
) -> None:
    """Raise a denial; of an admitted request, keep the fields for its answer."""
    if not decision.allowed:
        error = _Unavailable(decision) if decision.reason == "unavailable" else _Denied(decision)
        error.keys = tuple(keys)
        error._headers = http.headers(decision, keys, round_up=round_up, rate_limit=rate_limit)
        raise error
    if rate_limit and scope["type"] == "http":
        if _FIELDS not in scope:
            raise ConfigError("rate_limit needs install(app)")
        scope[_FIELDS].append(http.headers(decision, keys, round_up=round_up, rate_limit=True))


def answer(error: Exception) -> Response:
    """Make the answer to an error of doorkeep."""
    if isinstance(error, AttemptDenied):
        return JSONResponse({"detail": _detail(error.decision)}, http.status(error.decision), error.headers)
    if isinstance(error, RateLimitExceeded):
        return JSONResponse({"detail": _TOO_MANY}, 429, error.headers)
    return JSONResponse({"detail": _BAD}, 400, {"Cache-Control": "no-store"})


def _detail(decision: Decision) -> str:
    return "Temporarily unavailable" if decision.reason == "unavailable" else _TOO_MANY


class _Answered(HTTPException):
    """Makes a denial one that the framework itself can answer, in an application without `install`."""

    decision: Decision

    def __init__(self, decision: Decision) -> None:
        Exception.__init__(self, decision)  # status, detail and fields follow from the decision

    @property
    def status_code(self) -> int:  # type: ignore[override]
        return http.status(self.decision)

    @property
    def detail(self) -> str:  # type: ignore[override]
        return _detail(self.decision)


class _Denied(AttemptDenied, _Answered):  # type: ignore[misc]
    pass


class _Unavailable(LimiterUnavailable, _Answered):  # type: ignore[misc]
    pass


class LostAddress(InvalidKeyError, HTTPException):
    """The client has closed its connection, and with it went its address; answered 400 without `install`, too."""

    def __init__(self) -> None:
        HTTPException.__init__(self, 400, _BAD, {"Cache-Control": "no-store"})

    def __str__(self) -> str:
        return "the address of the client is lost: it has closed its connection"


async def refuse(websocket: WebSocket, response: Response) -> None:
    """Refuse a websocket: by an answer of HTTP while the server can send one, else by closing it."""
    unanswered = websocket.application_state is WebSocketState.CONNECTING
    if unanswered and "websocket.http.response" in websocket.scope.get("extensions", {}):
        await websocket.send_denial_response(response)
    else:
        await websocket.close(_POLICY_VIOLATION)


def collecting_fields(scope: Scope, send: Send) -> Send:
    """Make a `send` that adds to an answer the fields that guards within have kept for it."""
    fields: list[Mapping[str, str]] = []
    scope[_FIELDS] = fields

    async def send_with_fields(message: Message) -> None:
        if fields and message["type"] == "http.response.start":
            message.setdefault("headers", [])  # which an application may leave out
            headers = MutableHeaders(scope=message)
            for name, value in (item for kept in fields for item in kept.items()):
                headers.append(name, value)
        await send(message)

    return send_with_fields


class _Fields:
    """Sends the fields that guards have asked for, with whatever answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, collecting_fields(scope, send) if scope["type"] == "http" else send)


async def _handle(connection: HTTPConnection, error: Exception) -> Any:
    response = answer(error)
    if not isinstance(connection, WebSocket):
        return response
    return await refuse(connection, response)
