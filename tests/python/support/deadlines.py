"""How long things may take under faults, and how tests wait for them.

Invariant: each bound lies between what is promised and what the fault to be told apart would cost, with slack for a
machine that is busy: one timeout, not two; at once, not a timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator

# Of the stores under test; longer than the default, so that a busy machine cannot turn "at once" into a timeout.
TIMEOUT = 0.5
ONE_TIMEOUT = TIMEOUT + 0.4
AT_ONCE = 0.25
HEARTBEAT = 0.4
# A probe a second, each with a timeout of its own, and a connection that is only given up after two.
IS_BACK = 4


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail when the block takes longer."""
    start = time.monotonic()
    yield
    took = time.monotonic() - start
    assert took <= seconds, f"took {took:.3f} s, more than {seconds} s"


def until(holds: Callable[[], object], seconds: float = IS_BACK) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(0.02)


@contextlib.asynccontextmanager
async def heartbeat(longest: float = HEARTBEAT) -> AsyncIterator[None]:
    """Fail when the running event loop stands still for longer during the block."""
    gaps = [0.0]

    async def beat() -> None:
        while True:
            start = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - start)

    beating = asyncio.create_task(beat())
    try:
        yield
        # The gap that the end of the block may have made is seen by one more beat.
        await asyncio.sleep(0.02)
    finally:
        beating.cancel()
    assert max(gaps) <= longest, f"the loop stood still for {max(gaps):.3f} s"
