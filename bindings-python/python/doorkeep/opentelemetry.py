"""The counters of limiters for OpenTelemetry, observed when a reader collects.

Counts nothing itself. Invariant: no attribute is made of a key. Tested in `tests/python/test_opentelemetry.py`, and
beside the Node package in `tests/cross/test_metrics.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Meter, Observation, get_meter

from doorkeep._metrics import MEASURES, Counting, Measure, Sources

__all__ = ["instrument"]


def instrument(limiter: Counting, meter: Meter | None = None, *, name: str | None = None) -> None:
    """Export what a limiter counts.

    The counters ``doorkeep.allowed`` (by ``rule``), ``doorkeep.denied`` (by ``rule`` and ``reason``),
    ``doorkeep.store_failed`` (by ``mode``) and ``doorkeep.evicted``, and ``doorkeep.tracked_keys``, which rises and
    falls; each with ``limiter`` when it was given a name. Read from ``stats()`` at each collection, so that nothing is
    added to a call. An exporter to Prometheus gives them the names that `doorkeep.prometheus` has.

    Parameters
    ----------
    limiter
        Any limiter, blocking or awaitable. The meter keeps it.
    meter
        Where the instruments are made. Defaults to the meter ``doorkeep`` of the global provider.
    name
        The attribute ``limiter`` of what is observed. Required of all limiters of a meter but one.

    Raises
    ------
    ConfigError
        The meter has another limiter of this name, or another one without a name.
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
    # Once, since before a provider is set each call makes another one.
    return get_meter("doorkeep")


def _observe(measure: Measure, sources: Sources, meter: Meter) -> None:
    # What is held by several processes adds up, which a gauge would not say.
    create = meter.create_observable_counter if measure.is_counter else meter.create_observable_up_down_counter
    create(f"doorkeep.{measure.name}", callbacks=[_reading(measure, sources)], description=measure.help)


def _reading(measure: Measure, sources: Sources) -> Callable[[CallbackOptions], Iterator[Observation]]:
    def read(options: CallbackOptions) -> Iterator[Observation]:
        for _, (labels, value) in sources.samples(measure):
            yield Observation(value, labels)

    return read
