"""HTTP answers of real limiters, and arguments that are not decisions; the rest is in the vectors."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from doorkeep import AttemptLimiter, ConfigError, FixedWindow, Limiter, Rule, aio, http, lint

LOGIN = Rule("login", "1/1m", by=("account",))


def test_the_decision_of_every_limiter_has_an_answer() -> None:
    limiter, key = Limiter(), LOGIN.key("ann")
    assert http.status(limiter.decide(key, now=0)) == 200
    denied = limiter.decide(key, now=0)
    assert (http.status(denied), http.headers(denied, [key])) == (429, {"Retry-After": "60"})
    assert http.headers(denied, key) == {"Retry-After": "60"}

    strikes = AttemptLimiter(threshold=1, lockout_window="15m")
    strikes.attempt("ann", 0)
    assert http.headers(strikes.decide("ann", 0)) == {"Retry-After": "900"}

    window = FixedWindow(limit=1, window="1500ms")
    window.consume("ann", 0)
    assert http.headers(window.consume("ann", 0), round_up="1m") == {"Retry-After": "60"}


def test_every_retry_after_is_whole_seconds_after_which_the_call_is_admitted() -> None:
    limiter, key = Limiter(), Rule("login", "7/1m").key("ann")
    for _ in range(7):
        limiter.decide(key, now=0)
    seconds = int(http.headers(limiter.decide(key, now=0.3), key)["Retry-After"])
    assert not limiter.peek(key, now=0.3 + seconds - 1).allowed
    assert limiter.peek(key, now=0.3 + seconds).allowed


def test_two_accounts_at_the_same_step_get_the_same_answer() -> None:
    def answer(account: str) -> dict[str, str]:
        limiter, key = Limiter(), LOGIN.key(account)
        limiter.decide(key, now=0)
        return http.headers(limiter.decide(key, now=1), key, rate_limit=True)

    assert answer("ann@example.com") == answer("nobody@example.com")


@pytest.mark.parametrize("odd", [None, True, 429, object(), "allowed"])
def test_anything_but_a_decision_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError):
        http.status(odd)
    with pytest.raises(TypeError):
        http.headers(odd)


def test_a_decision_that_was_not_awaited_does_not_admit() -> None:
    async def forget() -> None:
        answer: Any = aio.Limiter().decide(LOGIN.key("ann"))
        with pytest.raises(TypeError):
            http.status(answer)
        assert http.status(await answer) == 200

    asyncio.run(forget())


def test_invalid_keys_and_steps_that_are_not_whole_seconds_are_refused() -> None:
    decision = Limiter().decide(LOGIN.key("ann"))
    keys: Any = ["ann"]
    with pytest.raises(TypeError):
        http.headers(decision, keys)
    with pytest.raises(ConfigError, match="whole seconds, at least 1s, value=`1500ms`"):
        http.headers(decision, round_up=1.5)
    for odd in (0.5, timedelta(0), "soon", -1):
        with pytest.raises(ConfigError):
            http.check_round_up(odd)
    for step in (None, 60, "1m", timedelta(minutes=1)):
        http.check_round_up(step)


def test_advice_is_given_on_rules_only() -> None:
    for odd in (["login"], [None], 5, LOGIN):
        rules: Any = odd
        with pytest.raises(TypeError):
            lint(rules)
    assert lint([]) == []
    assert lint((LOGIN,), forgive=LOGIN) == lint([LOGIN], forgive="login")
