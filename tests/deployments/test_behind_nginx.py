"""Programs behind nginx, over TCP and over a Unix socket, count the clients of nginx, whatever they write."""

from __future__ import annotations

from expecting import assert_admitted, assert_has_left, assert_resets_are_counted, each_program
from service import CROWD, FORGED, Service

pytestmark = each_program("nginx-tcp", "nginx-unix")


def test_of_600_accounts_that_one_client_sprays_those_are_checked_that_the_policy_admits(service: Service) -> None:
    _, checked, seconds = service.guess(service.fresh_accounts(600), service.fresh_source())
    assert_admitted(checked, 600, service.policy.address, seconds)


def test_two_clients_have_budgets_of_their_own(service: Service) -> None:
    (account,) = service.fresh_accounts()
    _, checked, seconds = service.guess([account] * 30, service.fresh_source())
    assert_admitted(checked, 30, service.policy.pair, seconds)
    assert_has_left(service, account, len(checked))


def test_a_client_that_forges_headers_gains_nothing(service: Service) -> None:
    (account,) = service.fresh_accounts()
    _, checked, seconds = service.guess([account] * 60, service.fresh_source(), lines=FORGED)
    assert_admitted(checked, 60, service.policy.pair, seconds)


def test_a_client_gains_nothing_by_so_many_header_lines_that_the_one_of_nginx_is_dropped(service: Service) -> None:
    _, checked, seconds = service.guess(service.fresh_accounts(60), service.fresh_source(), lines=CROWD)
    assert len(checked) <= service.policy.address.bounds(60, seconds)[1]


def test_the_right_password_is_welcome_again_and_again(service: Service) -> None:
    assert service.log_in(6, service.fresh_source()) == [service.program.login.welcome] * 6


def test_guesses_whose_connections_are_reset_count_for_their_client(service: Service) -> None:
    assert_resets_are_counted(service)
