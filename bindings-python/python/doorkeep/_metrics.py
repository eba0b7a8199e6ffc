"""The shared part of the exporters: the series, and how they are read from `stats()`.

Knows no metrics library. Invariant: a label is the name of a rule, a reason, a mode, or the name that the application
gave to a limiter, and is never derived from a key. The Node package has the same series; `tests/cross/test_metrics.py`
compares what both expose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from doorkeep.errors import ConfigError

if TYPE_CHECKING:
    from doorkeep._native import _Stats


class Counting(Protocol):
    """An object with counters: any limiter, blocking or awaitable."""

    def stats(self) -> _Stats:
        """Return the counters."""


class Sample(NamedTuple):
    """One number and its labels."""

    labels: dict[str, str]
    value: int


class Measure(NamedTuple):
    """A number for each combination of its labels."""

    # Without the prefix `doorkeep` and the suffix `_total`, which depend on the library.
    name: str
    help: str
    # Whether it only increases.
    is_counter: bool
    # Reads its samples of one limiter.
    read: Callable[[_Stats], Iterable[Sample]]


def _allowed(stats: _Stats) -> Iterator[Sample]:
    return (Sample({"rule": rule}, value) for rule, value in stats["allowed"].items())


def _denied(stats: _Stats) -> Iterator[Sample]:
    for rule, reasons in stats["denied"].items():
        for reason, value in reasons.items():
            yield Sample({"rule": rule, "reason": reason}, value)


def _store_failed(stats: _Stats) -> Iterator[Sample]:
    return (Sample({"mode": mode}, value) for mode, value in stats["store_failed"].items())


MEASURES = (
    Measure("allowed", "Calls that were admitted, once for each of their rules.", True, _allowed),
    Measure("denied", "Calls that were denied, by the rule that denied and the reason.", True, _denied),
    Measure(
        "store_failed",
        "Calls for which the store could not be asked, by what was answered instead.",
        True,
        _store_failed,
    ),
    Measure(
        "evicted",
        "Live entries that were dropped from memory to make room.",
        True,
        lambda stats: [Sample({}, stats["evicted"])],
    ),
    Measure(
        "tracked_keys",
        "Entries that this process holds in memory.",
        False,
        lambda stats: [Sample({}, stats["tracked_keys"])],
    ),
)


class Sources:
    """The limiters that are exported together, each under a different name; one of them may have none."""

    def __init__(self) -> None:
        self._limiters: dict[str | None, Counting] = {}

    def add(self, limiter: Counting, name: str | None) -> None:
        """Add a limiter. Two limiters of one name would be one series with two values."""
        if not callable(getattr(limiter, "stats", None)):
            raise ConfigError("limiter must have stats")
        if name is not None and (not isinstance(name, str) or not name):
            raise ConfigError("name must not be empty")
        if self._limiters.setdefault(name, limiter) is not limiter:
            raise ConfigError("limiters that are exported together must differ in name")

    def samples(self, *measures: Measure) -> Iterator[tuple[Measure, Sample]]:
        """Read several measures at the same time."""
        for name, limiter in tuple(self._limiters.items()):
            named = {} if name is None else {"limiter": name}
            stats = limiter.stats()
            for measure in measures:
                for labels, value in measure.read(stats):
                    yield measure, Sample(named | labels, value)
