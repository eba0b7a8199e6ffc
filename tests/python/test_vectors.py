"""Replays the shared traces through the blocking and the awaitable limiters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

import doorkeep
import vectors
from doorkeep import ConfigError, Decision, InvalidKeyError, Outcome, aio
from doorkeep._native import Answer
from vectors import fields, micros, seconds, text

ERRORS = {"config": ConfigError, "invalid_key": InvalidKeyError}
OUTCOMES = {Outcome.DENIED: "denied", Outcome.ALLOWED: "allowed", Outcome.ALLOWED_LAST_ATTEMPT: "allowed_last"}
CASES = [pytest.param(case, id=f"{file}: {case['name']}") for file in vectors.TRACES for case in vectors.cases(file)]


@pytest.mark.parametrize("case", CASES)
def test_blocking_limiters_answer_as_the_vectors_say(case: dict[str, Any]) -> None:
    run = replay(case, doorkeep)
    # Nothing may suspend, so one step brings it to its end without an event loop.
    with pytest.raises(StopIteration):
        run.send(None)


@pytest.mark.parametrize("case", CASES)
def test_awaitable_limiters_answer_as_the_vectors_say(case: dict[str, Any]) -> None:
    asyncio.run(replay(case, aio))


def test_every_vector_file_is_run_or_named_as_run_elsewhere() -> None:
    known = {f"{name}.json" for name in vectors.TRACES + vectors.FUNCTIONS + vectors.ELSEWHERE}
    assert {path.name for path in vectors.FOLDER.glob("*.json")} == known


async def replay(case: dict[str, Any], package: Any) -> None:
    with fields(case) as take:
        take("name")
        machine, steps = build(take("limiter"), package), take("steps")
    assert steps
    for number, step in enumerate(steps):
        with fields(step) as take:
            op, expect = take("op"), take("expect")
            operation = machine.operations.get(op)
            assert operation is not None, f"unknown operation {op}"
            shown = await observe(operation, take)
        assert shown == expect, f"step {number}: {step}"


async def observe(operation: Callable[[Any], Any], take: Any) -> Any:
    try:
        return await operation(take)
    except (ConfigError, InvalidKeyError) as error:
        kind = next(kind for kind, expected in ERRORS.items() if type(error) is expected)
        # The call stopped at its error, so the remaining arguments were not read.
        for name in ("key", "keys", "cost", "now", "as", "n", "attempt", "forgive", "give_back", "forgive_address"):
            take(name, None)
        return {"error": kind, "message": str(error)}


def build(limiter: Mapping[str, Any], package: Any) -> Machine:
    with fields(limiter) as take:
        kind = take("kind")
        if kind == "limiter":
            rules = {label: vectors.rule(label, record) for label, record in take("rules").items()}
            return SeveralKeys(package.Limiter(capacity=take("capacity")), rules)
        if kind == "attempt_limiter":
            window = timedelta(microseconds=take("lockout_window_us"))
            made = package.AttemptLimiter(take("threshold"), window, max_tracked_keys=take("max_tracked_keys"))
            return Strikes(made)
        if kind == "token_bucket":
            window = timedelta(microseconds=take("window_us"))
            return Bucket(package.TokenBucket(take("rate"), window, capacity=take("capacity")))
        assert kind == "fixed_window", f"unknown kind {kind}"
        window = timedelta(microseconds=take("window_us"))
        return Window(package.FixedWindow(take("limit"), window, max_keys=take("max_keys")))


async def result_of(answer: Any) -> Any:
    return await answer if isinstance(answer, Answer) else answer


def decision(answer: Decision) -> dict[str, Any]:
    assert not answer.degraded
    assert bool(answer) == answer.allowed == (answer.outcome is not Outcome.DENIED)
    return {
        "outcome": OUTCOMES[answer.outcome],
        "reason": answer.reason,
        "rule": answer.rule,
        "retry_after_us": micros(answer.retry_after),
        "remaining": answer.remaining,
        "reset_after_us": micros(answer.reset_after),
        "engaged": list(answer.engaged),
    }


class Machine:
    """One limiter, and its operations by name."""

    def __init__(self, limiter: Any) -> None:
        self.limiter = limiter
        self.operations: dict[str, Callable[[Any], Any]] = {
            "reset": self.reset,
            "size": self.size,
            "stats": self.stats,
        }

    async def reset(self, take: Any) -> Any:
        return {"reset": await result_of(self.limiter.reset(text(take("key"))))}

    async def size(self, take: Any) -> Any:
        return {"size": len(self.limiter)}

    async def stats(self, take: Any) -> Any:
        stats = self.limiter.stats()
        assert stats.pop("store_failed") == {}
        return stats


class Strikes(Machine):
    def __init__(self, limiter: Any) -> None:
        super().__init__(limiter)
        self.reservations: dict[str, Any] = {}
        self.operations |= {
            "attempt": self.attempt,
            "cancel": self.cancel,
            "locked": self.locked,
            "retry_after": self.retry_after,
            "refund": self.refund,
        }

    async def attempt(self, take: Any) -> Any:
        name = take("as", None)
        key, now = text(take("key")), seconds(take("now"))
        if name is None:
            return decision(await result_of(self.limiter.decide(key, now)))
        outcome, reservation = await result_of(self.limiter.reserve(key, now))
        assert outcome is reservation.decision.outcome
        self.reservations[name] = reservation
        return decision(reservation.decision)

    async def cancel(self, take: Any) -> Any:
        reservation = self.reservations[take("reservation")]
        return {"cancelled": await result_of(self.limiter.cancel(reservation, seconds(take("now"))))}

    async def locked(self, take: Any) -> Any:
        return {"locked": await result_of(self.limiter.locked(text(take("key")), seconds(take("now"))))}

    async def retry_after(self, take: Any) -> Any:
        wait = await result_of(self.limiter.retry_after(text(take("key")), seconds(take("now"))))
        return {"retry_after_us": micros(wait)}

    async def refund(self, take: Any) -> Any:
        assert await result_of(self.limiter.refund(text(take("key")), seconds(take("now")))) is None
        return {}


class SeveralKeys(Machine):
    def __init__(self, limiter: Any, rules: dict[str, Any]) -> None:
        super().__init__(limiter)
        self.rules = rules
        self.attempts: dict[str, Any] = {}
        self.operations |= {
            "allow": self.allow,
            "peek": self.peek,
            "attempt": self.attempt,
            "extend": self.extend,
            "success": self.success,
            "cancel": self.cancel,
            "failure": self.failure,
            "release": self.release,
        }

    def call(self, take: Any) -> tuple[list[Any], dict[str, Any]]:
        keys = [vectors.key(self.rules, record) for record in take("keys")]
        return keys, {"cost": take("cost"), "now": seconds(take("now"))}

    async def reset(self, take: Any) -> Any:
        keys = [vectors.key(self.rules, record) for record in take("keys")]
        return {"reset": await result_of(self.limiter.reset(*keys))}

    async def allow(self, take: Any) -> Any:
        keys, options = self.call(take)
        return decision(await result_of(self.limiter.decide(*keys, **options)))

    async def peek(self, take: Any) -> Any:
        keys, options = self.call(take)
        return decision(await result_of(self.limiter.peek(*keys, **options)))

    async def attempt(self, take: Any) -> Any:
        name = take("as")
        keys, options = self.call(take)
        attempt = await result_of(self.limiter.attempt(*keys, **options))
        self.attempts[name] = attempt
        assert attempt.allowed == attempt.decision.allowed
        return decision(attempt.decision)

    async def extend(self, take: Any) -> Any:
        attempt = self.attempts[take("attempt")]
        keys, options = self.call(take)
        return decision(await result_of(attempt.extend(*keys, **options)))

    async def success(self, take: Any) -> Any:
        attempt = self.attempts[take("attempt")]
        lists = {name: take(name) for name in ("forgive", "give_back", "forgive_address")}
        return {"settled": await result_of(attempt.success(**lists, now=seconds(take("now"))))}

    async def cancel(self, take: Any) -> Any:
        attempt = self.attempts[take("attempt")]
        return {"settled": await result_of(attempt.cancel(seconds(take("now"))))}

    async def failure(self, take: Any) -> Any:
        return {"settled": await result_of(self.attempts[take("attempt")].failure())}

    async def release(self, take: Any) -> Any:
        """The effect of an exception that is named in ``give_back_on``."""
        attempt = self.attempts[take("attempt")]
        return {"settled": await result_of(attempt._give_back(Down(), Down, now=seconds(take("now"))))}


class Down(Exception):
    pass


class Bucket(Machine):
    def __init__(self, limiter: Any) -> None:
        super().__init__(limiter)
        self.operations |= {
            "allow": self.allow,
            "allow_n": self.allow_n,
            "retry_after": self.retry_after,
            "close": self.close,
        }

    async def allow(self, take: Any) -> Any:
        return {"allowed": await result_of(self.limiter.allow(text(take("key")), seconds(take("now"))))}

    async def allow_n(self, take: Any) -> Any:
        key, n, now = text(take("key")), take("n"), seconds(take("now"))
        return {"allowed": await result_of(self.limiter.allow_n(key, n, now))}

    async def retry_after(self, take: Any) -> Any:
        wait = await result_of(self.limiter.retry_after(text(take("key")), seconds(take("now"))))
        return {"retry_after_us": micros(wait)}

    async def close(self, take: Any) -> Any:
        assert await result_of(self.limiter.close()) is None
        return {}


class Window(Machine):
    def __init__(self, limiter: Any) -> None:
        super().__init__(limiter)
        self.operations |= {"consume": self.consume, "peek": self.peek}

    async def consume(self, take: Any) -> Any:
        return decision(await result_of(self.limiter.consume(text(take("key")), seconds(take("now")))))

    async def peek(self, take: Any) -> Any:
        return decision(await result_of(self.limiter.peek(text(take("key")), seconds(take("now")))))
