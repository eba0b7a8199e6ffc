"""Arguments of any type and size: an error that names the bound, never a panic, and nothing counted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorkeep import (
    AttemptLimiter,
    ConfigError,
    DoorkeepError,
    FixedWindow,
    Limiter,
    ManualClock,
    Rate,
    Rates,
    Rule,
    StrikeRule,
    TokenBucket,
    aio,
    network,
)

RULE = Rule("login", "5/1h")
KEY = RULE.key("a")
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**26, 2**31, 2**48, 2**52, 2**63, 2**64, 2**127, 2**128, 10**40, -(2**63), -(2**127) - 1]),
    st.floats(),
    st.decimals(),
    st.text(st.characters(exclude_categories=())),
    st.sampled_from(["5/1m", "15m", "1h30m", "\ud800", "ann", "192.0.2.1", "local", "open", "9" * 400]),
    st.binary(),
    st.timedeltas(),
    st.sampled_from([timedelta.max, timedelta.min, KEY, RULE, Rate(5, 60), object(), int, ValueError, print]),
    st.lists(st.one_of(st.integers(), st.text(), st.just(KEY), st.just(Rate(5, 60))), max_size=3),
    st.dictionaries(st.text(), st.integers(), max_size=2),
)
# All errors that a bad argument may raise. A PanicException is a BaseException and not among them.
REFUSALS = (DoorkeepError, TypeError)

strikes = AttemptLimiter(threshold=5, lockout_window="1h")
limiter = Limiter()
bucket = TokenBucket()
window = FixedWindow(limit=5, window="1h")
clock = ManualClock()
attempt = limiter.attempt(KEY)
CALLS: dict[str, Callable[..., Any]] = {
    "AttemptLimiter": lambda a, b, c: AttemptLimiter(a, b, c),
    "AttemptLimiter options": lambda a, b, c: AttemptLimiter(5, 60, name=a, store=b, on_error=c),
    "Limiter": lambda a, b, c: Limiter(capacity=a, store=b, on_error=c),
    "Limiter clock": lambda a, b, c: Limiter(clock=lambda: a).decide(KEY, cost=b),
    "Limiter.from_config": lambda a, b, c: Limiter.from_config(a, clock=b),
    "Limiter.from_config entries": lambda a, b, c: Limiter.from_config({"capacity": a, "rules": b, "on_error": c}),
    "Limiter.from_config rules": lambda a, b, c: Limiter.from_config(
        {"rules": {"login": {"threshold": a, "lockout_window": b, "by": c}}}
    ),
    "TokenBucket": lambda a, b, c: TokenBucket(a, b, c),
    "FixedWindow": lambda a, b, c: FixedWindow(a, b, c),
    "Rate": lambda a, b, c: Rate(a, b),
    "Rates": lambda a, b, c: Rates(a),
    "Rates.max_in": lambda a, b, c: Rates("5/1m").max_in(a),
    "Rule": lambda a, b, c: Rule(a, b),
    "Rule options": lambda a, b, c: Rule("login", "5/1m", ipv6_prefix=a, secret=b, by=c),
    "StrikeRule": lambda a, b, c: StrikeRule("login", a, b, by=c),
    "Rule.key": lambda a, b, c: RULE.key(a, b, c),
    "Rule.ip_key": lambda a, b, c: RULE.ip_key(a),
    "network": lambda a, b, c: network(a, b),
    "AttemptLimiter.attempt": lambda a, b, c: strikes.attempt(a, b),
    "AttemptLimiter.decide": lambda a, b, c: strikes.decide(a, now=b),
    "AttemptLimiter.reserve": lambda a, b, c: strikes.reserve(a, b),
    "AttemptLimiter.cancel": lambda a, b, c: strikes.cancel(a, b),
    "AttemptLimiter.locked": lambda a, b, c: strikes.locked(a, b),
    "AttemptLimiter.retry_after": lambda a, b, c: strikes.retry_after(a, b),
    "AttemptLimiter.refund": lambda a, b, c: strikes.refund(a, b),
    "AttemptLimiter.reset": lambda a, b, c: strikes.reset(a),
    "Limiter.decide": lambda a, b, c: limiter.decide(a, cost=b, now=c),
    "Limiter.decide key": lambda a, b, c: limiter.decide(KEY, cost=b, now=c),
    "Limiter.peek": lambda a, b, c: limiter.peek(KEY, a, cost=b, now=c),
    "Limiter.reset": lambda a, b, c: limiter.reset(a, b),
    "Limiter.attempt": lambda a, b, c: limiter.attempt(KEY, cost=a, now=b, give_back_on=c),
    "Attempt.success": lambda a, b, c: attempt.success(forgive=a, give_back=b, now=c),
    "Attempt.extend": lambda a, b, c: attempt.extend(a, cost=b, now=c),
    "Attempt.cancel": lambda a, b, c: attempt.cancel(a),
    "Attempt.holds": lambda a, b, c: attempt.holds(a),
    "TokenBucket.allow": lambda a, b, c: bucket.allow(a, b),
    "TokenBucket.allow_n": lambda a, b, c: bucket.allow_n(a, b, c),
    "TokenBucket.reset": lambda a, b, c: bucket.reset(a),
    "FixedWindow.consume": lambda a, b, c: window.consume(a, b),
    "ManualClock": lambda a, b, c: ManualClock(a),
    "ManualClock.advance": lambda a, b, c: clock.advance(a),
    "ManualClock.set": lambda a, b, c: clock.set(a),
    "aio.Limiter": lambda a, b, c: aio.Limiter(capacity=a, on_error=b, clock=c),
    "aio.Limiter.attempt": lambda a, b, c: aio.Limiter().attempt(a, cost=b, give_back_on=c).close(),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_causes_a_panic(name: str) -> None:
    @given(ANYTHING, ANYTHING, ANYTHING)
    def call(a: Any, b: Any, c: Any) -> None:
        try:
            CALLS[name](a, b, c)
        except REFUSALS as error:
            assert str(error)
        except ZeroDivisionError:
            pytest.fail("not raised here")

    call()


@pytest.mark.parametrize("cost", [-1, 1.5, float("nan"), float("inf"), "2", True, 2**32, Decimal(1), [1]])
def test_a_bad_cost_is_refused_and_nothing_counted(cost: Any) -> None:
    limiter = Limiter()
    for call in (limiter.decide, limiter.peek, limiter.attempt):
        with pytest.raises(ConfigError, match="^cost must be a whole number from 0 to 4294967295, value="):
            call(KEY, cost=cost)
    assert len(limiter) == 0


@pytest.mark.parametrize("now", [-1, float("nan"), float("inf"), 2**53, 2**200, "5", True, timedelta(1)])
def test_a_bad_now_is_refused_and_nothing_counted(now: Any) -> None:
    limiter, strikes = Limiter(), AttemptLimiter(threshold=5, lockout_window=60)
    for call in (lambda: limiter.decide(KEY, now=now), lambda: strikes.attempt("ann", now)):
        with pytest.raises(ConfigError, match="^now must be from 0 to 4503599627370496 microseconds, value="):
            call()
    assert len(limiter) == len(strikes) == 0


def test_a_whole_float_is_a_whole_number() -> None:
    strikes: Any = AttemptLimiter
    assert strikes(threshold=5.0, lockout_window=60).decide("a").remaining == 4


def test_a_duration_may_be_a_timedelta_seconds_or_a_string() -> None:
    for written in (timedelta(minutes=15), 900, 900.0, "15m", "900s", "900000ms"):
        assert FixedWindow(limit=1, window=written).window == timedelta(minutes=15)
    assert FixedWindow(limit=1, window=1.001).window == timedelta(microseconds=1_001_000)
    assert FixedWindow(limit=1, window=timedelta(microseconds=2**48)).window == timedelta(microseconds=2**48)


def test_a_missing_option_is_refused_by_name() -> None:
    makers: list[Callable[[], object]] = [
        lambda: AttemptLimiter(5),  # type: ignore[call-arg]
        lambda: AttemptLimiter(lockout_window=60),  # type: ignore[call-arg]
    ]
    for make in makers:
        with pytest.raises((ConfigError, TypeError), match=r"lockout.window|threshold"):
            make()


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="lockout"):
        AttemptLimiter(5, 60, lockout="15m")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="^unknown option, option=`capacityy`$"):
        Limiter.from_config({"capacityy": 5})
    with pytest.raises(ConfigError, match="^unknown option, option=`rate`$"):
        Limiter.from_config({"rules": {"login": {"rate": "5/1m"}}})
    with pytest.raises(ConfigError, match="^unknown option, option=`threshold`$"):
        Limiter.from_config({"rules": {"login": {"rates": "5/1m", "threshold": 5}}})


def test_an_invalid_store_is_refused() -> None:
    makers: list[Callable[..., Any]] = [
        lambda: Limiter(store="redis://127.0.0.1"),  # type: ignore[arg-type]
        lambda: AttemptLimiter(5, 60, store=object()),  # type: ignore[arg-type]
        lambda: TokenBucket(store=object()),  # type: ignore[arg-type]
        lambda: FixedWindow(5, 60, store=object()),  # type: ignore[arg-type]
    ]
    for make in makers:
        with pytest.raises(ConfigError):
            make()


def test_a_key_that_was_not_made_by_a_rule_is_a_type_error() -> None:
    for keys in (("ann",), (KEY, "ann"), (KEY, None), (None, KEY), ([KEY],)):
        with pytest.raises(TypeError, match="a call takes keys made by a rule"):
            Limiter().decide(*keys)
    with pytest.raises(ConfigError, match="^a call takes 1 to 16 keys, keys=0$"):
        Limiter().decide()
    with pytest.raises(ConfigError, match="^a call takes 1 to 16 keys, keys=17$"):
        Limiter().decide(*[RULE.key(str(n)) for n in range(17)])


def test_a_limiter_from_a_mapping_has_its_rules_by_name() -> None:
    config = {
        "prefix": "shop",
        "timeout": "200ms",
        "on_error": "closed",
        "capacity": 10,
        "rules": {
            "login-ip": "20/1m,200/1h",
            "login-account": {"rates": "50/1h", "by": ["account"]},
            "login-account-ip": {"threshold": 5, "lockout_window": "15m", "by": ["account", "address"]},
        },
    }
    for made in (Limiter.from_config(config), aio.Limiter.from_config(config)):
        assert list(made.rules) == ["login-ip", "login-account", "login-account-ip"]
        assert made.rules["login-ip"] == Rule("login-ip", "20/1m,200/1h")
        assert made.rules["login-account"].by == ("account",)
        assert isinstance(made.rules["login-account-ip"], StrikeRule)
        with pytest.raises(TypeError):
            made.rules["x"] = RULE  # type: ignore[index]


def test_an_empty_limiter_is_true() -> None:
    for made in (Limiter(), AttemptLimiter(5, 60), TokenBucket(), FixedWindow(5, 60), aio.Limiter()):
        assert len(made) == 0
        assert bool(made) is True
