"""Deadlines under faults, and how tests wait.

Invariant: each bound is between the promised time and the time that the fault would take, with slack for a busy
machine: one timeout, not two; immediately, not a timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator

# Of the stores under test; longer than the default, so that a busy machine cannot turn "immediately" into a timeout.
TIMEOUT = 0.5
ONE_TIMEOUT = TIMEOUT + 0.4
AT_ONCE = 0.25
HEARTBEAT = 0.4
# One probe per second, each with its own timeout, and a connection that is given up after two.
IS_BACK = 4


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer."""
    start = time.monotonic()
    yield
    took = time.monotonic() - start
    assert took <= seconds, f"took {took:.3f} s, more than {seconds} s"


def until(condition: Callable[[], object], seconds: float = IS_BACK) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(0.02)


@contextlib.asynccontextmanager
async def heartbeat(longest: float = HEARTBEAT) -> AsyncIterator[None]:
    """Fail if the running event loop is blocked for longer during the block."""
    gaps = [0.0]

    async def beat() -> None:
        while True:
            start = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - start)

    beating = asyncio.create_task(beat())
    try:
        yield
        # One more beat detects a gap at the end of the block.
        await asyncio.sleep(0.02)
    finally:
        beating.cancel()
    assert max(gaps) <= longest, f"the loop was blocked for {max(gaps):.3f} s"
