"""The counters of limiters for prometheus-client, read at each scrape.

Counts nothing itself. Invariant: no series has a key as a label. Tested in `tests/python/test_prometheus.py`, and
together with the Node package in `tests/cross/test_metrics.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric

from doorkeep._metrics import MEASURES, Counting, Measure, Sources

__all__ = ["register"]


def register(limiter: Counting, registry: CollectorRegistry = REGISTRY, *, name: str | None = None) -> None:
    """Export the counters of a limiter.

    ``doorkeep_allowed_total{rule}``, ``doorkeep_denied_total{rule,reason}``, ``doorkeep_store_failed_total{mode}``,
    ``doorkeep_evicted_total`` and ``doorkeep_tracked_keys``, each with ``limiter`` if it has a name. They are read from
    ``stats()`` at each scrape and add nothing to a call. Counters are per process: scrape each process, since the
    multiprocess mode of prometheus-client ignores collectors.

    Parameters
    ----------
    limiter
        Any limiter, blocking or awaitable. The registry keeps a reference to it.
    registry
        The registry to use.
    name
        The label ``limiter`` of its series. Only one limiter of a registry may have no name.

    Raises
    ------
    ConfigError
        The registry has another limiter of this name, or another limiter without a name.
    """
    collector = _COLLECTORS.get(registry)
    if collector is None:
        collector = _Collector()
        registry.register(collector)
        _COLLECTORS[registry] = collector
    collector.sources.add(limiter, name)


class _Collector:
    """One collector for all limiters of a registry: a scrape may contain each metric only once."""

    def __init__(self) -> None:
        self.sources = Sources()

    def describe(self) -> list[Metric]:
        return [_family(measure) for measure in MEASURES]

    def collect(self) -> Iterator[Metric]:
        families = {measure: _family(measure) for measure in MEASURES}
        for measure, (labels, value) in self.sources.samples(*MEASURES):
            family = families[measure]
            family.add_sample(f"{family.name}_total" if measure.is_counter else family.name, labels, value)
        yield from families.values()


_COLLECTORS: WeakKeyDictionary[CollectorRegistry, _Collector] = WeakKeyDictionary()


def _family(measure: Measure) -> Metric:
    return Metric(f"doorkeep_{measure.name}", measure.help, "counter" if measure.is_counter else "gauge")
