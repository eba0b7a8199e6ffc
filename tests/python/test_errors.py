"""Errors: their classes and messages, and that they can be pickled."""

from __future__ import annotations

import copy
import pickle

import pytest

import doorkeep
from doorkeep import Decision, Limiter, Outcome, Rate, Rates, Rule, StrikeRule, errors
from doorkeep.errors import (
    AttemptDenied,
    ConfigError,
    DoorkeepError,
    InvalidKeyError,
    LimiterUnavailable,
    RateLimitExceeded,
)

RULE = Rule("login", "1/1h")


def denied() -> Decision:
    limiter = Limiter()
    limiter.decide(RULE.key("a"), now=0)
    return limiter.decide(RULE.key("a"), now=0)


def test_errors_derive_from_what_a_caller_would_already_catch() -> None:
    for kind in (ConfigError, InvalidKeyError):
        assert issubclass(kind, DoorkeepError)
        assert issubclass(kind, ValueError)
    for denial in (AttemptDenied, LimiterUnavailable, RateLimitExceeded):
        assert issubclass(denial, DoorkeepError)
    assert issubclass(LimiterUnavailable, AttemptDenied)


def test_no_error_is_an_oserror() -> None:
    # `except OSError` around sending a mail must not swallow a denial.
    for name in errors.__all__:
        assert not issubclass(getattr(errors, name), OSError)


def test_every_error_can_be_imported_from_the_package() -> None:
    for name in errors.__all__:
        assert getattr(doorkeep, name) is getattr(errors, name)


@pytest.mark.parametrize(
    "error",
    [ConfigError("x"), InvalidKeyError("x"), RateLimitExceeded("x"), DoorkeepError("x")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_pickle(error: DoorkeepError, protocol: int) -> None:
    copied = pickle.loads(pickle.dumps(error, protocol))
    assert type(copied) is type(error)
    assert str(copied) == str(error) == "x"


@pytest.mark.parametrize("kind", [AttemptDenied, LimiterUnavailable])
def test_denials_pickle_with_their_decision(kind: type[AttemptDenied]) -> None:
    for copied in (pickle.loads(pickle.dumps(kind(denied()))), copy.copy(kind(denied()))):
        assert type(copied) is kind
        assert copied.decision == denied()
        assert str(copied) == "attempt denied, rule=`login`, reason=`limited`"


def test_a_denial_of_a_guard_pickles_without_its_keys() -> None:
    error = AttemptDenied(denied())
    error.keys, error._headers = (RULE.key("a"),), {"Retry-After": "60"}
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.decision, copied.headers, copied.keys) == (error.decision, error.headers, ())


def test_decisions_pickle_and_compare_by_value() -> None:
    strikes = StrikeRule("strikes", threshold=1, lockout_window=60)
    limiter = Limiter()
    decisions = [
        denied(),
        limiter.decide(RULE.key("a"), cost=2, now=0),
        limiter.decide(strikes.key("a"), now=0),
        limiter.decide(strikes.key("a"), now=0),
    ]
    for decision in decisions:
        copied = pickle.loads(pickle.dumps(decision))
        assert copied == decision
        assert hash(copied) == hash(decision)
        assert repr(copied) == repr(decision)
        assert copied.outcome is decision.outcome
        assert (copied.engaged, copied.retry_after, copied.rule) == (
            decision.engaged,
            decision.retry_after,
            decision.rule,
        )
    assert len(set(decisions)) == 4
    assert decisions[0] != "denied"


def test_outcomes_are_a_real_enum_with_a_falsy_denial() -> None:
    assert [int(outcome) for outcome in Outcome] == [0, 1, 2]
    assert not Outcome.DENIED
    assert pickle.loads(pickle.dumps(Outcome.ALLOWED)) is Outcome.ALLOWED
    assert denied().outcome is Outcome.DENIED


def test_rates_pickle_and_compare_by_value() -> None:
    for value in (Rate(5, "1m"), Rates("50/1h,5/1m")):
        assert pickle.loads(pickle.dumps(value)) == value
        assert hash(pickle.loads(pickle.dumps(value))) == hash(value)
    assert list(Rates("50/1h,5/1m")) == [Rate(5, 60), Rate(50, "1h")]
    assert repr(Rates("50/1h,5/1m")) == 'Rates("5/1m,50/1h")'
    assert repr(Rate(5, 60)) == 'Rate(5, "1m")'
    assert len(Rates([Rate(5, 60)])) == 1


def test_whole_seconds_are_rounded_up_and_at_least_one_on_a_denial() -> None:
    for wait, seconds in [("1us", 1), ("999ms", 1), ("1s", 1), ("1001ms", 2), ("30d", 2_592_000)]:
        rule, limiter = Rule("login", [Rate(1, wait)]), Limiter()
        assert limiter.decide(rule.key("a"), now=0).retry_after_seconds == 0
        assert limiter.decide(rule.key("a"), now=0).retry_after_seconds == seconds


def test_a_cost_above_the_rate_has_no_wait() -> None:
    decision = Limiter().decide(RULE.key("a"), cost=2)
    assert (decision.retry_after, decision.retry_after_seconds, decision.allowed) == (None, None, False)
