"""Replays the shared traces over real servers, through the blocking and the awaitable limiters.

Skipped: cases that only bounded tables can answer, with small capacities, sizes and counters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import doorkeep
import test_vectors
import vectors
from doorkeep import RedisStore, aio
from support.servers import Server

# Below it a table may evict within a case.
ROOMY = 50
CAPACITIES = ("capacity", "max_tracked_keys", "max_keys")
CASES = [
    pytest.param(case | {"steps": [step for step in case["steps"] if step["op"] not in ("size", "stats")]}, id=name)
    for file in vectors.TRACES
    for case in vectors.cases(file)
    if max(case["limiter"].get(capacity, 0) for capacity in CAPACITIES) >= ROOMY
    for name in [f"{file}: {case['name']}"]
]


class Over:
    """The limiters of a package, over a store."""

    def __init__(self, package: Any, store: RedisStore) -> None:
        self.package, self.store = package, store

    def __getattr__(self, name: str) -> Callable[..., Any]:
        named = {"AttemptLimiter": "attempt-limiter", "TokenBucket": "token-bucket", "FixedWindow": "fixed-window"}
        options: dict[str, Any] = {"name": named[name]} if name in named else {}
        return lambda *args, **kwargs: getattr(self.package, name)(*args, **kwargs, **options, store=self.store)


def test_the_corpus_was_found() -> None:
    assert len(CASES) > 200


@pytest.mark.parametrize("case", CASES)
def test_blocking_limiters_answer_as_the_vectors_say(
    case: dict[str, Any], shared: Server, open_store: Callable[..., RedisStore]
) -> None:
    run = test_vectors.replay(case, Over(doorkeep, open_store(shared.url, on_error="closed")))
    # Nothing may suspend: a blocking call waits where it is.
    with pytest.raises(StopIteration):
        run.send(None)


@pytest.mark.parametrize("case", CASES)
def test_awaitable_limiters_answer_as_the_vectors_say(
    case: dict[str, Any], shared: Server, open_store: Callable[..., RedisStore]
) -> None:
    asyncio.run(test_vectors.replay(case, Over(aio, open_store(shared.url, on_error="closed"))))
