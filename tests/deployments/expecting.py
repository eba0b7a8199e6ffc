"""What the tests of all deployments expect."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import pytest
from programs import PROGRAMS, Budget, Program
from service import Service


def each_program(*deployments: str, of: Sequence[Program] = PROGRAMS) -> pytest.MarkDecorator:
    """Mark tests that hold for every program in these deployments."""
    several = len(deployments) > 1
    cases = [
        pytest.param((program, deployment), id=f"{program.name}-{deployment}" if several else program.name)
        for program in of
        for deployment in deployments
    ]
    return pytest.mark.parametrize("service", cases, indirect=True, scope="module")


def assert_admitted(checked: Sequence[str], guesses: int, budget: Budget, seconds: float) -> None:
    """Assert that of so many guesses exactly those were checked that a budget admits within a time."""
    least, most = budget.bounds(guesses, seconds)
    assert least <= len(checked) <= most, f"{len(checked)} of {guesses} passwords checked in {seconds:.1f} s"


def assert_has_left(service: Service, account: int, checked_before: int) -> None:
    """Assert that a new address may guess at an account as often as is left after so many guesses of others."""
    policy = service.policy
    _, checked, seconds = service.guess([account] * 30, service.fresh_source())
    of_account = Budget(max(0, policy.account.most - checked_before), policy.account.regained_after)
    (least, most), (other_least, other_most) = policy.pair.bounds(30, seconds), of_account.bounds(30, seconds)
    assert min(least, other_least) <= len(checked) <= min(most, other_most), f"{len(checked)} passwords checked"


def assert_resets_are_counted(service: Service) -> None:
    """Reset 550 connections with guesses at 25 accounts, and assert that they count as those of one address."""
    policy, accounts, began = service.policy, service.fresh_accounts(25), time.monotonic()
    service.reset([*accounts] * 22, service.fresh_source())
    checked, seconds = Counter(service.checked_at_last()), time.monotonic() - began
    _, most = policy.address.bounds(550, seconds)
    assert checked.total() <= most, f"{checked.total()} passwords checked in {seconds:.1f} s"
    _, most = policy.pair.bounds(22, seconds)
    assert max(checked.values(), default=0) <= most, "too many passwords of one account checked"
    # Whoever comes from elsewhere is denied only what guesses that were admitted have spent.
    shut_out = []
    for start in range(0, 25, 5):
        elsewhere = service.fresh_source()
        for account in accounts[start : start + 5]:
            (status,) = service.guess_in_turn(account, 1, elsewhere)
            is_spent = checked[service.name(account)] >= policy.account.most
            if (status == 429) is not is_spent:
                shut_out.append(service.name(account))
    assert not shut_out, f"{len(shut_out)} of 25 owners are shut out"
    service.checked()
