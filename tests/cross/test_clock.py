"""Processes whose clocks disagree: the server's clock decides, unless it is told not to."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Worker

AHEAD = 5
TEN = {"rules": {"ten": {"rates": "10/60s"}}, "strikes": {"name": "once", "threshold": 1, "lockout_window": "60s"}}
KEY = {"rule": "ten", "parts": ["ann"]}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a clock is moved as the loader of Linux allows")


@pytest.fixture(scope="session")
def ahead(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give the environment of a process whose wall clock is ahead of the machine's."""
    compiler = shutil.which("cc")
    assert compiler, "no C compiler, which Rust needs for linking, too"
    library = tmp_path_factory.mktemp("clock") / "moved.so"
    source = Path(__file__).with_name("moved_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(AHEAD)}


@pytest.fixture(params=["python", "node"])
def apart(
    request: pytest.FixtureRequest, start: Callable[..., Worker], ahead: dict[str, str]
) -> Callable[..., tuple[Worker, Worker]]:
    """Give a function that starts two workers, the second one with a clock that is ahead."""
    other = {"python": "node", "node": "python"}[request.param]
    return lambda clock: (start(request.param, clock=clock, **TEN), start(other, ahead, clock=clock, **TEN))


def test_with_the_servers_clock_1000_calls_in_turn_admit_exactly_ten(
    apart: Callable[..., tuple[Worker, Worker]],
) -> None:
    workers = apart("server")
    began = time.monotonic()
    admitted = [workers[call % 2].ask("allow", keys=[KEY])["outcome"] == "allowed" for call in range(1000)]
    # One comes back every six seconds, should a slow machine take that long.
    back = int((time.monotonic() - began) // 6)
    assert admitted[:10] == [True] * 10
    assert 10 <= sum(admitted) <= 10 + back
    assert workers[0].ask("strike", key="ann")["outcome"] == "allowed_last"
    assert 59_000_000 < workers[1].ask("strike", key="ann")["retry_after"] <= 60_000_000


def test_with_clocks_of_their_own_processes_disagree(apart: Callable[..., tuple[Worker, Worker]]) -> None:
    """Shows that the clocks of the test above are apart."""
    right, ahead = apart("client")
    assert ahead.ask("strike", key="ann")["outcome"] == "allowed_last"
    assert 64_000_000 < right.ask("strike", key="ann")["retry_after"] <= 65_000_000
