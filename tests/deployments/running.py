"""Runs a program by itself: its process, where it listens, what it says, and which passwords it has checked."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clients import Entrance

INSTRUMENTS = Path(__file__).parent / "instruments"


def free_port() -> int:
    """Return a port that nobody has, and that the system gives to no outgoing connection, of which tests open many."""
    for port in random.sample(range(20_000, 32_000), 1000):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


class Running:
    """A program that runs."""

    def __init__(self, process: subprocess.Popen[bytes], entrance: Entrance, checked: Path, log: Path) -> None:
        self.process = process
        self.entrance = entrance
        self._checked = checked
        self._log = log

    def settle(self) -> None:
        """Wait until no more passwords are checked: for requests that nobody has an answer to."""
        # What is not run leaves no trace to wait for: only time tells.
        before, now = None, self._checked.stat().st_size
        while before != now:
            time.sleep(0.2)
            before, now = now, self._checked.stat().st_size

    def checked(self) -> list[str]:
        """Return all passwords that were checked."""
        return [json.loads(line) for line in self._checked.read_text(encoding="utf-8").splitlines()]

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let the program and its workers stand still, their sockets open."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.process.pid, signal.SIGCONT)


@contextlib.contextmanager
def running(
    command: Sequence[str], folder: Path, env: Mapping[str, str], entrance: Entrance, traces: Path
) -> Iterator[Running]:
    """Start a program, and end it. What it leaves behind is in the folder ``traces``."""
    checked, log = traces / "checked", traces / "log"
    checked.touch()
    told = {"CHECKED": str(checked), "PYTHONPATH": str(INSTRUMENTS), "PYTHONDONTWRITEBYTECODE": "1", **env}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **told},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    made = Running(process, entrance, checked, log)
    try:
        deadline = time.monotonic() + 60
        while not entrance.answers():
            assert process.poll() is None, f"the program ended:\n{made.log()}"
            assert time.monotonic() < deadline, f"the program did not come up:\n{made.log()}"
            time.sleep(0.02)
        yield made
    finally:
        ends(process)


def ends(process: subprocess.Popen[bytes]) -> None:
    """End a process that we started."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
