"""Awaitables over memory: when they decide, that they are awaited once, and that a forgotten await cannot admit."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from doorkeep import ConfigError, InvalidKeyError, Outcome, Rule, aio

RULE = Rule("login", "5/1h")


def make_calls() -> dict[str, Callable[[], Any]]:
    limiter, strikes = aio.Limiter(), aio.AttemptLimiter(threshold=5, lockout_window="1h")
    bucket, window = aio.TokenBucket(), aio.FixedWindow(limit=5, window="1h")
    attempt = asyncio.run(wait(limiter.attempt(RULE.key("a"))))
    _, reservation = asyncio.run(wait(strikes.reserve("a")))
    return {
        "aio.Limiter.decide": lambda: limiter.decide(RULE.key("a")),
        "aio.Limiter.peek": lambda: limiter.peek(RULE.key("a")),
        "aio.Limiter.reset": lambda: limiter.reset(RULE.key("a")),
        "aio.Limiter.attempt": lambda: limiter.attempt(RULE.key("a")),
        "aio.Attempt.extend": lambda: attempt.extend(RULE.key("b")),
        "aio.Attempt.success": lambda: attempt.success(),
        "aio.Attempt.cancel": lambda: attempt.cancel(),
        "aio.AttemptLimiter.attempt": lambda: strikes.attempt("a"),
        "aio.AttemptLimiter.decide": lambda: strikes.decide("a"),
        "aio.AttemptLimiter.reserve": lambda: strikes.reserve("a"),
        "aio.AttemptLimiter.cancel": lambda: strikes.cancel(reservation),
        "aio.AttemptLimiter.locked": lambda: strikes.locked("a"),
        "aio.AttemptLimiter.retry_after": lambda: strikes.retry_after("a"),
        "aio.AttemptLimiter.refund": lambda: strikes.refund("a"),
        "aio.AttemptLimiter.reset": lambda: strikes.reset("a"),
        "aio.TokenBucket.allow": lambda: bucket.allow("a"),
        "aio.TokenBucket.allow_n": lambda: bucket.allow_n("a", 2),
        "aio.TokenBucket.reset": lambda: bucket.reset("a"),
        "aio.TokenBucket.close": lambda: bucket.close(),
        "aio.FixedWindow.consume": lambda: window.consume("a"),
        "aio.FixedWindow.reset": lambda: window.reset("a"),
    }


async def wait(answer: Any) -> Any:
    return await answer


CALLS = make_calls()
every_call = pytest.mark.parametrize("name", CALLS)


@every_call
def test_a_forgotten_await_has_no_truth_and_equals_no_number(name: str) -> None:
    answer = CALLS[name]()
    message = f"the answer of {name} has to be awaited first"
    with pytest.raises(TypeError, match=message):
        bool(answer)
    with pytest.raises(TypeError, match=message):
        _ = not answer
    for number in (Outcome.DENIED, False, 0):
        with pytest.raises(TypeError, match=message):
            _ = answer == number
        with pytest.raises(TypeError, match=message):
            _ = answer != number
    assert not hasattr(answer, "allowed")
    assert answer != "text"
    answer.close()


@every_call
def test_an_answer_dropped_without_an_await_warns(name: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"{name} was never awaited; what it counted stays counted"):
        CALLS[name]()


@every_call
def test_an_answer_is_awaited_once(name: str) -> None:
    answer = CALLS[name]()
    asyncio.run(wait(answer))
    with pytest.raises(RuntimeError, match=f"{name} was already awaited"):
        asyncio.run(wait(answer))


@every_call
def test_an_answer_works_as_a_coroutine(name: str) -> None:
    async def main() -> None:
        await asyncio.create_task(CALLS[name]())
        await asyncio.gather(CALLS[name](), CALLS[name]())
        await asyncio.wait_for(CALLS[name](), 1)
        answer = CALLS[name]()
        assert inspect.isawaitable(answer)
        await answer

    asyncio.run(main())


def test_the_decision_is_taken_at_the_call_in_call_order() -> None:
    async def main() -> None:
        strikes = aio.AttemptLimiter(threshold=2, lockout_window="1h")
        first, second, third = strikes.attempt("a"), strikes.attempt("a"), strikes.attempt("a")
        assert await third is Outcome.DENIED
        assert await second is Outcome.ALLOWED_LAST_ATTEMPT
        assert await first is Outcome.ALLOWED

    asyncio.run(main())


def test_errors_are_raised_by_the_await_and_not_by_the_call() -> None:
    async def main() -> None:
        strikes, limiter = aio.AttemptLimiter(threshold=5, lockout_window="1h"), aio.Limiter()
        empty, bad_cost = strikes.attempt(""), limiter.decide(RULE.key("a"), cost=-1)
        bad_attempt, no_keys = limiter.attempt(RULE.key("a"), cost=1.5), limiter.reset()  # type: ignore[arg-type]
        with pytest.raises(InvalidKeyError, match="a key must not be empty"):
            await empty
        for answer in (bad_cost, no_keys):
            with pytest.raises(ConfigError):
                await answer
        with pytest.raises(ConfigError):
            async with bad_attempt:
                pass

    asyncio.run(main())


def test_an_error_that_is_never_awaited_warns_too() -> None:
    with pytest.warns(RuntimeWarning, match="never awaited"):
        _dropped = aio.Limiter().decide()
        del _dropped


def test_a_warning_turned_into_an_error_is_reported_as_unraisable(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: raised.append(unraisable.exc_value))
    _dropped = aio.Limiter().decide(RULE.key("a"))
    del _dropped
    assert [type(error) for error in raised] == [RuntimeWarning]


def test_an_answer_freed_during_an_exception_does_not_swallow_it() -> None:
    def fail() -> None:
        _answer = aio.Limiter().decide(RULE.key("a"))
        raise ZeroDivisionError

    with pytest.warns(RuntimeWarning, match="never awaited"), pytest.raises(ZeroDivisionError):
        fail()


def test_a_task_cancelled_before_it_began_leaves_the_attempt_counted() -> None:
    async def main() -> None:
        limiter = aio.Limiter()
        task = asyncio.create_task(limiter.decide(RULE.key("a")))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await limiter.peek(RULE.key("a"))).remaining == 4

    asyncio.run(main())


def test_throw_also_accepts_the_old_forms() -> None:
    limiter = aio.Limiter()
    with pytest.raises(KeyError):
        limiter.decide(RULE.key("a")).throw(KeyError)
    with pytest.raises(KeyError, match="x"):
        limiter.decide(RULE.key("a")).throw(KeyError("x"))
    with pytest.raises(KeyError, match="x"):
        limiter.decide(RULE.key("a")).throw(KeyError, KeyError("x"), None)


def test_the_twins_take_the_same_arguments_as_the_blocking_limiters() -> None:
    import doorkeep

    for name in ("AttemptLimiter", "Limiter", "TokenBucket", "FixedWindow", "Attempt"):
        blocking, awaitable = getattr(doorkeep, name), getattr(aio, name)
        public = {method for method in dir(blocking) if not method.startswith("_")}
        assert public == {method for method in dir(awaitable) if not method.startswith("_")}
        if name != "Attempt":
            assert inspect.signature(blocking) == inspect.signature(awaitable)
        for method in public:
            if callable(getattr(blocking, method)):
                signatures = [inspect.signature(getattr(kind, method)) for kind in (blocking, awaitable)]
                assert signatures[0] == signatures[1], method


def test_a_bare_module_level_limiter_needs_no_event_loop_to_be_made() -> None:
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
    assert len(aio.Limiter()) == 0
    gc.collect()
