"""Starts the worker of a language and talks to it.

Knows no limiter. Invariant: a worker that is silent for a minute, or ends, fails the test that waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# A third language is one more line here and one more program that speaks the protocol of README.md.
LANGUAGES = {
    "python": (sys.executable, str(HERE / "worker.py")),
    "node": ("node", str(HERE / "worker.mjs")),
}
LONGEST_SILENCE = 60


class Worker:
    """A process of its own, with limiters of its own."""

    def __init__(self, language: str, **environment: str) -> None:
        self.language = language
        self._process = subprocess.Popen(
            LANGUAGES[language], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}
        )
        self._said: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, op: str, **arguments: Any) -> Any:
        """Let it do one thing, and give what came of it."""
        self.begin(op, **arguments)
        return self.end()

    def begin(self, op: str, **arguments: Any) -> None:
        """Let it do one thing, and do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        """Give what came of what `begin` began."""
        line = self._said.get(timeout=LONGEST_SILENCE)
        assert line, f"the {self.language} worker ended with {self._process.wait()}"
        answer = json.loads(line)
        assert "error" not in answer, f"{self.language}: {answer['error']}"
        return answer["said"]

    def kill(self) -> None:
        """End it in the middle of whatever it does: SIGKILL."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let it end by itself, since it has nothing more to read."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            assert self._process.wait(timeout=10) in (0, -9), f"the {self.language} worker failed"
        finally:
            self.kill()

    def _listen(self) -> None:
        with self._process.stdout as said:
            for line in said:
                self._said.put(line)
        self._said.put(b"")
