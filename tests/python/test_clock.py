"""The clock of a limiter: when it is read, and the one that tests move by hand."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from doorkeep import AttemptLimiter, ConfigError, FixedWindow, Limiter, ManualClock, Outcome, Rule, TokenBucket, aio

RULE = Rule("login", "1/1m")


def test_a_clock_is_read_once_per_call_and_not_at_all_when_now_is_given() -> None:
    read: list[float] = []

    def clock() -> float:
        read.append(0.0)
        return 5.0

    limiter = Limiter(clock=clock)
    limiter.decide(RULE.key("a"), RULE.key("b"), now=4)
    assert read == []
    limiter.decide(RULE.key("a"), RULE.key("b"))
    assert len(read) == 1
    AttemptLimiter(1, 60, clock=clock).attempt("a")
    TokenBucket(clock=clock).allow("a")
    FixedWindow(1, 60, clock=clock).consume("a")
    assert len(read) == 4


def test_an_error_of_a_clock_reaches_the_caller_and_nothing_is_counted() -> None:
    def clock() -> float:
        raise ZeroDivisionError

    limiter = Limiter(clock=clock)
    with pytest.raises(ZeroDivisionError):
        limiter.decide(RULE.key("a"))
    assert len(limiter) == 0


@pytest.mark.parametrize("value", ["5", None, -1, float("nan"), [5]])
def test_a_clock_that_does_not_return_seconds_is_an_error(value: Any) -> None:
    limiter = Limiter(clock=lambda: value)
    with pytest.raises((ConfigError, TypeError)):
        limiter.decide(RULE.key("a"))
    assert len(limiter) == 0


def test_a_clock_must_be_callable() -> None:
    with pytest.raises(TypeError, match="clock must be a callable giving seconds"):
        Limiter(clock=5)  # type: ignore[arg-type]


def test_a_manual_clock_moves_only_when_it_is_moved() -> None:
    clock = ManualClock()
    assert clock() == 0.0
    clock.advance("1m")
    clock.advance(0.5)
    clock.advance(timedelta(microseconds=1))
    assert clock() == 60.500001
    clock.set(1_704_067_200)
    assert clock() == 1_704_067_200.0
    assert repr(clock) == "ManualClock(1704067200.0)"
    for bad in ("x", -1, None):
        with pytest.raises((ConfigError, TypeError)):
            clock.advance(bad)  # type: ignore[arg-type]
        with pytest.raises((ConfigError, TypeError)):
            clock.set(bad)  # type: ignore[arg-type]
    assert clock() == 1_704_067_200.0


def test_a_manual_clock_drives_every_limiter(doorkeep_clock: ManualClock) -> None:
    strikes = AttemptLimiter(1, "1m", clock=doorkeep_clock)
    bucket = TokenBucket(1, "1m", clock=doorkeep_clock)
    window = FixedWindow(1, "1m", clock=doorkeep_clock)
    limiter = Limiter(clock=doorkeep_clock)

    def admitted() -> list[bool]:
        answers = (strikes.attempt("a"), bucket.allow("a"), window.consume("a"), limiter.decide(RULE.key("a")))
        return [bool(answer) for answer in answers]

    assert admitted() == [True] * 4
    doorkeep_clock.advance(timedelta(seconds=60) - timedelta(microseconds=1))
    assert admitted() == [False] * 4
    doorkeep_clock.advance("1us")
    assert admitted() == [True] * 4


def test_a_clock_that_goes_back_does_not_end_a_lockout_early(doorkeep_clock: ManualClock) -> None:
    strikes = AttemptLimiter(1, 60, clock=doorkeep_clock)
    doorkeep_clock.set(1000)
    assert strikes.attempt("a") is Outcome.ALLOWED_LAST_ATTEMPT
    doorkeep_clock.set(100)
    assert strikes.decide("a").retry_after == timedelta(seconds=60)
    doorkeep_clock.set(160)
    assert strikes.attempt("a") is Outcome.ALLOWED_LAST_ATTEMPT


def test_a_float_now_is_rounded_to_the_nearest_microsecond() -> None:
    limiter = Limiter()
    limiter.decide(RULE.key("a"), now=0.0000004)
    assert limiter.peek(RULE.key("a"), now=0).retry_after == timedelta(seconds=60)
    limiter.decide(RULE.key("b"), now=0.0000006)
    assert limiter.peek(RULE.key("b"), now=0).retry_after == timedelta(seconds=60, microseconds=1)


def test_the_default_clock_counts_from_the_unix_epoch() -> None:
    limiter = Limiter()
    limiter.decide(RULE.key("a"))
    now = time.time()
    assert not limiter.decide(RULE.key("a"), now=now)
    assert limiter.decide(RULE.key("a"), now=now + 62)


def test_the_fixtures_return_limiters_on_the_manual_clock(
    doorkeep_clock: ManualClock, doorkeep_limiter: Limiter, doorkeep_aio_limiter: aio.Limiter
) -> None:
    assert doorkeep_limiter.decide(RULE.key("a"))
    assert not doorkeep_limiter.decide(RULE.key("a"))
    doorkeep_clock.advance("1m")
    assert doorkeep_limiter.decide(RULE.key("a"))
    assert len(doorkeep_aio_limiter) == 0
