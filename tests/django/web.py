"""HTTP for attacks: many concurrent requests, and requests whose bytes are compared."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

# One client for all calls: making a client reads certificates, which takes longer than a test.
CLIENT = httpx.Client(trust_env=False, verify=False, timeout=30, limits=httpx.Limits(max_keepalive_connections=0))


def post_json(url: str, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    CLIENT.cookies.clear()
    # Escapes everything, so that even a lone surrogate can be sent.
    return CLIENT.post(url, content=json.dumps(body), headers={"Content-Type": "application/json", **(headers or {})})


def post_form(url: str, headers: dict[str, str] | None = None, **fields: str) -> httpx.Response:
    CLIENT.cookies.clear()
    return CLIENT.post(url, data=fields, headers=headers)


def attack(url: str, bodies: Iterable[dict[str, Any]], *, as_form: bool = False) -> list[int]:
    """Send all bodies concurrently, and return the statuses."""

    async def send_all() -> list[int]:
        return await asyncio.gather(*[_send(url, body, as_form) for body in bodies])

    return asyncio.run(send_all())


def hang_up(url: str, body: dict[str, Any], once: Callable[[], bool]) -> None:
    """Send a body, and disconnect once a condition is true, before the answer arrives."""
    place = urlsplit(url)
    with socket.create_connection((str(place.hostname), place.port or 80), 10) as connection:
        connection.sendall(_request(place.path, "application/json", json.dumps(body)))
        deadline = time.monotonic() + 30
        while not once():
            assert time.monotonic() < deadline, "the request did not get so far"
            time.sleep(0.01)


def _request(path: str, kind: str, content: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode()


async def _send(url: str, body: dict[str, Any], as_form: bool) -> int:
    place = urlsplit(url)
    kind = "application/x-www-form-urlencoded" if as_form else "application/json"
    content = urlencode(body) if as_form else json.dumps(body)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(_request(place.path, kind, content))
    answer = await reader.read()
    writer.close()
    return int(answer.split(b" ")[1])
