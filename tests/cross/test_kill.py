"""A process that is killed in the middle of its calls leaves nothing behind that lasts."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from processes import LANGUAGES, Worker

from support.servers import Server

# Each key's window and what rounding up to a millisecond and expiry by a snapshot of the clock may add.
LONGEST_MS = {"login-ip": 3_600_002, "login-strikes": 900_002, "login-tokens": 3_600_002, "login-window": 3_600_002}


@pytest.mark.parametrize("victim", LANGUAGES)
def test_a_kill_in_mid_flight_leaves_no_key_without_an_end(
    start: Callable[..., Worker], server: Server, prefix: str, victim: str
) -> None:
    witness = start(next(language for language in LANGUAGES if language != victim))
    for round_ in range(3):
        before = len(server.keys(f"{prefix}:*"))
        worker = start(victim)
        worker.begin("hammer", rule="login-ip", times=50)
        until(lambda: len(server.keys(f"{prefix}:*")) >= before + 400 * (round_ + 1))  # noqa: B023
        worker.kill()
        for key in server.keys(f"{prefix}:*"):
            longest = LONGEST_MS[key.split("{")[1].split(":")[0]]
            assert 0 < server.ask("PTTL", key) <= longest, key
        # Nobody is held up by what the victim left.
        assert witness.ask("strike", key=f"ann {round_}")["outcome"] == "allowed"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "the worker wrote nothing"
        time.sleep(0.002)
