"""``@guarded`` over real HTTP: functions and classes, sync and async, and what gives an attempt back."""

from __future__ import annotations

from typing import Any

import pytest
from django import VERSION
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.test import AsyncRequestFactory, RequestFactory

from doorkeep import ConfigError, Limiter, presets
from doorkeep.django import conf, guarded, locked_out, request_keys
from doorkeep.django.attempts import counts
from project import RULES
from support.servers import Server
from urls import ran
from web import attack, post_form

VIEWS = ["/verify", "/averify", "/class", "/aclass"]
KEY = presets.otp_verify.key("ann")


@pytest.mark.parametrize("path", VIEWS)
def test_a_guarded_view_runs_as_often_as_its_rule_admits(served: str, limiter: Limiter, path: str) -> None:
    statuses = attack(served + path, [{"account": "ann"}] * 40, as_form=True)
    assert (statuses.count(200), statuses.count(429)) == (5, 35)
    assert len(ran) == 5


@pytest.mark.parametrize("path", VIEWS)
def test_a_denied_view_tells_the_wait(served: str, limiter: Limiter, path: str) -> None:
    for _ in range(5):
        post_form(served + path, account="ann")
    denied = post_form(served + path, account="ann")
    assert (denied.status_code, denied.headers["Retry-After"]) == (429, "120")
    assert post_form(served + path, account="bob").status_code == 200


@pytest.mark.parametrize("path", VIEWS)
def test_a_crash_is_given_back_and_an_answer_is_not(served: str, limiter: Limiter, path: str) -> None:
    for do, status, left in [("crash", 500, 5), ("missing", 404, 4), ("error", 500, 3), ("", 200, 2)]:
        assert post_form(served + path, account="ann", do=do).status_code == status
        assert limiter.peek(KEY).remaining == left


@pytest.mark.parametrize("path", VIEWS)
def test_a_crash_gives_back_what_the_guard_counted_and_not_what_the_middleware_did(
    served: str, configure: Any, path: str
) -> None:
    rules = {**RULES, "open-ip": {"rates": "3/1h", "by": ["address"]}}
    limiter = configure(rules=rules, login=list(RULES), paths={path: ["open-ip"]})
    assert post_form(served + path, account="ann", do="crash").status_code == 500
    assert limiter.peek(KEY).remaining == 5
    assert limiter.peek(conf.current().rule("open-ip").ip_key("127.0.0.1")).remaining == 2


@pytest.mark.parametrize("path", ["/verify", "/averify"])
def test_a_view_settles_its_attempt(served: str, limiter: Limiter, path: str) -> None:
    for _ in range(4):
        post_form(served + path, account="ann")
    assert post_form(served + path, account="ann", do="right").status_code == 200
    assert limiter.peek(KEY).remaining == 5


@pytest.mark.parametrize("path", VIEWS)
def test_a_missing_field_is_answered_with_400_and_counts_nothing(served: str, limiter: Limiter, path: str) -> None:
    assert post_form(served + path, other="ann").status_code == 400
    assert post_form(served + path, account="  ").status_code == 400
    assert (len(limiter), ran) == (0, [])


@pytest.mark.parametrize("path", VIEWS)
def test_guards_over_a_store_admit_the_same(served: str, configure: Any, server: Server, path: str) -> None:
    limiter = configure(redis=server.url, prefix="guards", timeout=2)
    statuses = attack(served + path, [{"account": "ann"}] * 40, as_form=True)
    assert (statuses.count(200), statuses.count(429)) == (5, 35)
    limiter.reset(KEY)
    assert post_form(served + path, account="ann", do="crash").status_code == 500
    assert limiter.peek(KEY).remaining == 5


def test_a_closed_limiter_without_its_store_is_answered_with_503(served: str, configure: Any, server: Server) -> None:
    configure(redis=server.url, on_error="closed", rules=RULES)
    server.kill()
    for path in ("/verify", "/averify"):
        answer = post_form(served + path, {"Accept": "application/json"}, account="ann")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert answer.json() == {"detail": "Temporarily unavailable"}
    answer = post_form(served + "/form/", username="ann", password="guess")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert ran == []


def test_names_of_rules_guard_by_the_address(configure: Any) -> None:
    configure(rules={**RULES, "open-ip": {"rates": "2/1h", "by": ["address"]}}, login=list(RULES))
    view = guarded(keys=["open-ip"])(lambda request: HttpResponse())
    assert [view(RequestFactory().post("/")).status_code for _ in range(3)] == [200, 200, 429]


def test_two_guards_of_one_request_count_a_key_once(limiter: Limiter) -> None:
    def keys(request: Any) -> Any:
        return [KEY]

    view = guarded(keys=keys)(guarded(keys=keys)(lambda request: HttpResponse()))
    assert view(RequestFactory().post("/")).status_code == 200
    assert limiter.peek(KEY).remaining == 4


@pytest.mark.parametrize("path", ["/verify", "/averify"])
def test_a_lockout_is_told_to_listeners_of_both_kinds(served: str, limiter: Limiter, path: str) -> None:
    heard: list[Any] = []

    def listen(**told: Any) -> None:
        heard.append(told["rules"])

    async def listen_async(**told: Any) -> None:
        heard.append(told["rules"])

    listeners = [listen, listen_async] if VERSION >= (5, 0) else [listen]
    for listener in listeners:
        locked_out.connect(listener)
    try:
        for _ in range(7):
            post_form(served + path, account="ann", strict="yes")
    finally:
        for listener in listeners:
            locked_out.disconnect(listener)
    assert heard == [("otp-strict",)] * len(listeners)


def test_an_exception_of_the_application_is_an_answer_when_it_is_named(limiter: Limiter) -> None:
    @guarded(keys=lambda request: [KEY], count_on=ZeroDivisionError)
    def view(request: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        view(RequestFactory().post("/"))
    assert limiter.peek(KEY).remaining == 4


def test_an_answer_inside_a_group_of_exceptions_counts() -> None:
    class Group(Exception):
        exceptions = (ZeroDivisionError(), ValidationError("wrong"))

    assert counts(Group())
    assert not counts(ZeroDivisionError())


def test_a_guard_has_no_options_that_nobody_reads() -> None:
    with pytest.raises(ConfigError, match="unknown option of a guard, name=`roundup`"):
        guarded(keys=["login-ip"], roundup="1m")


def test_keys_of_a_request_spell_the_account_as_the_setting_says(limiter: Limiter) -> None:
    request = AsyncRequestFactory().post("/")
    (key,) = request_keys(request, "login_account", account=" ANN ")
    assert key == conf.current().rule("login-account").key("ann")
