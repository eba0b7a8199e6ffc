"""Programs whose clients have no address work, and admit what the rules that remain say."""

from __future__ import annotations

import re

import pytest
from expecting import assert_admitted, each_program
from programs import PROGRAMS, Program
from service import FORGED, Service, in_process

ANYBODY = ""
over_a_socket = each_program("unix")
in_the_process = pytest.mark.parametrize(
    "program",
    [pytest.param(program, id=program.name) for program in PROGRAMS if program.server != "node"],
)


@over_a_socket
def test_the_right_password_is_welcome_over_a_socket_again_and_again(service: Service) -> None:
    assert service.log_in(6, ANYBODY) == [service.program.login.welcome] * 6


@over_a_socket
def test_of_60_guesses_over_a_socket_those_are_checked_that_rules_on_accounts_admit(service: Service) -> None:
    (account,) = service.fresh_accounts()
    statuses, checked, seconds = service.guess([account] * 60, ANYBODY)
    assert_admitted(checked, 60, service.policy.account, seconds)
    assert set(statuses) <= {service.program.login.wrong, 429}


@over_a_socket
def test_a_header_over_a_socket_is_not_believed(service: Service) -> None:
    (account,) = service.fresh_accounts()
    _, checked, seconds = service.guess([account] * 60, ANYBODY, lines=FORGED)
    assert_admitted(checked, 60, service.policy.account, seconds)


@over_a_socket
def test_a_program_says_that_it_counts_no_addresses(service: Service) -> None:
    if service.policy.asks_addresses:
        service.guess_in_turn(service.fresh_accounts()[0], 1, ANYBODY)
        assert re.search("no address|without an address", service.running.log(), re.I)


@in_the_process
def test_the_right_password_is_welcome_from_the_test_client(program: Program) -> None:
    login, policy = program.login, program.policy
    wrong = [(login.names.format(1), f"guess {n}") for n in range(40)]
    statuses = in_process(program, [login.right] * 6 + wrong)
    assert statuses[:6] == [login.welcome] * 6
    admitted = min(40, policy.account.most)
    # Where a lockout is told with the last guess, that one is denied, too.
    assert admitted - 1 <= statuses[6:].count(login.wrong) <= admitted
