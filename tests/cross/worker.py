"""The Python process of the cross tests: answers each JSON line that it reads with one, until there are no more.

Knows no expectation. README.md has the protocol, which every language's worker speaks.
"""

import asyncio
import json
import sys
from collections import Counter
from itertools import count
from typing import Any

from doorkeep import Decision, Key, Outcome, RedisStore, Rule, StrikeRule, aio

OUTCOMES = {Outcome.DENIED: "denied", Outcome.ALLOWED: "allowed", Outcome.ALLOWED_LAST_ATTEMPT: "allowed_last"}


class Worker:
    """Limiters over one store, and the attempts and reservations that wait to be settled."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule | StrikeRule] = {}
        self.held: dict[str, Any] = {}

    async def open(
        self, *, url: str, prefix: str, clock: str = "server", rules: dict[str, dict[str, Any]], **single: Any
    ):
        store = RedisStore(url, prefix=prefix, timeout="5s", on_error="closed", clock=clock)
        self.limiter = aio.Limiter(store=store)
        self.rules = {name: rule_of(name, **options) for name, options in rules.items()}
        if "strikes" in single:
            self.strikes = aio.AttemptLimiter(store=store, **single["strikes"])
        if "bucket" in single:
            self.bucket = aio.TokenBucket(store=store, **single["bucket"])
        if "window" in single:
            self.window = aio.FixedWindow(store=store, **single["window"])

    async def digest(self, *, key: dict[str, Any]) -> str:
        return self.key(key).digest

    async def allow(self, *, keys: list[dict[str, Any]], now: int | None = None):
        return answer(await self.limiter.decide(*map(self.key, keys), now=seconds(now)))

    async def attempt(self, *, keys: list[dict[str, Any]], hold: str, now: int | None = None):
        self.held[hold] = await self.limiter.attempt(*map(self.key, keys), now=seconds(now))
        return answer(self.held[hold].decision)

    async def success(self, *, held: str, forgive: list[str], give_back: list[str], now: int | None = None) -> bool:
        return await self.held[held].success(forgive=forgive, give_back=give_back, now=seconds(now))

    async def cancel(self, *, held: str, now: int | None = None) -> bool:
        return await self.held[held].cancel(now=seconds(now))

    async def strike(self, *, key: str, now: int | None = None):
        return answer(await self.strikes.decide(key, now=seconds(now)))

    async def reserve(self, *, key: str, hold: str, now: int | None = None):
        _, self.held[hold] = await self.strikes.reserve(key, now=seconds(now))
        return answer(self.held[hold].decision)

    async def unreserve(self, *, held: str, now: int | None = None) -> str:
        return await self.strikes.cancel(self.held[held], now=seconds(now))

    async def locked(self, *, key: str, now: int | None = None) -> bool:
        return await self.strikes.locked(key, now=seconds(now))

    async def take(self, *, key: str, n: int = 1, now: int | None = None) -> bool:
        return await self.bucket.allow_n(key, n, now=seconds(now))

    async def consume(self, *, key: str, now: int | None = None):
        return answer(await self.window.consume(key, now=seconds(now)))

    async def many(self, *, call: dict[str, Any], times: int) -> dict[str, int]:
        return Counter(map(name_of, await asyncio.gather(*(self.do(**call) for _ in range(times)))))

    async def hammer(self, *, rule: str, times: int) -> None:
        for wave in count():
            calls = []
            for key in (f"{wave}-{n}" for n in range(times)):
                calls += [self.strike(key=key), self.take(key=key), self.consume(key=key)]
                calls += [self.allow(keys=[{"rule": rule, "parts": [key]}])]
            await asyncio.gather(*calls)

    async def do(self, op: str, **arguments: Any) -> Any:
        return await getattr(self, op)(**arguments)

    def key(self, key: dict[str, Any]) -> Key:
        rule = self.rules[key["rule"]]
        return rule.ip_key(key["address"]) if "address" in key else rule.key(*key["parts"])


def rule_of(name: str, secret_hex: str | None = None, rates: str | None = None, **options: Any) -> Rule | StrikeRule:
    secret = None if secret_hex is None else bytes.fromhex(secret_hex)
    return StrikeRule(name, secret=secret, **options) if rates is None else Rule(name, rates, secret=secret, **options)


def seconds(now: int | None) -> float | None:
    return None if now is None else now / 1_000_000


def answer(decision: Decision) -> dict[str, Any]:
    wait = decision.retry_after
    return {
        "outcome": OUTCOMES[decision.outcome],
        "reason": decision.reason,
        "rule": decision.rule,
        "retry_after": None if wait is None else micros(wait),
        "remaining": decision.remaining,
        "reset_after": micros(decision.reset_after),
        "engaged": list(decision.engaged),
        "degraded": decision.degraded,
    }


def micros(duration: Any) -> int:
    return (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds


def name_of(said: Any) -> str:
    """Give the word under which `many` counts an answer."""
    if isinstance(said, bool):
        return "allowed" if said else "denied"
    return "unavailable" if said["reason"] == "unavailable" else said["outcome"]


async def main() -> None:
    worker = Worker()
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        try:
            said = {"said": await worker.do(**json.loads(line))}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)


asyncio.run(main())
