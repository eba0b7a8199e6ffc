"""Forked children that do one piece of work and tell what came of it.

Invariant: a child never returns into the test that forked it, and one that hangs is ended and is a failure.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from typing import Any


class Child:
    """A child at its work."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._replies, into = os.pipe()
        self._process = os.fork()
        if self._process:
            os.close(into)
            return
        # Straight out, whatever happens: what the test's process does at its exit is not the child's to do.
        with contextlib.suppress(BaseException):
            try:
                answer = (True, work())
            except BaseException:
                answer = (False, traceback.format_exc())
            with os.fdopen(into, "wb") as pipe:
                pickle.dump(answer, pipe)
        os._exit(0)

    def answer(self, seconds: float = 10) -> Any:
        """Wait for what the work gave; what it raised is a failure."""
        ready, _, _ = select.select([self._replies], [], [], seconds)
        if not ready:
            os.kill(self._process, signal.SIGKILL)
        with os.fdopen(self._replies, "rb") as pipe:
            told = pipe.read()
        os.waitpid(self._process, 0)
        assert ready, f"a child did not answer within {seconds} s"
        assert told, "a child died"
        succeeded, answer = pickle.loads(told)
        assert succeeded, answer
        return answer


def in_child(work: Callable[[], Any]) -> Any:
    """Fork, and give what the work gives in the child."""
    return Child(work).answer()
