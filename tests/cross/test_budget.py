"""Processes of different languages draw on one budget, exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from processes import LANGUAGES, Worker

from support.servers import Server

EACH = 500
SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND

IP = {"rule": "login-ip", "address": "203.0.113.9"}
ACCOUNT_IP = {"rule": "login-account-ip", "parts": ["ann@example.com", "203.0.113.9"]}
BUDGETS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "Limiter, a rate": ({"op": "allow", "keys": [IP]}, {"allowed": 7}),
    "Limiter, strikes": ({"op": "allow", "keys": [ACCOUNT_IP]}, {"allowed": 4, "allowed_last": 1}),
    "Limiter, both, all or nothing": ({"op": "allow", "keys": [IP, ACCOUNT_IP]}, {"allowed": 4, "allowed_last": 1}),
    "AttemptLimiter": ({"op": "strike", "key": "ann"}, {"allowed": 4, "allowed_last": 1}),
    "TokenBucket": ({"op": "take", "key": "ann"}, {"allowed": 9}),
    "FixedWindow": ({"op": "consume", "key": "ann"}, {"allowed": 11}),
}


@pytest.mark.parametrize("budget", BUDGETS)
def test_concurrent_calls_of_all_processes_admit_exactly_the_budget(start: Callable[..., Worker], budget: str) -> None:
    call, admitted = BUDGETS[budget]
    workers = [start(language) for language in LANGUAGES]
    for worker in workers:
        worker.begin("many", call=call, times=EACH)
    came_to = sum((Counter(worker.end()) for worker in workers), Counter())
    assert came_to == {**admitted, "denied": EACH * len(workers) - sum(admitted.values())}


def test_what_a_denial_spared_is_left_for_the_other_process(pair: tuple[Worker, Worker]) -> None:
    one, other = pair
    for _ in range(3):
        one.ask("allow", keys=[IP, ACCOUNT_IP], now=NOW)
        other.ask("allow", keys=[IP, ACCOUNT_IP], now=NOW)
    # The sixth call was denied by the strikes, and so took nothing from the address.
    assert one.ask("allow", keys=[IP], now=NOW)["remaining"] == 1
    assert other.ask("allow", keys=[IP], now=NOW)["remaining"] == 0


def test_a_lockout_engaged_in_one_process_denies_in_the_other(pair: tuple[Worker, Worker]) -> None:
    one, other = pair
    for second in range(4):
        assert one.ask("strike", key="ann", now=NOW + second * SECOND)["outcome"] == "allowed"
    last = one.ask("strike", key="ann", now=NOW + 4 * SECOND)
    assert (last["outcome"], last["engaged"]) == ("allowed_last", ["login-strikes"])
    denied = {
        "outcome": "denied",
        "reason": "locked",
        "rule": "login-strikes",
        "retry_after": 900 * SECOND - 1,
        "remaining": 0,
        "reset_after": 900 * SECOND - 1,
        "engaged": [],
        "degraded": False,
    }
    assert other.ask("strike", key="ann", now=NOW + 4 * SECOND + 1) == denied
    assert one.ask("strike", key="ann", now=NOW + 4 * SECOND + 1) == denied
    assert other.ask("strike", key="ann", now=NOW + 904 * SECOND - 1)["retry_after"] == 1
    assert other.ask("strike", key="ann", now=NOW + 904 * SECOND)["outcome"] == "allowed"


def test_both_languages_tell_the_same_wait_for_every_limiter(pair: tuple[Worker, Worker]) -> None:
    one, other = pair
    for call, admitted in BUDGETS.values():
        call = {**call, "now": NOW}
        for _ in range(sum(admitted.values())):
            one.ask(**call)
        said = [worker.ask(**{**call, "now": NOW + 1_234_567}) for worker in (one, other)]
        assert said[0] == said[1]
        assert said[0] is False or said[0]["outcome"] == "denied"


def test_a_token_bucket_and_a_rule_of_one_name_and_policy_share_a_budget(
    start: Callable[..., Worker], server: Server, prefix: str
) -> None:
    options = {"bucket": {"name": "mail", "rate": 10, "window": "60s"}, "rules": {"mail": {"rates": "10/1m"}}}
    for number, (bucket, rule) in enumerate([("python", "node"), ("node", "python")]):
        holder, ruler = start(bucket, **options), start(rule, **options)
        key = f"ann {number}"
        admitted = []
        for _ in range(6):
            admitted.append(holder.ask("take", key=key, now=NOW))
            admitted.append(
                ruler.ask("allow", keys=[{"rule": "mail", "parts": [key]}], now=NOW)["outcome"] == "allowed"
            )
        assert admitted == [True] * 10 + [False] * 2
        # One token is back every six seconds, for whoever is first.
        assert ruler.ask("allow", keys=[{"rule": "mail", "parts": [key]}], now=NOW + 6 * SECOND)["outcome"] == "allowed"
        assert not holder.ask("take", key=key, now=NOW + 6 * SECOND)
        assert len(server.keys(f"{prefix}:*")) == number + 1


def test_an_attempt_limiter_and_a_strike_rule_of_one_name_and_policy_share_strikes(
    start: Callable[..., Worker], server: Server, prefix: str
) -> None:
    policy = {"threshold": 5, "lockout_window": "15m"}
    options = {"strikes": {"name": "pin", **policy}, "rules": {"pin": policy}}
    for number, (striker, ruler) in enumerate([("python", "node"), ("node", "python")]):
        strikes, rule = start(striker, **options), start(ruler, **options)
        key = f"ann {number}"
        outcomes = []
        for _ in range(3):
            outcomes.append(strikes.ask("strike", key=key, now=NOW)["outcome"])
            outcomes.append(rule.ask("allow", keys=[{"rule": "pin", "parts": [key]}], now=NOW)["outcome"])
        assert outcomes == ["allowed"] * 4 + ["allowed_last", "denied"]
        assert strikes.ask("locked", key=key, now=NOW + 899 * SECOND)
        assert len(server.keys(f"{prefix}:*")) == number + 1
