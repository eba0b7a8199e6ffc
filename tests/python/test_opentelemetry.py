"""The counters in OpenTelemetry, from a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Sum

from doorkeep import Limiter, ManualClock, Rule, StrikeRule
from doorkeep.errors import ConfigError
from doorkeep.opentelemetry import instrument

IP = Rule("login-ip", "20/1m")
ACCOUNT = StrikeRule("login-account", threshold=2, lockout_window="15m")
SECRET = "ann@example.com"


def busy() -> Limiter:
    """Return a limiter that admitted two calls, denied one as locked and one as limited."""
    limiter = Limiter(clock=ManualClock(1000))
    for _ in range(3):
        limiter.decide(IP.key(SECRET), ACCOUNT.key(SECRET))
    limiter.decide(IP.key(SECRET), cost=21)
    return limiter


class Reading:
    """A provider and the observations of its reader."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader])
        self.meter = self.provider.get_meter("login")

    def metrics(self) -> list[Any]:
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        return [metric for r in data.resource_metrics for s in r.scope_metrics for metric in s.metrics]

    def points(self) -> list[tuple[str, dict[str, Any], Any]]:
        found = [(m.name, dict(p.attributes), p.value) for m in self.metrics() for p in m.data.data_points]
        return sorted(found, key=str)


@pytest.fixture
def reading() -> Iterator[Reading]:
    """Return a provider with a reader."""
    made = Reading()
    yield made
    made.provider.shutdown()


def test_observes_the_counters_of_a_limiter_as_sums_one_of_which_may_fall(reading: Reading) -> None:
    instrument(busy(), reading.meter)
    for _ in range(2):
        assert reading.points() == [
            ("doorkeep.allowed", {"rule": "login-account"}, 2),
            ("doorkeep.allowed", {"rule": "login-ip"}, 2),
            ("doorkeep.denied", {"rule": "login-account", "reason": "locked"}, 1),
            ("doorkeep.denied", {"rule": "login-ip", "reason": "limited"}, 1),
            ("doorkeep.evicted", {}, 0),
            ("doorkeep.tracked_keys", {}, 2),
        ]
    found = reading.metrics()
    assert all(isinstance(metric.data, Sum) for metric in found)
    assert [metric.name for metric in found if not metric.data.is_monotonic] == ["doorkeep.tracked_keys"]


def test_reads_the_counters_at_each_collection(reading: Reading) -> None:
    limiter = busy()
    instrument(limiter, reading.meter)
    reading.points()
    limiter.decide(IP.key("bob"))
    assert ("doorkeep.allowed", {"rule": "login-ip"}, 3) in reading.points()


def test_limiters_of_one_meter_have_different_names(reading: Reading) -> None:
    instrument(busy(), reading.meter)
    named = busy()
    for _ in range(2):
        instrument(named, reading.meter, name="search")
    evicted = [point for point in reading.points() if point[0] == "doorkeep.evicted"]
    assert evicted == [("doorkeep.evicted", {"limiter": "search"}, 0), ("doorkeep.evicted", {}, 0)]
    for name in (None, "search"):
        with pytest.raises(ConfigError, match="must differ in name"):
            instrument(busy(), reading.meter, name=name)


def test_the_default_meter_is_one_and_is_observed_once_a_provider_is_set() -> None:
    instrument(busy(), name="first")
    with pytest.raises(ConfigError):
        instrument(busy(), name="first")
    reader = InMemoryMetricReader()
    # The provider of a process can be set only once; no other test sets it.
    metrics.set_meter_provider(MeterProvider([reader]))
    data = reader.get_metrics_data()
    assert data is not None
    [scope] = data.resource_metrics[0].scope_metrics
    assert scope.scope.name == "doorkeep"
    assert len(scope.metrics) == 4
