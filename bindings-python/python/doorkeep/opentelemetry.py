"""The counters of limiters for OpenTelemetry, observed when a reader collects.

Counts nothing itself. Invariant: no attribute is derived from a key. Tested in `tests/python/test_opentelemetry.py`,
and together with the Node package in `tests/cross/test_metrics.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter

from doorkeep._metrics import MEASURES, Counting, Measure, Sources

__all__ = ["instrument"]


def instrument(limiter: Counting, meter: Meter | None = None, *, name: str | None = None) -> None:
    """Export the counters of a limiter.

    The counters ``doorkeep.allowed`` (by ``rule``), ``doorkeep.denied`` (by ``rule`` and ``reason``),
    ``doorkeep.store_failed`` (by ``mode``) and ``doorkeep.evicted``, and ``doorkeep.tracked_keys``, which rises and
    falls; each with ``limiter`` if it has a name. They are read from ``stats()`` at each collection and add nothing to
    a call. An exporter to Prometheus uses the same names as `doorkeep.prometheus`.

    Parameters
    ----------
    limiter
        Any limiter, blocking or awaitable. The meter keeps a reference to it.
    meter
        The meter that makes the instruments. Defaults to the meter ``doorkeep`` of the global provider.
    name
        The attribute ``limiter`` of its observations. Only one limiter of a meter may have no name.

    Raises
    ------
    ConfigError
        The meter has another limiter of this name, or another limiter without a name.
    """
    meter = _default_meter() if meter is None else meter
    sources = _SOURCES.get(meter)
    if sources is None:
        sources = _SOURCES[meter] = Sources()
        for measure in MEASURES:
            _observe(measure, sources, meter)
    sources.add(limiter, name)


_SOURCES: WeakKeyDictionary[Meter, Sources] = WeakKeyDictionary()


@cache
def _default_meter() -> Meter:
    # Cached, since each call makes another meter until a provider is set.
    return get_meter("doorkeep")


def _observe(measure: Measure, sources: Sources, meter: Meter) -> None:
    # The numbers of several processes add up, which a gauge would not express.
    create = meter.create_observable_counter if measure.is_counter else meter.create_observable_up_down_counter
    create(f"doorkeep.{measure.name}", callbacks=[_reading(measure, sources)], description=measure.help)


def _reading(measure: Measure, sources: Sources) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def read(options: CallbackOptions) -> Iterator[Observation]:
        for _, (labels, value) in sources.samples(measure):
            yield Observation(value, labels)

    return read
