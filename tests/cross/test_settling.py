"""What one process counted, it alone settles, and the others see at once what came of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from processes import Worker

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND
POLICY = {"threshold": 3, "lockout_window": "60s"}


@pytest.fixture
def strict(start: Callable[..., Worker], request: pytest.FixtureRequest) -> tuple[Worker, Worker]:
    options = {"strikes": {"name": "pin", **POLICY}, "rules": {"pin": POLICY, "ip": {"rates": "5/1h"}}}
    return tuple(start(language, **options) for language in request.param)


both_ways = pytest.mark.parametrize("strict", [("python", "node"), ("node", "python")], indirect=True, ids="-".join)


@both_ways
def test_cancelling_the_engager_lifts_the_lockout_and_the_other_strikes_stay(strict: tuple[Worker, Worker]) -> None:
    holder, other = strict
    assert other.ask("strike", key="ann", now=NOW)["outcome"] == "allowed"
    assert other.ask("strike", key="ann", now=NOW + 1 * SECOND)["outcome"] == "allowed"
    engaged = holder.ask("reserve", key="ann", hold="engager", now=NOW + 2 * SECOND)
    assert (engaged["outcome"], engaged["engaged"]) == ("allowed_last", ["pin"])
    assert other.ask("strike", key="ann", now=NOW + 3 * SECOND)["retry_after"] == 59 * SECOND

    assert holder.ask("unreserve", held="engager", now=NOW + 4 * SECOND) == "lifted"
    assert not other.ask("locked", key="ann", now=NOW + 5 * SECOND)
    # Two strikes stayed: the next attempt engages a lockout of its own, 60 seconds from now.
    assert other.ask("strike", key="ann", now=NOW + 5 * SECOND)["outcome"] == "allowed_last"
    assert holder.ask("strike", key="ann", now=NOW + 6 * SECOND)["retry_after"] == 59 * SECOND
    assert holder.ask("unreserve", held="engager", now=NOW + 7 * SECOND) == "nothing"
    assert other.ask("locked", key="ann", now=NOW + 7 * SECOND)


@both_ways
def test_cancelling_another_attempt_leaves_the_lockout(strict: tuple[Worker, Worker]) -> None:
    holder, other = strict
    assert holder.ask("reserve", key="ann", hold="slow", now=NOW)["outcome"] == "allowed"
    assert other.ask("strike", key="ann", now=NOW + 1 * SECOND)["outcome"] == "allowed"
    assert other.ask("reserve", key="ann", hold="engager", now=NOW + 2 * SECOND)["outcome"] == "allowed_last"
    assert holder.ask("unreserve", held="slow", now=NOW + 3 * SECOND) == "given_back"
    assert holder.ask("strike", key="ann", now=NOW + 3 * SECOND)["retry_after"] == 59 * SECOND
    assert other.ask("unreserve", held="engager", now=NOW + 4 * SECOND) == "lifted"
    # Of the three, one strike is left.
    assert holder.ask("strike", key="ann", now=NOW + 4 * SECOND)["remaining"] == 1


@both_ways
def test_an_attempt_that_is_cancelled_gives_back_its_own_charge_alone(strict: tuple[Worker, Worker]) -> None:
    holder, other = strict
    keys = [{"rule": "ip", "parts": ["203.0.113.9"]}, {"rule": "pin", "parts": ["ann"]}]
    assert holder.ask("attempt", keys=keys, hold="crash", now=NOW)["outcome"] == "allowed"
    assert other.ask("allow", keys=keys, now=NOW)["outcome"] == "allowed"
    assert holder.ask("cancel", held="crash", now=NOW)
    assert not holder.ask("cancel", held="crash", now=NOW)
    assert other.ask("allow", keys=keys[:1], now=NOW)["remaining"] == 3
    assert other.ask("allow", keys=keys[1:], now=NOW)["remaining"] == 1


@both_ways
def test_a_success_forgives_the_strikes_of_every_process(strict: tuple[Worker, Worker]) -> None:
    holder, other = strict
    keys = [{"rule": "ip", "parts": ["203.0.113.9"]}, {"rule": "pin", "parts": ["ann"]}]
    for _ in range(2):
        assert other.ask("allow", keys=keys, now=NOW)["outcome"] == "allowed"
    assert holder.ask("attempt", keys=keys, hold="owner", now=NOW)["outcome"] == "allowed_last"
    assert other.ask("allow", keys=keys, now=NOW)["reason"] == "locked"
    assert holder.ask("success", held="owner", forgive=["pin"], give_back=["ip"], now=NOW)
    # The guesses of the other process stay counted on the address.
    assert other.ask("allow", keys=keys, now=NOW)["remaining"] == 2
