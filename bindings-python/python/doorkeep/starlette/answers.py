"""The answers to denied requests, shared by middleware and exception handlers.

Knows no limiter: it gets a decision, or an error that carries one. Invariant: the bytes depend only on the decision and
on the options of the guard, so that they are the same for accounts that exist and accounts that do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketState

from doorkeep import Decision, Key, http
from doorkeep.errors import AttemptDenied, InvalidKeyError, LimiterUnavailable, RateLimitExceeded
from doorkeep.starlette.fields import Fields, keep

_TOO_MANY = "Too many attempts"
_BAD = "Bad request"
# RFC 6455: the connection ends because a message violates a policy.
_POLICY_VIOLATION = 1008


def install(app: Starlette) -> None:
    """Answer denials: 429 with ``Retry-After``, 503 when the limiter is unavailable, 400 for an invalid key.

    ``Retry-After`` is omitted when waiting cannot help or the wait is unknown. A websocket gets the same answer if the
    server can send one before accepting it; otherwise it is closed with code 1008. A mounted application answers its
    own errors. Without `install` a denial and a lost address are answered like any other ``HTTPException``; an invalid
    key and `RateLimitExceeded` become a 500.

    Parameters
    ----------
    app
        An application of Starlette or FastAPI that has not started. This sets its handlers of `AttemptDenied`,
        `InvalidKeyError` and `RateLimitExceeded`. Your own handler, added later, replaces them; it finds the header
        fields to send in ``error.headers``.
    """
    for error in (AttemptDenied, InvalidKeyError, RateLimitExceeded):
        app.add_exception_handler(error, _handle)
    app.add_middleware(Fields)


def admit(
    scope: Scope, decision: Decision, keys: Iterable[Key], *, round_up: Any = None, rate_limit: bool = False
) -> None:
    """Raise a denial, or keep the header fields for the answer to an admitted request."""
    if not decision.allowed:
        error = _Unavailable(decision) if decision.reason == "unavailable" else _Denied(decision)
        error.keys = tuple(keys)
        error._headers = http.headers(decision, keys, round_up=round_up, rate_limit=rate_limit)
        raise error
    if rate_limit and scope["type"] == "http":
        keep(scope, http.headers(decision, keys, round_up=round_up, rate_limit=True))


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
    """A denial that the framework itself can answer, in an application without `install`."""

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
    """The client has closed its connection, so its address is lost: answered with 400, even without `install`."""

    def __init__(self) -> None:
        HTTPException.__init__(self, 400, _BAD, {"Cache-Control": "no-store"})

    def __str__(self) -> str:
        return "the address of the client is lost: it has closed its connection"


async def refuse(websocket: WebSocket, response: Response) -> None:
    """Refuse a websocket: with an HTTP answer if the server can still send one, otherwise by closing it."""
    unanswered = websocket.application_state is WebSocketState.CONNECTING
    if unanswered and "websocket.http.response" in websocket.scope.get("extensions", {}):
        await websocket.send_denial_response(response)
    else:
        await websocket.close(_POLICY_VIOLATION)


async def _handle(connection: HTTPConnection, error: Exception) -> Any:
    response = answer(error)
    if not isinstance(connection, WebSocket):
        return response
    return await refuse(connection, response)
