"""A server of our own for one run, and what to ask it.

Knows the Redis protocol only as far as plain commands need. Invariant: the server listens on a free loopback port,
keeps nothing and ends with the run.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Server:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"

    @contextmanager
    def connection(self) -> Iterator["Connection"]:
        """Give a connection for plain commands."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as peer:
            yield Connection(peer)

    def ask(self, *words: str | bytes) -> str:
        """Send one command over a connection of its own."""
        with self.connection() as connection:
            return connection.ask(*words)

    def script_cost(self) -> tuple[int, float]:
        """Give how many scripts ran since the last `CONFIG RESETSTAT`, and the microseconds that each took."""
        stats = self.ask("INFO", "commandstats")
        line = next(line for line in stats.splitlines() if line.startswith("cmdstat_evalsha:"))
        told = dict(pair.split("=") for pair in line.partition(":")[2].split(","))
        return int(told["calls"]), float(told["usec_per_call"])


class Connection:
    """A connection that sends a command and waits for its answer."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.lines = peer.makefile("rb")

    def ask(self, *words: str | bytes) -> str:
        """Send a command; give its answer, which must be one text."""
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        frame = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self.peer.sendall(b"*%d\r\n%s" % (len(parts), frame))
        return self.line()

    def line(self) -> str:
        """Read one answer: a status, or a text."""
        head = self.lines.readline().rstrip()
        if head.startswith(b"-"):
            raise RuntimeError(head.decode())
        if head.startswith(b"$"):
            return self.lines.read(int(head[1:]) + 2)[:-2].decode()
        return head[1:].decode()


@contextmanager
def running() -> Iterator[Server]:
    """Run the server that the environment names, or the one on the path."""
    binary = os.environ.get("DOORKEEP_REDIS_SERVER") or "redis-server"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL)
    try:
        server = Server(port)
        wait_for(server)
        yield server
    finally:
        process.kill()
        process.wait()


def wait_for(server: Server) -> None:
    """Wait until it answers."""
    deadline = time.monotonic() + 10
    while True:
        try:
            assert server.ask("PING") == "PONG"
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
