"""Forked children that run one function and report its result.

Invariant: a child never returns into the test that forked it, and a child that hangs is ended and fails the test.
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
    """A running child."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._replies, into = os.pipe()
        self._process = os.fork()
        if self._process:
            os.close(into)
            return
        # Exit directly, whatever happens: the child must not run the exit handlers of the test's process.
        with contextlib.suppress(BaseException):
            try:
                answer = (True, work())
            except BaseException:
                answer = (False, traceback.format_exc())
            with os.fdopen(into, "wb") as pipe:
                pickle.dump(answer, pipe)
        os._exit(0)

    def answer(self, seconds: float = 10) -> Any:
        """Wait for the result; an exception fails the test."""
        ready, _, _ = select.select([self._replies], [], [], seconds)
        if not ready:
            os.kill(self._process, signal.SIGKILL)
        with os.fdopen(self._replies, "rb") as pipe:
            output = pipe.read()
        os.waitpid(self._process, 0)
        assert ready, f"a child did not answer within {seconds} s"
        assert output, "a child died"
        succeeded, answer = pickle.loads(output)
        assert succeeded, answer
        return answer


def in_child(work: Callable[[], Any]) -> Any:
    """Fork, run the function in the child, and return its result."""
    return Child(work).answer()
