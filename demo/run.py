"""Starts two guarded login services on free loopback ports, attacks one after the other, and prints what came of it.

Exits 1 when a number is not as expected. Ends the services that it started, whatever happens, and knows them by their
own process, never by name.
"""

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

from attacks import CAPACITY, attack
from report import heading, line

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
DEADLINE_SECONDS = 120
INTRODUCTION = f"""\
Two login services, each guarded by doorkeep in the memory of its own process, under the same three rules:

  login-ip          20/1m,200/1h                         by address
  login-account-ip  5 attempts, then locked out for 15m  by account and address
  login-account     50/1h                                by account

"verified" counts the passwords that a service really looked at. First guesses at new accounts from new addresses are
let in, but however many come, they must not crowd out a lockout. At most {CAPACITY:,} windows of rates and {CAPACITY:,}
keys with strikes are kept.
"""


async def main() -> int:
    """Run the demo within its deadline; a signal that ends it ends its services first."""
    running = asyncio.ensure_future(attack_services())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        return await asyncio.wait_for(running, DEADLINE_SECONDS)
    except asyncio.CancelledError:
        return 130


async def attack_services() -> int:
    """Attack every service, print the table, and give the exit code."""
    print(INTRODUCTION)
    print(heading())
    passed, failures = 0, []
    for service, command in SERVICES.items():
        print(flush=True)
        async with serving(command) as port:
            async for row in attack(port):
                print(line(service, row), flush=True)
                faults = row.faults()
                passed += not faults
                failures += [f"{service}: {row.attack.strip()}: {', '.join(faults)}"] if faults else []
    print("", *failures, f"demo: {passed} passed, {len(failures)} failed", sep="\n")
    return 1 if failures else 0


@asynccontextmanager
async def serving(command: tuple[str, ...]) -> AsyncIterator[int]:
    """Start a service, give the port that it listens on, and end it."""
    environment = {**os.environ, "DEMO_CAPACITY": str(CAPACITY), "PORT": "0"}
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=environment
        )
        try:
            yield await asyncio.wait_for(_port(process, log), START_SECONDS)
        except Exception:
            print(_said(log), file=sys.stderr)
            raise
        finally:
            await _end(process)


async def _port(process: asyncio.subprocess.Process, log: IO[bytes]) -> int:
    while process.returncode is None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", _said(log)):
            return int(found[1])
        await asyncio.sleep(0.05)
    raise RuntimeError("the service ended before it listened")


def _said(log: IO[bytes]) -> str:
    # A read from the start, without the file position that the service is writing at.
    return os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 5)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
