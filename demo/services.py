"""Starts the guarded login services on free loopback ports, and ends them.

Knows no attack. Invariant: a service ends with the block that it was started for, and is known by its own process,
never by name.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import IO

HERE = Path(__file__).resolve().parent
SERVICES = {
    "FastAPI": (
        sys.executable,
        "-m",
        "uvicorn",
        "--app-dir",
        str(HERE),
        "fastapi_login:app",
        "--port",
        "0",
        "--no-access-log",
    ),
    "Express": ("node", str(HERE / "express_login.mjs")),
}
START_SECONDS = 30


@asynccontextmanager
async def serving(service: str, **settings: str) -> AsyncIterator[int]:
    """Start a service, give the port that it listens on, and end it."""
    environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *SERVICES[service],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**environment, **settings, "PORT": "0"},
            # An interrupt at the terminal goes to the demo alone, which ends its services when it is done with them.
            start_new_session=True,
        )
        try:
            yield await asyncio.wait_for(_port(process, log), START_SECONDS)
        except Exception:
            print(_said(log), file=sys.stderr)
            raise
        finally:
            await end(process)


@asynccontextmanager
async def serving_all(**settings: str) -> AsyncIterator[list[int]]:
    """Start every service, give their ports, and end them."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(serving(service, **settings)) for service in SERVICES]


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process: politely, then at once."""
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 5)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()


async def _port(process: asyncio.subprocess.Process, log: IO[bytes]) -> int:
    while process.returncode is None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", _said(log)):
            return int(found[1])
        await asyncio.sleep(0.05)
    raise RuntimeError("the service ended before it listened")


def _said(log: IO[bytes]) -> str:
    # A read from the start, without the file position that the service is writing at.
    return os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")
