"""``@guarded`` over real HTTP: functions and classes, sync and async, and exceptions that give an attempt back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django import VERSION
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, OperationalError
from django.http import Http404, HttpResponse
from django.test import AsyncRequestFactory, RequestFactory

from doorkeep import AttemptDenied, ConfigError, Limiter, StrikeRule, presets
from doorkeep.django import conf, guarded, locked_out, request_keys
from doorkeep.django.attempts import AsyncAttempt
from project import RULES
from support.servers import Server
from urls import codes, ran
from web import attack, post_form

VIEWS = ["/verify", "/averify", "/class", "/aclass"]
KEY = presets.otp_verify.key("ann")


@pytest.mark.parametrize("path", VIEWS)
def test_a_guarded_view_runs_as_often_as_its_rule_admits(served: str, limiter: Limiter, path: str) -> None:
    statuses = attack(served + path, [{"account": "ann"}] * 40, as_form=True)
    assert (statuses.count(200), statuses.count(429)) == (5, 35)
    assert len(ran) == 5


@pytest.mark.parametrize("path", VIEWS)
def test_a_denied_view_reports_the_wait(served: str, limiter: Limiter, path: str) -> None:
    for _ in range(5):
        post_form(served + path, account="ann")
    denied = post_form(served + path, account="ann")
    assert (denied.status_code, denied.headers["Retry-After"]) == (429, "120")
    assert post_form(served + path, account="bob").status_code == 200


@pytest.mark.parametrize("path", VIEWS)
def test_an_attempt_stays_counted_however_the_view_ends(served: str, limiter: Limiter, path: str) -> None:
    for do, status, left in [("crash", 500, 4), ("missing", 404, 3), ("error", 500, 2), ("", 200, 1)]:
        assert post_form(served + path, account="ann", do=do).status_code == status
        assert limiter.peek(KEY).remaining == left


@pytest.mark.parametrize("path", VIEWS)
def test_a_named_failure_gives_back_everything_but_the_address(served: str, configure: Any, path: str) -> None:
    rules = {**RULES, "open-ip": {"rates": "3/1h", "by": ["address"]}}
    named = {"give_back_on": [ZeroDivisionError]}
    limiter = configure(rules=rules, login=list(RULES), paths={path: ["open-ip"]}, **named)
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
    limiter = configure(redis=server.url, prefix="guards", timeout=2, give_back_on=[ZeroDivisionError])
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


def test_a_guard_with_names_of_rules_counts_the_address(configure: Any) -> None:
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
def test_a_lockout_is_sent_to_sync_and_async_receivers(served: str, limiter: Limiter, path: str) -> None:
    heard: list[Any] = []

    def listen(**sent: Any) -> None:
        heard.append(sent["rules"])

    async def listen_async(**sent: Any) -> None:
        heard.append(sent["rules"])

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


def test_a_guard_gives_back_only_on_the_classes_that_it_names(limiter: Limiter) -> None:
    def raising(error: Exception) -> Any:
        @guarded(keys=lambda request: [KEY], give_back_on=OperationalError)
        def view(request: Any) -> Any:
            raise error

        return view

    for error, left in [(OperationalError(), 5), (IntegrityError(), 4), (Http404(), 3), (PermissionDenied(), 2)]:
        with pytest.raises(type(error)):
            raising(error)(RequestFactory().post("/"))
        assert limiter.peek(KEY).remaining == left


def test_a_view_that_is_cancelled_leaves_its_attempt_counted(configure: Any) -> None:
    limiter = configure(give_back_on=Exception)

    @guarded(keys=lambda request: [KEY])
    async def view(request: Any) -> Any:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(view(AsyncRequestFactory().post("/")))
    assert limiter.peek(KEY).remaining == 4


def test_a_denial_of_doorkeep_in_the_view_gives_nothing_back_even_if_it_is_named(configure: Any) -> None:
    limiter = configure(give_back_on=Exception)
    mail = StrikeRule("mail", threshold=1, lockout_window="1h").key("ann")

    @guarded(keys=lambda request: [KEY])
    def view(request: Any) -> Any:
        with limiter.attempt(mail):
            return HttpResponse()

    assert view(RequestFactory().post("/")).status_code == 200
    with pytest.raises(AttemptDenied):
        view(RequestFactory().post("/"))
    assert limiter.peek(KEY).remaining == 3


@pytest.mark.parametrize("path", ["/verify", "/averify"])
def test_a_failure_that_is_settled_is_not_given_back_by_what_happens_later(
    served: str, configure: Any, path: str
) -> None:
    limiter = configure(give_back_on=[ZeroDivisionError])
    assert post_form(served + path, account="ann", do="wrong, then crash").status_code == 500
    assert limiter.peek(KEY).remaining == 4


def test_the_attempt_of_an_async_view_is_false_once_it_is_denied(limiter: Limiter) -> None:
    denied = AsyncAttempt(limiter, limiter.attempt(StrikeRule("once", 1, "1h").key("x")))
    assert denied
    assert not AsyncAttempt(limiter, limiter.attempt(StrikeRule("once", 1, "1h").key("x")))


def test_an_insert_that_fails_after_the_check_does_not_make_the_code_free(served: str, limiter: Limiter) -> None:
    """A column of an audit log is shorter than the client's value, so that the insert fails, and the view with it."""
    statuses = attack(served + "/code", [{"account": "ann", "code": n, "flag": -1} for n in range(1000)], as_form=True)
    assert (statuses.count(500), statuses.count(429)) == (5, 995)
    assert len(codes) == 5


def test_a_guard_refuses_unknown_options() -> None:
    with pytest.raises(ConfigError, match="unknown option of a guard, name=`roundup`"):
        guarded(keys=["login-ip"], roundup="1m")


def test_keys_of_a_request_spell_the_account_as_the_setting_says(limiter: Limiter) -> None:
    request = AsyncRequestFactory().post("/")
    (key,) = request_keys(request, "login_account", account=" ANN ")
    assert key == conf.current().rule("login-account").key("ann")
