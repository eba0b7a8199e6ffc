"""A store that answers: how it is made, what it stores, and that all limiters share one budget."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from doorkeep import (
    AttemptLimiter,
    ConfigError,
    FixedWindow,
    Limiter,
    ManualClock,
    Outcome,
    RedisStore,
    Rule,
    StrikeRule,
    TokenBucket,
    aio,
)
from support.servers import Server

OpenStore = Callable[..., RedisStore]
RULE = Rule("login-ip", "5/1h")
STRIKES = StrikeRule("login-account", threshold=5, lockout_window="1h")
NOBODY = "redis://127.0.0.1:1"
CALLS = 500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefix": ""}, "prefix must match"),
        ({"prefix": "a b"}, "prefix must match"),
        ({"prefix": 5}, "prefix must match"),
        ({"timeout": 0}, "timeout must be from 1ms to 60s"),
        ({"timeout": "61s"}, "timeout must be from 1ms to 60s"),
        ({"timeout": "soon"}, "timeout must be from 1ms to 60s"),
        ({"timeout": True}, "timeout must be from 1ms to 60s"),
        ({"on_error": "shut"}, "on error must be local, open or closed"),
        ({"clock": "mine"}, "clock must be server or client"),
        ({"clock": print}, "clock must be server or client"),
    ],
)
def test_a_bad_option_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RedisStore(NOBODY, **options)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1", "redis://ann:hunter2@", "redis://:hunter2@127.0.0.1:port/0"])
def test_a_bad_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        RedisStore(url)
    assert "hunter2" not in str(refused.value)


def test_a_url_of_another_type_and_an_unknown_option_are_type_errors() -> None:
    make: Any = RedisStore
    for arguments, options in (((5,), {}), ((None,), {}), ((), {}), ((NOBODY, "shop"), {}), ((NOBODY,), {"pre": "x"})):
        with pytest.raises(TypeError):
            make(*arguments, **options)


def test_a_dead_server_does_not_fail_the_constructor_and_nothing_shows_the_password() -> None:
    store = RedisStore("redis://ann:hunter2@127.0.0.1:1/0", prefix="shop")
    assert repr(store) == "<RedisStore prefix=shop>"
    store.close()
    store.close()


def test_a_limiter_of_strings_over_a_store_needs_a_name() -> None:
    store = RedisStore(NOBODY)
    makers: list[Callable[[], object]] = [
        lambda: AttemptLimiter(5, 60, store=store),
        lambda: TokenBucket(store=store),
        lambda: FixedWindow(5, 60, store=store),
        lambda: aio.AttemptLimiter(5, 60, store=store),
    ]
    for make in makers:
        with pytest.raises(ConfigError, match="^name is required with a store$"):
            make()
    with pytest.raises(ConfigError, match="rule name must match"):
        AttemptLimiter(5, 60, store=store, name="Login")
    with pytest.raises(ConfigError, match="on error must be local, open or closed"):
        Limiter(store=store, on_error="shut")  # type: ignore[arg-type]


def test_a_limiter_from_a_mapping_makes_its_store(shared: Server) -> None:
    config = {
        "redis": shared.url,
        "prefix": "from-config",
        "on_error": "closed",
        "timeout": "2s",
        "capacity": 1000,
        "rules": {"login-ip": "2/1h"},
    }
    first, second = Limiter.from_config(config), Limiter.from_config(config)
    key = first.rules["login-ip"].key("ann")
    first.reset(key)
    assert [bool(limiter.decide(key)) for limiter in (first, second, first)] == [True, True, False]
    assert isinstance(first.store, RedisStore)
    first.store.close()
    assert first.decide(key).reason == "unavailable"
    with pytest.raises(ConfigError, match="redis url must read"):
        Limiter.from_config({"redis": "127.0.0.1"})
    for options in ({"prefix": ""}, {"timeout": "soon"}, {"on_error": "shut"}):
        with pytest.raises(ConfigError):
            Limiter.from_config({"redis": shared.url} | options)
    assert Limiter.from_config({"redis": None}).store is None


def test_one_store_serves_blocking_and_awaitable_limiters_of_all_kinds(shared: Server, open_store: OpenStore) -> None:
    store = open_store(shared.url)

    async def main() -> None:
        assert (await aio.Limiter(store=store).decide(RULE.key("ann"))).remaining == 4
        assert await aio.AttemptLimiter(2, "1h", name="strikes", store=store).attempt("ann") is Outcome.ALLOWED
        assert await aio.TokenBucket(3, "1h", name="bucket", store=store).allow_n("ann", 2)
        assert await aio.FixedWindow(2, "1h", name="window", store=store).consume("ann")

    asyncio.run(main())
    limiter = Limiter(store=store)
    assert limiter.store is store
    assert limiter.decide(RULE.key("ann")).remaining == 3
    strikes = AttemptLimiter(2, "1h", name="strikes", store=store)
    assert strikes.attempt("ann") is Outcome.ALLOWED_LAST_ATTEMPT
    assert strikes.locked("ann")
    wait = strikes.retry_after("ann")
    assert wait is not None
    assert timedelta(minutes=59) < wait <= timedelta(hours=1)
    bucket = TokenBucket(3, "1h", name="bucket", store=store)
    assert [bucket.allow("ann"), bucket.allow("ann")] == [True, False]
    window = FixedWindow(2, "1h", name="window", store=store)
    assert [bool(window.consume("ann")) for _ in range(2)] == [True, False]
    for made in (strikes, bucket, window):
        assert made.reset("ann") is True
        assert len(made) == 0
    assert limiter.stats()["allowed"] == {"login-ip": 1}
    assert limiter.stats()["store_failed"] == {}


def test_an_attempt_in_a_block_is_settled_in_the_store(shared: Server, open_store: OpenStore) -> None:
    limiter = Limiter(store=open_store(shared.url))
    with limiter.attempt(RULE.key("ann"), STRIKES.key("ann")) as attempt:
        assert attempt.success(forgive=[STRIKES])
    assert limiter.peek(STRIKES.key("ann")).remaining == 5
    assert limiter.peek(RULE.key("ann")).remaining == 4
    with pytest.raises(ZeroDivisionError), limiter.attempt(RULE.key("ann"), STRIKES.key("ann")):
        raise ZeroDivisionError
    assert limiter.peek(STRIKES.key("ann")).remaining == 4
    assert limiter.peek(RULE.key("ann")).remaining == 3
    address = RULE.ip_key("192.0.2.1")
    named = limiter.attempt(RULE.key("ann"), STRIKES.key("ann"), address, give_back_on=KeyError)
    with pytest.raises(KeyError), named:
        raise KeyError
    assert limiter.peek(STRIKES.key("ann")).remaining == 4
    assert limiter.peek(RULE.key("ann")).remaining == 3
    assert limiter.peek(address).remaining == 4
    attempt = limiter.attempt(RULE.key("ann"))
    assert attempt.failure()
    assert not attempt.cancel()
    assert limiter.peek(RULE.key("ann")).remaining == 2


def test_every_key_has_a_prefix_a_bounded_name_and_a_time_to_live(shared: Server, open_store: OpenStore) -> None:
    store = open_store(shared.url, prefix="ttl")
    limiter = Limiter(store=store)
    limiter.decide(RULE.key("ann"), STRIKES.key("x" * 1_000_000))
    limiter.decide(RULE.key("*"), now=5)
    AttemptLimiter(2, "1h", name="s", store=store).attempt("ann@example.com")
    FixedWindow(2, "1h", name="w", store=store).consume("ann@example.com")
    found = shared.keys("ttl:*")
    assert len(found) == 5
    for key in found:
        assert "ann" not in key
        assert len(key) < 80
        assert 0 < shared.ask("PTTL", key) <= 3_600_002


def test_the_time_is_the_servers_unless_a_clock_or_now_is_given(shared: Server, open_store: OpenStore) -> None:
    clock = ManualClock(1_000)
    rule = Rule("clock", "1/1m")
    limiter = Limiter(store=open_store(shared.url), clock=clock)
    assert limiter.decide(rule.key("a"))
    assert not limiter.decide(rule.key("a"))
    clock.advance("1m")
    assert limiter.decide(rule.key("a"))
    assert limiter.decide(rule.key("a"), now=1_120)
    # A clock that is wrong by years changes nothing if it is not used.
    bare = Limiter(store=open_store(shared.url))
    assert bare.decide(rule.key("a"), now=5)
    healed = bare.decide(rule.key("a"))
    assert healed
    assert healed.reset_after <= timedelta(minutes=1)


def test_two_replicas_with_different_clocks_follow_the_servers_clock(shared: Server, open_store: OpenStore) -> None:
    rule = Rule("ten", "10/60s")
    replicas = [Limiter(store=open_store(shared.url, prefix="replicas")) for _ in range(2)]
    replicas[0].reset(rule.key("ann"))
    admitted = sum(bool(replicas[n % 2].decide(rule.key("ann"))) for n in range(1000))
    assert admitted == 10


def test_a_reset_of_a_pattern_touches_only_the_literal_key(shared: Server, open_store: OpenStore) -> None:
    limiter = Limiter(store=open_store(shared.url))
    strikes = AttemptLimiter(1, "1h", name="patterns", store=limiter.store)
    for name in ("ali", "alice", "a", "b"):
        assert strikes.attempt(name)
        assert limiter.decide(RULE.key(name), cost=5)
    for pattern in ("*", "ali*", "[ab]*", "a?", "\\*"):
        assert strikes.reset(pattern) is True
        assert limiter.reset(RULE.key(pattern)) is True
    for name in ("ali", "alice", "a", "b"):
        assert strikes.locked(name)
        assert not limiter.decide(RULE.key(name))


def test_500_reserves_from_threads_admit_exactly_the_threshold(shared: Server, open_store: OpenStore) -> None:
    strikes = AttemptLimiter(5, "1h", name="threads", store=open_store(shared.url))
    start = threading.Barrier(20)

    def some() -> list[Outcome]:
        start.wait()
        return [strikes.reserve("ann")[0] for _ in range(CALLS // 20)]

    with ThreadPoolExecutor(20) as pool:
        found = Counter(outcome for some in [pool.submit(some) for _ in range(20)] for outcome in some.result())
    assert found == {Outcome.ALLOWED: 4, Outcome.ALLOWED_LAST_ATTEMPT: 1, Outcome.DENIED: 495}


def test_500_gathered_reserves_admit_exactly_the_threshold(shared: Server, open_store: OpenStore) -> None:
    strikes = aio.AttemptLimiter(5, "1h", name="gathered", store=open_store(shared.url))

    async def main() -> Counter[Outcome]:
        reserved = await asyncio.gather(*[strikes.reserve("ann") for _ in range(CALLS)])
        for outcome, reservation in reserved:
            assert reservation.decision.outcome is outcome
        return Counter(outcome for outcome, _ in reserved)

    assert asyncio.run(main()) == {Outcome.ALLOWED: 4, Outcome.ALLOWED_LAST_ATTEMPT: 1, Outcome.DENIED: 495}


def test_500_gathered_calls_on_two_keys_admit_what_both_allow(shared: Server, open_store: OpenStore) -> None:
    limiter, wide = aio.Limiter(store=open_store(shared.url)), Rule("wide", "50/1h")

    async def main() -> None:
        calls = [limiter.decide(RULE.key("ann"), STRIKES.key("ann"), wide.key("ann")) for _ in range(CALLS)]
        assert sum(map(bool, await asyncio.gather(*calls))) == 5
        assert (await limiter.peek(wide.key("ann"))).remaining == 45

    asyncio.run(main())


WITHOUT_A_SERVER = """
import asyncio
from doorkeep import Limiter, RedisStore, Rule, aio
store = RedisStore("redis://ann:hunter2@127.0.0.1:1/0")
rule = Rule("login-ip", "2/1h")
blocking = Limiter(store=store)
print([bool(blocking.decide(rule.key("ann"))) for _ in range(3)])
async def main():
    limiter = aio.Limiter(store=store)
    print([bool(await limiter.decide(rule.key("ann"))) for _ in range(3)])
    await store.aclose()
asyncio.run(main())
store.close()
"""


def test_a_process_that_starts_without_a_server_works_and_exits_cleanly() -> None:
    command = [sys.executable, "-X", "dev", "-c", WITHOUT_A_SERVER]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "[True, True, False]\n" * 2
    # A program without logging configuration shows warnings on stderr; its exit shows nothing else.
    assert done.stderr.startswith("store down: 127.0.0.1:1 does not answer")
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr
