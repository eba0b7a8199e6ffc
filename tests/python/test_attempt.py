"""The attempt as a block: what gives it back and what leaves it counted."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from doorkeep import (
    AttemptDenied,
    AttemptLimiter,
    ConfigError,
    DoorkeepError,
    InvalidKeyError,
    Key,
    Limiter,
    RateLimitExceeded,
    Rule,
    StrikeRule,
    aio,
    network,
)
from doorkeep._native import Answer

IP = Rule("login-ip", "5/1h")
ACCOUNT_IP = StrikeRule("login-account-ip", threshold=2, lockout_window="15m", by=("account", "address"))
LEAVES_COUNTED = [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit]


def remaining(limiter: Limiter | aio.Limiter) -> int:
    peek: Any = limiter.peek(IP.key("a"))
    if isinstance(peek, Answer):
        peek = run(lambda: peek)
    return int(peek.remaining)


def run(make: Callable[[], Any]) -> Any:
    async def main() -> Any:
        return await make()

    return asyncio.run(main())


def enter(limiter: Limiter | aio.Limiter, error: BaseException | None, **options: Any) -> None:
    """Run a block that ends with an error, or without one."""
    if isinstance(limiter, Limiter):
        with limiter.attempt(IP.key("a"), **options):
            if error is not None:
                raise error
        return

    async def main() -> None:
        async with limiter.attempt(IP.key("a"), **options):
            if error is not None:
                raise error

    # Not asyncio.run, which handles KeyboardInterrupt itself; nothing suspends.
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


@pytest.mark.parametrize("error", [ZeroDivisionError, AttemptDenied, ConnectionError])
def test_an_exception_that_leaves_the_block_leaves_the_attempt_counted(limiter: Limiter, error: Any) -> None:
    with pytest.raises(error):
        enter(limiter, error("wrong"))
    assert remaining(limiter) == 4


@pytest.mark.parametrize("kind", LEAVES_COUNTED)
def test_an_exception_that_stops_the_task_or_the_program_leaves_the_attempt_counted(
    limiter: Limiter, kind: type[BaseException]
) -> None:
    with pytest.raises(kind):
        enter(limiter, kind())
    assert remaining(limiter) == 4


@pytest.mark.parametrize("kind", LEAVES_COUNTED)
def test_an_exception_that_stops_the_task_gives_nothing_back_even_if_exception_is_named(
    limiter: Limiter, kind: type[BaseException]
) -> None:
    with pytest.raises(kind):
        enter(limiter, kind(), give_back_on=Exception)
    assert remaining(limiter) == 4


@pytest.mark.parametrize("give_back_on", [LookupError, (LookupError,), [ValueError, LookupError], {KeyError}])
def test_an_exception_named_in_give_back_on_gives_the_attempt_back(limiter: Limiter, give_back_on: Any) -> None:
    with pytest.raises(KeyError):
        enter(limiter, KeyError(), give_back_on=give_back_on)
    assert remaining(limiter) == 5


@pytest.mark.parametrize("give_back_on", [(), None, [], LookupError])
def test_an_exception_that_is_not_named_leaves_the_attempt_counted(limiter: Limiter, give_back_on: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        enter(limiter, ZeroDivisionError(), give_back_on=give_back_on)
    assert remaining(limiter) == 4


@pytest.mark.parametrize("error", [DoorkeepError, ConfigError, InvalidKeyError, RateLimitExceeded])
def test_an_error_of_doorkeep_gives_nothing_back_even_if_it_is_named(limiter: Limiter, error: Any) -> None:
    with pytest.raises(error):
        enter(limiter, error(), give_back_on=(Exception, error))
    assert remaining(limiter) == 4


def test_a_denial_in_the_block_gives_nothing_back_even_if_it_is_named() -> None:
    limiter = Limiter()
    limiter.decide(IP.key("full"), cost=5)
    around = limiter.attempt(IP.key("a"), give_back_on=Exception)
    with pytest.raises(AttemptDenied), around, limiter.attempt(IP.key("full")):
        raise AssertionError
    assert remaining(limiter) == 4


def test_an_address_stays_counted_when_an_exception_gives_the_attempt_back() -> None:
    limiter = Limiter()
    address, strikes = IP.ip_key("192.0.2.1"), StrikeRule("address", 1, "1h", by=("address",))
    attempt = limiter.attempt(address, strikes.key("192.0.2.1"), IP.key("a"), give_back_on=OSError)
    with pytest.raises(TimeoutError), attempt:
        raise TimeoutError
    assert remaining(limiter) == 5
    assert limiter.peek(address).remaining == 4
    assert not limiter.peek(strikes.key("192.0.2.1"))


BAD = [1, "ValueError", (int,), [ValueError, 3], ValueError(), KeyboardInterrupt, (BaseException,), [[ValueError]]]


@pytest.mark.parametrize("give_back_on", BAD)
def test_give_back_on_that_names_no_exception_is_refused_and_nothing_counted(
    limiter: Limiter, give_back_on: Any
) -> None:
    with pytest.raises(ConfigError, match="give_back_on must list classes of exceptions"):
        enter(limiter, None, give_back_on=give_back_on)
    assert remaining(limiter) == 5


def test_a_failure_is_not_taken_back_by_an_exception_or_a_cancel() -> None:
    limiter = Limiter()
    with pytest.raises(TimeoutError), limiter.attempt(IP.key("a"), give_back_on=OSError) as attempt:
        assert attempt.failure()
        assert not attempt.failure()
        raise TimeoutError
    assert not attempt.cancel()
    assert not attempt.success(give_back=[IP])
    assert remaining(limiter) == 4


def test_a_failure_of_an_awaitable_attempt_is_settled_at_the_call() -> None:
    limiter = aio.Limiter()

    async def main() -> None:
        attempt = await limiter.attempt(IP.key("a"))
        failure = attempt.failure()
        assert not await attempt.cancel()
        assert await failure
        assert not await attempt.failure()

    run(main)
    assert remaining(limiter) == 4


def test_a_password_check_that_raises_is_a_counted_guess() -> None:
    class VerifyMismatchError(Exception):
        """The exception that argon2's hasher raises on a wrong password."""

    limiter, checked = Limiter(), 0
    for _ in range(100):
        try:
            with limiter.attempt(ACCOUNT_IP.key("ann", network("192.0.2.1"))):
                checked += 1
                raise VerifyMismatchError
        except (VerifyMismatchError, AttemptDenied):
            pass
    assert checked == 2


def test_everything_that_an_attempt_returns_is_false_when_denied() -> None:
    limiter, strikes = Limiter(), AttemptLimiter(threshold=1, lockout_window="1h")
    keys = [ACCOUNT_IP.key("ann")]
    attempts = [limiter.attempt(*keys) for _ in range(3)]
    assert [bool(attempt) for attempt in attempts] == [True, True, False]
    assert [bool(limiter.decide(*keys)), limiter.allow(*keys), bool(limiter.peek(*keys))] == [False, False, False]
    admitted, denied = strikes.reserve("ann"), strikes.reserve("ann")
    assert [bool(one) for one in (admitted, denied, admitted[1], denied[1])] == [True, False, True, False]
    assert [bool(strikes.attempt("ann")), bool(strikes.decide("ann"))] == [False, False]
    assert isinstance(denied, tuple)
    assert denied == (denied[0], denied[1])


def test_everything_that_an_awaited_attempt_returns_is_false_when_denied() -> None:
    limiter, strikes = aio.Limiter(), aio.AttemptLimiter(threshold=1, lockout_window="1h")

    async def main() -> None:
        for expected in (True, True, False):
            assert bool(await limiter.attempt(ACCOUNT_IP.key("ann"))) == expected
        assert (await limiter.allow(ACCOUNT_IP.key("ann"))) is False
        assert bool(await strikes.reserve("ann"))
        assert not await strikes.reserve("ann")

    run(main)


def test_allow_counts_as_decide_does_and_answers_true_or_false(limiter: Any) -> None:
    answers = [limiter.allow(IP.key("a"), cost=2) for _ in range(3)]
    if isinstance(limiter, aio.Limiter):
        answers = [run(lambda answer=answer: answer) for answer in answers]
    assert answers == [True, True, False]
    assert remaining(limiter) == 1


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


def test_an_address_is_forgiven_only_by_forgive_address() -> None:
    limiter = Limiter()
    attempt = limiter.attempt(IP.ip_key("192.0.2.1"))
    with pytest.raises(ConfigError, match="name it under forgive address to forgive it, rule=`login-ip`"):
        attempt.success(forgive=[IP])
    assert attempt.success(forgive_address=[IP])
    assert limiter.peek(IP.ip_key("192.0.2.1")).remaining == 5


def test_giving_back_right_passwords_still_locks_out_wrong_ones(doorkeep_clock: Any) -> None:
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


def test_an_attempt_uses_the_clock_of_its_limiter(doorkeep_clock: Any) -> None:
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
        attempt = await limiter.attempt(IP.key("a"), give_back_on=ZeroDivisionError)
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


def test_a_reference_cycle_through_the_clock_of_a_limiter_is_collected() -> None:
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
    # By its type: isinstance would trigger lazy imports.
    before = sum(type(found) is Clock for found in gc.get_objects())
    with warnings.catch_warnings():
        for _ in range(10):
            make()
        gc.collect()
    assert sum(type(found) is Clock for found in gc.get_objects()) == before


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no groups of exceptions")
def test_a_group_of_exceptions_gives_back_only_if_all_are_named() -> None:
    group: Any = ExceptionGroup  # noqa: F821
    limiter, rule = Limiter(), StrikeRule("grouped", 4, "1h")
    counted = [
        group("guesses", [OSError(), KeyError()]),
        group("outer", [OSError(), group("inner", [OSError(), KeyError()])]),
        group("named as a group", [KeyError()]),
    ]
    for error in counted:
        with pytest.raises(group), limiter.attempt(rule.key("ann"), give_back_on=(OSError, group)):
            raise error
    assert limiter.peek(rule.key("ann")).remaining == 1
    with pytest.raises(group), limiter.attempt(rule.key("ann"), give_back_on=OSError):
        raise group("outages", [OSError(), group("inner", [TimeoutError()])])
    assert limiter.peek(rule.key("ann")).remaining == 1


def test_a_key_that_is_repeated_as_an_address_is_not_forgiven_as_an_account() -> None:
    limiter, rule = Limiter(), Rule("addressed", "5/1h")
    attempt = limiter.attempt(rule.key("203.0.113.9"))
    attempt.extend(rule.ip_key("203.0.113.9"))
    with pytest.raises(ConfigError, match="keyed by an address"):
        attempt.success(forgive=[rule])
    assert attempt.success(forgive_address=[rule])
