"""Sends login attempts to a service, many at a time, over connections that are kept open.

Plain asyncio streams instead of an HTTP library, so that the attacker is faster than what it attacks. Understands only
answers that say their length, which both services give.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    """What a service said to a guess: its status, its Retry-After in seconds, how long it took, and when it came."""

    status: int
    retry_after: int | None
    seconds: float
    came: float


async def send_all(ports: Sequence[int], guesses: Iterable[Guess]) -> list[Answer]:
    """Send every guess as soon as a connection is free, to each service the same number."""
    all_guesses = list(guesses)
    answers: list[Answer] = []
    sending = []
    for turn, port in enumerate(ports):
        waiting = iter(all_guesses[turn :: len(ports)])
        sending += [_send_each(port, waiting, answers) for _ in range(CONNECTIONS // len(ports))]
    await asyncio.gather(*sending)
    return answers


async def keep_sending(
    ports: Sequence[int], guesses: Iterator[Guess], answers: list[Answer], connections: int, pause: float
) -> None:
    """Send guesses to every service over so many connections each, with pauses between, until there are no more."""
    await asyncio.gather(*(_send_each(port, guesses, answers, pause) for port in ports for _ in range(connections)))


async def count(ports: Sequence[int]) -> Counter[str]:
    """Ask services how many passwords they looked at in all: right, wrong, without their store; and what they hold."""
    return sum(await asyncio.gather(*map(_count, ports)), Counter())


async def _count(port: int) -> Counter[str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /demo HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _, _, body = await _answer(reader)
        return Counter(json.loads(body))
    finally:
        writer.close()


async def _send_each(port: int, waiting: Iterator[Guess], answers: list[Answer], pause: float = 0) -> None:
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
            told, came = headers.get("retry-after"), time.monotonic()
            answers.append(Answer(status, None if told is None else int(told), came - started, came))
            await asyncio.sleep(pause)
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
