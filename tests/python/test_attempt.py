"""The attempt as a block: what gives it back and what leaves it counted."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from doorkeep import AttemptDenied, ConfigError, Key, Limiter, Rule, StrikeRule, aio, network

IP = Rule("login-ip", "5/1h")
ACCOUNT_IP = StrikeRule("login-account-ip", threshold=2, lockout_window="15m", by=("account", "address"))
LEAVES_COUNTED = [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit]


def remaining(limiter: Limiter | aio.Limiter) -> int:
    peek: Any = limiter.peek(IP.key("a"))
    if isinstance(peek, aio.Answer):
        peek = run(lambda: peek)
    return int(peek.remaining)


def run(make: Callable[[], Any]) -> Any:
    async def main() -> Any:
        return await make()

    return asyncio.run(main())


def enter(limiter: Limiter | aio.Limiter, error: BaseException | None, **options: Any) -> None:
    """Go through a block that ends with an error, or with none."""
    if isinstance(limiter, Limiter):
        with limiter.attempt(IP.key("a"), **options):
            if error is not None:
                raise error
        return

    async def main() -> None:
        async with limiter.attempt(IP.key("a"), **options):
            if error is not None:
                raise error

    # Not asyncio.run, which has ideas of its own about KeyboardInterrupt; nothing suspends.
    coroutine = main()
    try:
        coroutine.send(None)
    except StopIteration:
        pass
    finally:
        coroutine.close()


@pytest.fixture(params=["blocking", "aio"])
def limiter(request: pytest.FixtureRequest) -> Limiter | aio.Limiter:
    return Limiter() if request.param == "blocking" else aio.Limiter()


def test_a_block_that_ends_well_leaves_the_attempt_counted(limiter: Limiter) -> None:
    enter(limiter, None)
    assert remaining(limiter) == 4


def test_an_exception_that_escapes_the_block_gives_the_attempt_back(limiter: Limiter) -> None:
    with pytest.raises(ZeroDivisionError):
        enter(limiter, ZeroDivisionError())
    assert remaining(limiter) == 5


@pytest.mark.parametrize("kind", LEAVES_COUNTED)
def test_what_stops_the_task_or_the_program_leaves_the_attempt_counted(
    limiter: Limiter, kind: type[BaseException]
) -> None:
    with pytest.raises(kind):
        enter(limiter, kind())
    assert remaining(limiter) == 4


@pytest.mark.parametrize("count_on", [LookupError, (LookupError,), [ValueError, LookupError]])
def test_an_exception_named_in_count_on_leaves_the_attempt_counted(limiter: Limiter, count_on: Any) -> None:
    with pytest.raises(KeyError):
        enter(limiter, KeyError(), count_on=count_on)
    assert remaining(limiter) == 4


def test_an_exception_not_named_in_count_on_gives_the_attempt_back(limiter: Limiter) -> None:
    with pytest.raises(ZeroDivisionError):
        enter(limiter, ZeroDivisionError(), count_on=(LookupError,))
    assert remaining(limiter) == 5


@pytest.mark.parametrize("count_on", [1, "ValueError", (int,), [ValueError, 3], ValueError()])
def test_count_on_that_names_no_exception_is_refused_and_nothing_counted(limiter: Limiter, count_on: Any) -> None:
    with pytest.raises(TypeError, match="count_on takes exception classes"):
        enter(limiter, None, count_on=count_on)
    assert remaining(limiter) == 5


def test_entering_a_denied_attempt_raises_with_the_decision(limiter: Limiter) -> None:
    for _ in range(5):
        enter(limiter, None)
    with pytest.raises(AttemptDenied) as caught:
        enter(limiter, None)
    assert caught.value.decision.rule == "login-ip"
    assert str(caught.value) == "attempt denied, rule=`login-ip`, reason=`limited`"


def test_an_attempt_settled_in_the_block_is_not_given_back_by_a_later_exception() -> None:
    limiter = Limiter()
    with pytest.raises(ZeroDivisionError), limiter.attempt(IP.key("a")) as attempt:
        attempt.success()
        raise ZeroDivisionError
    assert remaining(limiter) == 4


def test_a_success_forgives_the_named_rules_and_leaves_the_rest_counted() -> None:
    limiter = Limiter()
    for forgive in ([ACCOUNT_IP], ["login-account-ip"], ACCOUNT_IP, "login-account-ip"):
        for _ in range(2):
            attempt = limiter.attempt(IP.ip_key("192.0.2.1"), ACCOUNT_IP.key("ann", network("192.0.2.1")))
        assert attempt.decision.engaged == ("login-account-ip",)
        assert attempt.success(forgive=forgive)
        assert not attempt.success(forgive=forgive)
        limiter.reset(IP.ip_key("192.0.2.1"))
    assert limiter.attempt(ACCOUNT_IP.key("ann", network("192.0.2.1"))).decision.remaining == 1


def test_forgiving_an_address_must_be_asked_for_by_name() -> None:
    limiter = Limiter()
    attempt = limiter.attempt(IP.ip_key("192.0.2.1"))
    with pytest.raises(ConfigError, match="name it under forgive address to forgive it, rule=`login-ip`"):
        attempt.success(forgive=[IP])
    assert attempt.success(forgive_address=[IP])
    assert limiter.peek(IP.ip_key("192.0.2.1")).remaining == 5


def test_giving_back_the_own_charge_of_right_passwords_still_locks_out_the_wrong_ones(doorkeep_clock: Any) -> None:
    address = StrikeRule("address", threshold=5, lockout_window=300)
    limiter = Limiter(clock=doorkeep_clock)
    outcomes = []
    for right in (False, False, True, False, False, True, False, False):
        attempt = limiter.attempt(address.ip_key("192.0.2.1"))
        outcomes.append(attempt.decision.outcome.name[0] if not attempt.decision.engaged else "L")
        if right:
            attempt.success(give_back=[address])
        doorkeep_clock.advance(1)
    assert outcomes == ["A", "A", "A", "A", "A", "L", "L", "D"]


def test_extend_counts_new_keys_once_under_the_same_attempt() -> None:
    limiter = Limiter()
    attempt = limiter.attempt(IP.key("a"))
    assert attempt.holds(IP.key("a"))
    assert not attempt.holds(IP.key("b"))
    assert attempt.extend(IP.key("a"), IP.key("b"))
    assert [limiter.peek(IP.key(name)).remaining for name in "ab"] == [4, 4]
    assert attempt.cancel()
    assert [limiter.peek(IP.key(name)).remaining for name in "ab"] == [5, 5]


def test_an_attempt_reads_the_clock_of_its_limiter(doorkeep_clock: Any) -> None:
    limiter = Limiter(clock=doorkeep_clock)
    attempt = limiter.attempt(IP.key("a"))
    doorkeep_clock.advance("12m")
    assert limiter.peek(IP.key("a")).remaining == 5
    assert attempt.extend(IP.key("b")).reset_after.total_seconds() == 720


def test_entering_an_attempt_twice_or_leaving_one_that_was_not_entered_is_an_error() -> None:
    async def main() -> None:
        pending = aio.Limiter().attempt(IP.key("a"))
        with pytest.raises(RuntimeError, match="not entered"):
            await pending.__aexit__(None, None, None)
        await pending
        with pytest.raises(RuntimeError, match="already awaited"):
            await pending.__aenter__()

    asyncio.run(main())


def test_an_awaited_attempt_can_be_entered_later() -> None:
    async def main() -> None:
        limiter = aio.Limiter()
        attempt = await limiter.attempt(IP.key("a"))
        with pytest.raises(ZeroDivisionError):
            async with attempt as entered:
                assert entered is attempt
                raise ZeroDivisionError
        assert (await limiter.peek(IP.key("a"))).remaining == 5

    asyncio.run(main())


def test_a_dropped_attempt_stays_counted_and_warns() -> None:
    limiter = aio.Limiter()
    with pytest.warns(RuntimeWarning, match=r"aio\.Limiter\.attempt was never awaited"):
        limiter.attempt(IP.key("a"))
    assert remaining(limiter) == 4


def test_limiters_hold_no_reference_cycle_through_their_clock() -> None:
    def keys() -> list[Key]:
        return [IP.key("a")]

    class Clock:
        limiter: Limiter | None = None

        def __call__(self) -> float:
            return 0.0

    def make() -> None:
        clock = Clock()
        clock.limiter = Limiter(clock=clock)
        clock.limiter.attempt(*keys())

    gc.collect()
    # By its type: to be asked whether it is an instance wakes what imports lazily.
    before = sum(type(found) is Clock for found in gc.get_objects())
    with warnings.catch_warnings():
        for _ in range(10):
            make()
        gc.collect()
    assert sum(type(found) is Clock for found in gc.get_objects()) == before


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no groups of exceptions")
def test_a_wrong_guess_in_a_group_of_exceptions_stays_counted() -> None:
    class Wrong(Exception):
        pass

    limiter, rule = Limiter(), StrikeRule("grouped", 3, "1h")
    group: Any = ExceptionGroup  # noqa: F821
    for error in (group("guesses", [KeyError(), Wrong()]), group("outer", [group("inner", [Wrong()])])):
        with pytest.raises(group), limiter.attempt(rule.key("ann"), count_on=Wrong):
            raise error
    assert limiter.peek(rule.key("ann")).remaining == 1
    with pytest.raises(group), limiter.attempt(rule.key("ann"), count_on=Wrong):
        raise group("crashes", [KeyError()])
    assert limiter.peek(rule.key("ann")).remaining == 1


def test_a_key_that_comes_again_as_an_address_is_not_forgiven_unasked() -> None:
    limiter, rule = Limiter(), Rule("addressed", "5/1h")
    attempt = limiter.attempt(rule.key("203.0.113.9"))
    attempt.extend(rule.ip_key("203.0.113.9"))
    with pytest.raises(ConfigError, match="keyed by an address"):
        attempt.success(forgive=[rule])
    assert attempt.success(forgive_address=[rule])
