"""Issuing tokens: which subject is limited, and by which provider."""

from __future__ import annotations

import asyncio
import collections
import pickle
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

import doorkeep
from doorkeep import (
    ConfigError,
    InvalidKeyError,
    IssueGuard,
    ManualClock,
    RateLimitExceeded,
    TokenBucket,
    aio,
    key_from_claims,
)


class Provider:
    """A provider with a fixed answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def allow(self, key: str) -> Any:
        self.asked.append(key)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def reset(self, key: str) -> None: ...

    def close(self) -> None: ...


class Later(Provider):
    """The same, awaitable."""

    async def allow(self, key: str) -> Any:
        return super().allow(key)


def bucket() -> TokenBucket:
    return TokenBucket(rate=1, window="1m", clock=ManualClock())


@pytest.mark.parametrize("shape", [dict, lambda **claims: SimpleNamespace(**claims), collections.OrderedDict])
def test_the_key_is_the_first_claim_that_is_not_empty(shape: Any) -> None:
    def own() -> str:
        return "own"

    assert key_from_claims(shape(sub="ann", user_id="u1", rate_limit_key=own)) == "ann"
    assert key_from_claims(shape(sub="", user_id="u1", rate_limit_key=own)) == "u1"
    assert key_from_claims(shape(sub=None, rate_limit_key=own)) == "own"
    assert key_from_claims(shape(rate_limit_key="no function")) == ""


def test_a_mapping_may_have_a_method_for_its_key() -> None:
    class Claims(dict[str, str]):
        def rate_limit_key(self) -> str:
            return self["email"]

    assert key_from_claims(Claims(email="ann@example.com")) == "ann@example.com"
    assert key_from_claims(Claims(email="ann@example.com", sub="ann")) == "ann"


@pytest.mark.parametrize("claims", [{}, [], object(), {"rate_limit_key": lambda: None}])
def test_the_key_is_empty_if_the_claims_have_no_subject(claims: object) -> None:
    assert key_from_claims(claims) == ""


@pytest.mark.parametrize("claims", [None, "header.payload.signature", b"token", 7, 1.5, True])
def test_values_that_are_not_claims_are_refused(claims: object) -> None:
    with pytest.raises(ConfigError, match="claims must be a mapping or an object"):
        key_from_claims(claims)
    with pytest.raises(ConfigError):
        IssueGuard(TokenBucket()).check(claims)
    IssueGuard(TokenBucket(), key=lambda _: "all").check(claims)


@pytest.mark.parametrize("guard", [IssueGuard, aio.IssueGuard])
@pytest.mark.parametrize("provider", [None, 5, {}, lambda key: True])
def test_a_provider_without_allow_is_refused_when_the_guard_is_made(guard: Any, provider: object) -> None:
    with pytest.raises(ConfigError, match="must have the methods of RateLimitProvider"):
        guard(provider)


def test_the_key_of_a_whole_number_is_its_digits() -> None:
    assert key_from_claims({"user_id": 7}) == "7"
    assert key_from_claims({"user_id": 0}) == "0"
    assert key_from_claims({"user_id": 2**200 + 1}) == str(2**200 + 1)


@pytest.mark.parametrize("odd", [True, False, 1.5, float("nan"), b"ann", [], {}, object()])
def test_a_claim_of_another_type_is_refused_since_ignoring_it_would_lift_the_limit(odd: object) -> None:
    with pytest.raises(InvalidKeyError, match="must be text or a whole number, claim=`sub`"):
        key_from_claims({"sub": odd, "user_id": "u1"})


def test_issuing_is_refused_only_when_the_subject_has_used_up_its_rate() -> None:
    guard = IssueGuard(bucket())
    guard.check({"sub": "ann"})
    with pytest.raises(RateLimitExceeded) as caught:
        guard.check({"sub": "ann"})
    assert str(caught.value) == "rate limit exceeded"
    guard.check({"sub": "bob"})


def test_a_refusal_carries_the_wait_of_the_bucket_and_its_header_fields() -> None:
    async def refuse(guard: Any) -> RateLimitExceeded:
        with pytest.raises(RateLimitExceeded) as caught:
            for _ in range(2):
                await result_of(guard.check({"sub": "ann"}))
        return caught.value

    async def result_of(answer: Any) -> Any:
        return answer if answer is None else await answer

    for guard in (IssueGuard(bucket()), aio.IssueGuard(aio.TokenBucket(1, "1m", clock=ManualClock()))):
        error = asyncio.run(refuse(guard))
        assert error.retry_after == timedelta(minutes=1)
        assert error.headers == {"Cache-Control": "no-store", "Retry-After": "60"}
        copied = pickle.loads(pickle.dumps(error))
        assert (copied.retry_after, copied.args) == (error.retry_after, error.args)


def test_a_refusal_of_a_provider_without_a_wait_has_no_retry_after() -> None:
    with pytest.raises(RateLimitExceeded) as caught:
        IssueGuard(Provider(False)).check({"sub": "ann"})
    assert caught.value.retry_after is None
    assert caught.value.headers == {"Cache-Control": "no-store"}


@pytest.mark.parametrize("odd", [60, 1.5, "60", {}])
def test_a_wait_of_a_provider_that_is_not_a_timedelta_is_refused(odd: object) -> None:
    class Waiting(Provider):
        def retry_after(self, key: str) -> object:
            return odd

    with pytest.raises(ConfigError, match="^retry_after of a provider must be a timedelta or None, type="):
        IssueGuard(Waiting(False)).check({"sub": "ann"})


def test_odd_subjects_are_counted_separately() -> None:
    guard = IssueGuard(bucket())
    subjects = ["__proto__", "\0", "\ud800", "\ud801", " ", "x" * 100_000]
    for subject in subjects:
        guard.check({"sub": subject})
    for subject in subjects:
        with pytest.raises(RateLimitExceeded):
            guard.check({"sub": subject})


def test_claims_without_a_subject_are_not_limited() -> None:
    provider = Provider(False)
    for _ in range(3):
        IssueGuard(provider).check({"aud": "shop"})
    assert provider.asked == []


def test_an_application_may_use_its_own_key() -> None:
    provider = Provider(True)
    guard = IssueGuard(provider, key=lambda claims: claims.get("tenant"))
    guard.check({"sub": "ann", "tenant": "acme"})
    guard.check({"sub": "ann", "tenant": 9})
    guard.check({"sub": "ann"})
    assert provider.asked == ["acme", "9"]
    with pytest.raises(InvalidKeyError, match="claim=`key`"):
        guard.check({"tenant": True})


def test_a_closed_bucket_refuses_to_issue() -> None:
    closed = TokenBucket()
    closed.close()
    with pytest.raises(RateLimitExceeded):
        IssueGuard(closed).check({"sub": "ann"})


def test_exceptions_of_a_provider_pass_through() -> None:
    with pytest.raises(ConnectionError):
        IssueGuard(Provider(ConnectionError())).check({"sub": "ann"})
    with pytest.raises(ConnectionError):
        asyncio.run(aio.IssueGuard(Later(ConnectionError())).check({"sub": "ann"}))


@pytest.mark.parametrize("odd", [1, 0, "yes", None, {}, object()])
def test_a_provider_that_answers_neither_true_nor_false_issues_nothing(odd: object) -> None:
    with pytest.raises(ConfigError, match="must answer True or False"):
        IssueGuard(Provider(odd)).check({"sub": "ann"})
    with pytest.raises(ConfigError, match="must answer True or False"):
        asyncio.run(aio.IssueGuard(Later(odd)).check({"sub": "ann"}))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_provider_that_must_be_awaited_issues_nothing_when_it_is_not() -> None:
    with pytest.raises(ConfigError, match="type=`coroutine`"):
        IssueGuard(Later(True)).check({"sub": "ann"})  # type: ignore[arg-type]


def test_the_awaitable_guard_accepts_awaitable_and_plain_providers() -> None:
    async def issue(provider: Any) -> list[bool]:
        guard = aio.IssueGuard(provider)
        answers = await asyncio.gather(*[guard.check({"sub": "ann"}) for _ in range(3)], return_exceptions=True)
        return [answer is None for answer in answers]

    clock = ManualClock()
    assert asyncio.run(issue(aio.TokenBucket(1, "1m", clock=clock))) == [True, False, False]
    assert asyncio.run(issue(TokenBucket(1, "1m", clock=clock))) == [True, False, False]


def test_concurrent_threads_issue_as_often_as_the_rate_allows() -> None:
    guard = IssueGuard(TokenBucket(rate=5, window="1m", clock=ManualClock()))
    passed: list[int] = []

    def issue() -> None:
        for _ in range(100):
            try:
                guard.check({"sub": "ann"})
            except RateLimitExceeded:
                continue
            passed.append(1)

    threads = [threading.Thread(target=issue) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 5


def test_a_token_bucket_is_a_provider() -> None:
    assert isinstance(TokenBucket(), doorkeep.RateLimitProvider)
    assert isinstance(Provider(True), doorkeep.RateLimitProvider)
    assert not isinstance(object(), doorkeep.RateLimitProvider)
    provider: doorkeep.RateLimitProvider = TokenBucket()
    assert provider.allow("ann") is True
