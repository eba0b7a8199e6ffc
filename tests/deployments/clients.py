"""Clients as an attacker has them: many requests at once, from an address of one's choice, and connections that reset.

Knows HTTP/1.1 and nothing of the programs. A request is its bytes, and asks the server to close the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# What no server takes as the end of a connection in order: a reset.
RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Entrance:
    """Where a server listens: a port of this machine, or a socket in a folder."""

    port: int = 0
    path: Path | None = None

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            self.connect("127.0.0.1").close()
            return True
        return False

    def connect(self, source: str) -> socket.socket:
        if self.path is None:
            return socket.create_connection(("127.0.0.1", self.port), 30, (source, 0))
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(30)
            connection.connect(str(self.path))
        except OSError:
            connection.close()
            raise
        return connection


def request(path: str, content: bytes, kind: str, headers: Sequence[str] = ()) -> bytes:
    """Return the bytes of a request."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += [f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + content


def statuses(entrance: Entrance, requests: Sequence[bytes], source: str, at_once: int = 100) -> list[int]:
    """Return the status of the answer to each request, all of them sent from one address."""

    async def all_of_them() -> list[int]:
        gate = asyncio.Semaphore(at_once)
        return await asyncio.gather(*(one(asked, gate) for asked in requests))

    async def one(asked: bytes, gate: asyncio.Semaphore) -> int:
        async with gate:
            if entrance.path is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", entrance.port, local_addr=(source, 0))
            else:
                reader, writer = await asyncio.open_unix_connection(str(entrance.path))
            try:
                writer.write(asked)
                answer = await asyncio.wait_for(reader.read(), 60)
            finally:
                writer.close()
            assert answer.startswith(b"HTTP/1."), f"no answer but {answer[:100]!r}"
            return int(answer.split(b" ", 2)[1])

    return asyncio.run(all_of_them())


def reset(entrance: Entrance, requests: Sequence[bytes], source: str) -> float:
    """Send each request and reset its connection at once. Return how long all of it took, in seconds."""
    began = time.monotonic()
    for asked in requests:
        with entrance.connect(source) as connection:
            connection.sendall(asked)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    return time.monotonic() - began
