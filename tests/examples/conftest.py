"""Starts the examples as their READMEs say, each on a port of its own, and ends them when the test ends."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

# For the launcher of servers, which is the Python suite's.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

# What several test files share says as much when it fails as they do.
pytest.register_assert_rewrite("login_attacks")

ROOT = Path(__file__).parents[2]
Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Give a function that runs a server for the test.

    ``serve(command, cwd, env)`` returns the base URL, without a slash at its end. ``{port}`` in the command stands for
    the port, which the variable PORT names, too. ``cwd`` is a folder of the project: ``examples/fastapi_login``.
    """
    with contextlib.ExitStack() as running:

        def start(command: Sequence[str], cwd: str | Path, env: Mapping[str, str] | None = None) -> str:
            return running.enter_context(serving(command, ROOT / cwd, env or {}))

        yield start


@contextlib.contextmanager
def serving(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Iterator[str]:
    port = free_port()
    words = [word.replace("{port}", str(port)) for word in command]
    process = subprocess.Popen(words, cwd=cwd, env={**os.environ, "PORT": str(port), **env})
    try:
        deadline = time.monotonic() + 60
        while not answers(port):
            assert process.poll() is None, f"the server ended with {process.returncode}"
            assert time.monotonic() < deadline, "the server did not come up"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
