"""The counters in Prometheus, from a real scrape."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.parser import text_string_to_metric_families

from doorkeep import AttemptLimiter, FixedWindow, Limiter, ManualClock, RedisStore, Rule, StrikeRule, TokenBucket, aio
from doorkeep.errors import ConfigError
from doorkeep.prometheus import register

IP = Rule("login-ip", "20/1m")
ACCOUNT = StrikeRule("login-account", threshold=2, lockout_window="15m")
SECRET = "ann@example.com"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def busy() -> Limiter:
    """Return a limiter that admitted two calls, denied one as locked and one as limited."""
    limiter = Limiter(clock=ManualClock(1000))
    for _ in range(3):
        limiter.decide(IP.key(SECRET), ACCOUNT.key(SECRET))
    limiter.decide(IP.key(SECRET), cost=21)
    return limiter


@pytest.fixture
def scrape() -> Iterator[Callable[[CollectorRegistry], str]]:
    """Return a function that scrapes a registry over HTTP."""
    servers = []

    def get(registry: CollectorRegistry) -> str:
        server, thread = start_http_server(0, "127.0.0.1", registry)
        servers.append((server, thread))
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            return answer.read().decode()

    yield get
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


def samples(text: str) -> Samples:
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def sample(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def test_exposes_the_counters_of_a_limiter_as_counters_and_a_gauge(scrape: Any) -> None:
    registry = CollectorRegistry()
    register(busy(), registry)
    text = scrape(registry)
    assert samples(text) == {
        sample("doorkeep_allowed_total", rule="login-account"): 2,
        sample("doorkeep_allowed_total", rule="login-ip"): 2,
        sample("doorkeep_denied_total", rule="login-account", reason="locked"): 1,
        sample("doorkeep_denied_total", rule="login-ip", reason="limited"): 1,
        sample("doorkeep_evicted_total"): 0,
        sample("doorkeep_tracked_keys"): 2,
    }
    assert [line for line in text.splitlines() if line.startswith("# TYPE")] == [
        "# TYPE doorkeep_allowed_total counter",
        "# TYPE doorkeep_denied_total counter",
        "# TYPE doorkeep_store_failed_total counter",
        "# TYPE doorkeep_evicted_total counter",
        "# TYPE doorkeep_tracked_keys gauge",
    ]
    assert SECRET not in text


def test_reads_the_counters_at_each_scrape_and_never_adds_them_up(scrape: Any) -> None:
    registry = CollectorRegistry()
    limiter = busy()
    register(limiter, registry)
    scrape(registry)
    limiter.decide(IP.key("bob"))
    assert samples(scrape(registry))[sample("doorkeep_allowed_total", rule="login-ip")] == 3


def test_counts_the_calls_whose_store_failed(scrape: Any) -> None:
    registry = CollectorRegistry()
    limiter = Limiter(store=RedisStore("redis://127.0.0.1:1/0"), on_error="closed")
    register(limiter, registry)
    limiter.decide(IP.key(SECRET))
    exposed = samples(scrape(registry))
    assert exposed[sample("doorkeep_store_failed_total", mode="closed")] == 1
    assert exposed[sample("doorkeep_denied_total", rule="login-ip", reason="unavailable")] == 1


def test_limiters_of_one_registry_have_different_names(scrape: Any) -> None:
    registry = CollectorRegistry()
    register(busy(), registry)
    named = busy()
    for _ in range(2):
        register(named, registry, name="search")
    text = scrape(registry)
    assert text.count("# HELP doorkeep_allowed_total") == 1
    exposed = samples(text)
    assert exposed[sample("doorkeep_evicted_total")] == exposed[sample("doorkeep_evicted_total", limiter="search")] == 0
    assert exposed[sample("doorkeep_denied_total", limiter="search", rule="login-ip", reason="limited")] == 1
    for name in (None, "search"):
        with pytest.raises(ConfigError, match="must differ in name"):
            register(busy(), registry, name=name)
    register(busy(), CollectorRegistry())


def test_accepts_every_limiter_and_nothing_without_counters() -> None:
    registry = CollectorRegistry()
    limiters: list[Any] = [
        AttemptLimiter(5, "1m"),
        TokenBucket(),
        FixedWindow(5, "1m"),
        aio.Limiter(),
        aio.AttemptLimiter(5, "1m"),
    ]
    for index, limiter in enumerate(limiters):
        register(limiter, registry, name=str(index))
    [tracked] = [family for family in registry.collect() if family.name == "doorkeep_tracked_keys"]
    assert len(tracked.samples) == len(limiters)
    nothing: list[Any] = [None, object(), 5]
    for none in nothing:
        with pytest.raises(ConfigError):
            register(none, CollectorRegistry())
    names: list[Any] = ["", 5]
    for name in names:
        with pytest.raises(ConfigError):
            register(busy(), CollectorRegistry(), name=name)


def test_uses_the_global_registry_by_default() -> None:
    register(busy(), name="global")
    assert REGISTRY.get_sample_value("doorkeep_tracked_keys", {"limiter": "global"}) == 2
