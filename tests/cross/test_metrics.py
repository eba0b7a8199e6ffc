"""Both languages expose the same counters of the same calls, under the same names, labels and descriptions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from doorkeep import Limiter, ManualClock, RedisStore, Rule, StrikeRule
from doorkeep.opentelemetry import instrument
from doorkeep.prometheus import register

IP = Rule("login-ip", "20/1m")
ACCOUNT = StrikeRule("login-account", threshold=2, lockout_window="15m")


def in_node() -> Any:
    script = Path(__file__).with_name("metrics.mjs")
    done = subprocess.run(["node", str(script)], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def in_python() -> dict[str, Any]:
    local = Limiter(clock=ManualClock(1000), capacity=2)
    for _ in range(3):
        local.decide(IP.key("ann"), ACCOUNT.key("ann"))
    for name in ("bob", "carl"):
        local.decide(IP.key(name))
    local.decide(IP.key("carl"), cost=21)
    closed = Limiter(store=RedisStore("redis://127.0.0.1:1/0"), on_error="closed")
    closed.decide(IP.key("ann"))

    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("login")
    registry = CollectorRegistry()
    register(local, registry)
    instrument(local, meter)
    register(closed, registry, name="closed")
    instrument(closed, meter, name="closed")

    data = reader.get_metrics_data()
    assert data is not None
    found: list[Any] = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
    observed = [
        {
            "name": metric.name,
            "description": metric.description,
            "isMonotonic": metric.data.is_monotonic,
            "attributes": dict(point.attributes),
            "value": point.value,
        }
        for metric in found
        for point in metric.data.data_points
    ]
    return {"exposed": generate_latest(registry).decode(), "observed": observed}


def families(text: str) -> dict[str, Any]:
    return {
        family.name: (
            family.type,
            family.documentation,
            sorted((sample.name, sorted(sample.labels.items()), sample.value) for sample in family.samples),
        )
        for family in text_string_to_metric_families(text)
    }


def test_both_languages_expose_the_same_counters_of_the_same_calls() -> None:
    python, node = in_python(), in_node()
    exposed = families(python["exposed"])
    assert exposed == families(node["exposed"])
    assert list(exposed) == [
        "doorkeep_allowed",
        "doorkeep_denied",
        "doorkeep_store_failed",
        "doorkeep_evicted",
        "doorkeep_tracked_keys",
    ]
    # Each has a sample, so that none is equal for want of any.
    assert all(samples for _, _, samples in exposed.values())
    assert sorted(python["observed"], key=str) == sorted(node["observed"], key=str)
    assert {metric["name"].replace(".", "_") for metric in python["observed"]} == set(exposed)
