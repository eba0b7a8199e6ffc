"""Support for tests of web adapters: one client for all calls, and an ASGI server for one request that records
everything."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from doorkeep import Key
from doorkeep._native import Answer

# One client for all calls: making a client reads certificates, which takes longer than a test.
CLIENT = httpx.Client(trust_env=False, verify=False, timeout=30, limits=httpx.Limits(max_keepalive_connections=0))


async def result_of(answer: Any) -> Any:
    """Return the result of a call, after awaiting it if the limiter is awaitable."""
    return await answer if isinstance(answer, Answer) else answer


def remaining(limiter: Any, key: Key) -> int:
    """Return how much of its rule a key has left."""

    async def ask() -> int:
        return int((await result_of(limiter.peek(key))).remaining)

    return asyncio.run(ask())


def seen(answer: httpx.Response) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return everything in an answer that a client can compare: all but the time of day."""
    return answer.status_code, [header for header in answer.headers.raw if header[0] != b"date"], answer.content


class Exchange:
    """One run of an ASGI application: what it received and what it sent, in order."""

    def __init__(self, kind: str = "http", path: str = "/", **scope: Any) -> None:
        self.scope: dict[str, Any] = {
            "type": kind,
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [],
            "client": ("192.0.2.1", 1),
            "server": ("test", 80),
            "extensions": {},
            **scope,
        }
        self.received = 0
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        self.received += 1
        if self.scope["type"] == "websocket":
            return {"type": "websocket.connect"}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))

    def run(self, app: Any) -> list[dict[str, Any]]:
        asyncio.run(app(self.scope, self.receive, self.send))
        return self.sent
