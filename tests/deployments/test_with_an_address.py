"""Programs that see their clients' addresses admit exactly what their policies say, also of clients that reset."""

from __future__ import annotations

import time
from collections import Counter

from expecting import assert_admitted, assert_has_left, assert_resets_are_counted, each_program
from service import FORGED, Service

pytestmark = each_program("tcp")


def test_of_500_parallel_guesses_at_one_account_those_are_checked_that_the_policy_admits(service: Service) -> None:
    (account,) = service.fresh_accounts()
    statuses, checked, seconds = service.guess([account] * 500, service.fresh_source())
    assert_admitted(checked, 500, service.policy.pair, seconds)
    assert set(statuses) <= {service.program.login.wrong, 429}
    # Where a lockout is told with the last guess, that one is denied, too.
    assert len(checked) - 1 <= statuses[service.program.login.wrong] <= len(checked)


def test_of_200_accounts_that_one_address_sprays_those_are_checked_that_the_policy_admits(service: Service) -> None:
    statuses, checked, seconds = service.guess(service.fresh_accounts(200), service.fresh_source())
    assert_admitted(checked, 200, service.policy.address, seconds)
    assert +statuses == +Counter({service.program.login.wrong: len(checked), 429: 200 - len(checked)})


def test_a_forged_header_is_not_believed(service: Service) -> None:
    (account,) = service.fresh_accounts()
    _, checked, seconds = service.guess([account] * 60, service.fresh_source(), lines=FORGED)
    assert_admitted(checked, 60, service.policy.pair, seconds)


def test_the_right_password_is_welcome_again_and_again(service: Service) -> None:
    assert service.log_in(6, service.fresh_source()) == [service.program.login.welcome] * 6


def test_a_check_that_raises_is_run_as_often_as_one_that_returns(service: Service) -> None:
    (account,) = service.fresh_accounts()
    source = service.fresh_source()
    # Few at once: what a crash gives back is only seen by those who come after it.
    _, checked, seconds = service.guess([account] * 100, source, raising=True, at_once=2)
    assert_admitted(checked, 100, service.policy.pair, seconds)
    assert service.guess_in_turn(account, 1, source) == [429]


def test_a_check_that_raises_at_many_accounts_counts_for_the_address(service: Service) -> None:
    accounts, source = service.fresh_accounts(100), service.fresh_source()
    _, checked, seconds = service.guess(accounts, source, raising=True, at_once=2)
    assert_admitted(checked, 100, service.policy.address, seconds)


def test_guesses_whose_connections_are_reset_count_for_their_address(service: Service) -> None:
    assert_resets_are_counted(service)


def test_a_guess_whose_address_is_lost_is_not_run_and_counts_for_no_account(service: Service) -> None:
    policy, (account,) = service.policy, service.fresh_accounts()
    began = time.monotonic()
    # Nobody looks at a connection before it is reset.
    with service.running.standing_still():
        service.reset([account] * 200, service.fresh_source())
    checked = service.checked_at_last()
    if service.program.loses_addresses and policy.asks_addresses:
        assert len(checked) == 0, f"{len(checked)} passwords checked"
    else:
        assert_admitted(checked, 200, policy.pair, time.monotonic() - began)
    assert_has_left(service, account, len(checked))
