"""A program under attack: it runs in one deployment, and every test brings accounts that nobody has guessed at."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import clients
from clients import Entrance
from nginx import nginx
from programs import Program
from running import INSTRUMENTS, Running, free_port, running

# What a client writes who would like to be somebody else.
FORGED = "X-Forwarded-For: 203.0.113.{0}", "X-Real-IP: 203.0.113.{0}", "Forwarded: for=203.0.113.{0}"

# With the lines of the request itself as many as nginx takes, and with those that nginx adds more than Node keeps.
CROWD = tuple(f"X-{number}: 1" for number in range(995))


class Service:
    """A running program, and its clients."""

    def __init__(self, program: Program, running: Running, entrance: Entrance) -> None:
        self.program = program
        self.running = running
        self.policy = program.policy
        self._entrance = entrance
        self._accounts = 0
        self._sources = 1
        self._seen: list[str] = []

    def fresh_accounts(self, count: int = 1) -> range:
        """Return numbers of accounts that no test has guessed at."""
        self._accounts += count
        return range(self._accounts - count, self._accounts)

    def fresh_source(self) -> str:
        """Return an address that no test has sent anything from."""
        self._sources += 1
        return f"127.0.0.{self._sources}"

    def guess(
        self,
        accounts: Sequence[int],
        source: str,
        *,
        lines: Sequence[str] = (),
        raising: bool = False,
        at_once: int = 100,
    ) -> tuple[Counter[int], list[str], float]:
        """Guess at each of the accounts, with these header lines.

        Return the statuses, whose passwords were checked, and the time it took.
        """
        began = time.monotonic()
        statuses = clients.statuses(self._entrance, self._guesses(accounts, lines, raising), source, at_once)
        seconds = time.monotonic() - began
        return Counter(statuses), self.checked(), seconds

    def guess_in_turn(self, account: int, turns: int, source: str) -> list[int]:
        """Guess at an account, one guess after the other, and return the statuses."""
        return clients.statuses(self._entrance, self._guesses([account] * turns), source, at_once=1)

    def reset(self, accounts: Sequence[int], source: str) -> float:
        """Guess at each of the accounts by connections that are reset. Return the time it took, in seconds."""
        return clients.reset(self._entrance, self._guesses(accounts), source)

    def checked_at_last(self) -> list[str]:
        """Return as `checked`, once all that was sent has been handled."""
        self.running.settle()
        return self.checked()

    def log_in(self, times: int, source: str) -> list[int]:
        """Log in by the right password, one time after the other, and return the statuses."""
        return clients.statuses(self._entrance, [self.program.login.log_in()] * times, source, at_once=1)

    def checked(self) -> list[str]:
        """Return the accounts whose passwords were checked since this was asked, for each guess once."""
        now = self.running.checked()
        new, self._seen = now[len(self._seen) :], now
        return [password.split(" guess ")[0] for password in new if " guess " in password]

    def name(self, account: int) -> str:
        return self.program.login.names.format(account)

    def _guesses(self, accounts: Sequence[int], lines: Sequence[str] = (), raising: bool = False) -> list[bytes]:
        return [
            self.program.login.guess(account, turn, [line.format(turn % 250) for line in lines], raising)
            for turn, account in enumerate(accounts)
        ]


@contextlib.contextmanager
def serving(program: Program, deployment: str) -> Iterator[Service]:
    """Run a program at a port ("tcp"), on a socket ("unix"), or so behind nginx ("nginx-tcp", "nginx-unix")."""
    with contextlib.ExitStack() as stack:
        # A short path: that of a socket has 107 bytes.
        traces = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deployed-")))
        on_socket = deployment.endswith("unix")
        entrance = Entrance(path=traces / "socket") if on_socket else Entrance(free_port())
        proxies = {"nginx-tcp": ["127.0.0.1"], "nginx-unix": ["unix"]}.get(deployment, [])
        env = {**program.trusting(proxies), "PORT": str(entrance.port)}
        if on_socket:
            env["SOCKET"] = str(entrance.path)
        command = program.command(entrance, proxies)
        runs = stack.enter_context(running(command, program.folder, env, entrance, traces))
        front = stack.enter_context(nginx(entrance, traces / "nginx")) if "nginx" in deployment else entrance
        yield Service(program, runs, front)


def in_process(program: Program, passwords: Sequence[tuple[str, str]]) -> list[int]:
    """Return how a program answers accounts and passwords that the test client of its framework sends."""
    env = {**os.environ, **program.trusting([]), "PYTHONPATH": f"{INSTRUMENTS}:{program.folder}"}
    env["CHECKED"] = os.devnull
    place = program.place if program.server == "uvicorn" else "django"
    asked = json.dumps([program.login.parts(*credentials) for credentials in passwords])
    command = [sys.executable, str(INSTRUMENTS / "in_process.py"), place]
    done = subprocess.run(
        command, cwd=program.folder, env=env, input=asked, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    statuses: list[int] = json.loads(done.stdout)
    return statuses
