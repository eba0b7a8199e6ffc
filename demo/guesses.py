"""Sends login attempts to a service, many at a time, over connections that are kept open.

Plain asyncio streams instead of an HTTP library, so that the attacker is faster than what it attacks. Understands only
answers that say their length, which both services give.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CONNECTIONS = 100


@dataclass(frozen=True)
class Guess:
    """One attempt to log in, from the address that the service is told."""

    client: str
    email: str
    password: str


@dataclass(frozen=True)
class Answer:
    """What a service said to a guess: its status, its Retry-After in seconds, and how long it took."""

    status: int
    retry_after: int | None
    seconds: float


async def send_all(port: int, guesses: Iterable[Guess], connections: int = CONNECTIONS) -> list[Answer]:
    """Send every guess as soon as one of the connections is free."""
    waiting = iter(guesses)
    answers: list[Answer] = []
    await asyncio.gather(*(_send_each(port, waiting, answers) for _ in range(connections)))
    return answers


async def count(port: int) -> dict[str, int]:
    """Ask a service how many passwords it looked at, right and wrong, and how many keys it holds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /demo HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _, _, body = await _answer(reader)
        counted: dict[str, int] = json.loads(body)
        return counted
    finally:
        writer.close()


async def _send_each(port: int, waiting: Iterator[Guess], answers: list[Answer]) -> None:
    first = next(waiting, None)
    if first is None:
        return
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        guess: Guess | None = first
        while guess is not None:
            started = time.monotonic()
            writer.write(_request(guess))
            status, headers, _ = await _answer(reader)
            told = headers.get("retry-after")
            answers.append(Answer(status, None if told is None else int(told), time.monotonic() - started))
            guess = next(waiting, None)
    finally:
        writer.close()


def _request(guess: Guess) -> bytes:
    body = json.dumps({"email": guess.email, "password": guess.password})
    return (
        "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"x-demo-client: {guess.client}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head[:-4].split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    return int(first.split(" ", 2)[1]), headers, body
