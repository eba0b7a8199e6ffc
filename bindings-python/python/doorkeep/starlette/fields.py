"""Header fields of admitted requests: guards keep them in the scope until the answer starts.

Knows no limiter. Invariant: fields are added to whatever answer the application sends, also to that of an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from doorkeep import ConfigError

_FIELDS = "doorkeep.fields"


def keep(scope: Scope, fields: Mapping[str, str]) -> None:
    """Add fields to the answer to this request."""
    if _FIELDS not in scope:
        raise ConfigError("rate_limit needs install(app)")
    scope[_FIELDS].append(fields)


def collecting_fields(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the fields that guards have kept to the answer."""
    fields: list[Mapping[str, str]] = []
    scope[_FIELDS] = fields

    async def send_with_fields(message: Message) -> None:
        if fields and message["type"] == "http.response.start":
            message.setdefault("headers", [])  # which an application may omit
            headers = MutableHeaders(scope=message)
            for name, value in (item for kept in fields for item in kept.items()):
                headers.append(name, value)
        await send(message)

    return send_with_fields


class Fields:
    """Middleware that sends the fields that guards have kept, with any answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the fields to its answer."""
        await self.app(scope, receive, collecting_fields(scope, send) if scope["type"] == "http" else send)
