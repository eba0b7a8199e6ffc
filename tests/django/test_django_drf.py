"""Django REST framework: the throttle, and log-ins with its own authentication."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from django.test import RequestFactory
from rest_framework.views import APIView

from backends import SEEN
from doorkeep import ConfigError, Limiter, presets
from doorkeep.django import conf
from doorkeep.drf import DoorkeepThrottle
from project import PASSWORD, RULES
from support.servers import Server
from urls import Throttled, ran
from web import CLIENT, attack, post_json

OTP: dict[str, Any] = {
    "rules": [presets.login_ip, presets.login_account_ip, presets.login_account, presets.otp_ip, presets.otp_verify],
    "login": ["login_ip", "login_account_ip", "login_account"],
    "throttles": {"otp": ["otp_ip", "otp_verify"]},
}


def test_a_throttled_view_runs_as_often_as_all_rules_admit(served: str, configure: Any) -> None:
    limiter = configure(**OTP)
    statuses = attack(served + "/api/throttled", [{"account": "ann"}] * 40)
    assert (statuses.count(200), statuses.count(429)) == (5, 35)
    assert len(ran) == 5
    # All or nothing: requests that the account denied cost the address nothing.
    assert limiter.peek(presets.otp_ip.ip_key("127.0.0.1")).remaining == 5


def test_a_throttled_view_reports_the_wait(served: str, configure: Any) -> None:
    configure(**OTP)
    for _ in range(5):
        post_json(served + "/api/throttled", account="ann")
    denied = post_json(served + "/api/throttled", account="ann")
    assert (denied.status_code, denied.headers["Retry-After"]) == (429, "120")


@pytest.mark.parametrize("account", [None, "", 5, ["ann"]])
def test_an_invalid_key_is_answered_with_400(served: str, configure: Any, account: Any) -> None:
    limiter = configure(**OTP)
    assert post_json(served + "/api/throttled", account=account).status_code == 400
    assert len(limiter) == 0


def test_a_view_that_fails_is_given_back_only_when_the_class_is_named(served: str, configure: Any) -> None:
    for named, left in [((), 4), ([ZeroDivisionError], 5)]:
        limiter = configure(**OTP, give_back_on=named)
        assert post_json(served + "/api/throttled", account="ann", do="crash").status_code == 500
        assert limiter.peek(presets.otp_verify.key("ann")).remaining == left
        assert limiter.peek(presets.otp_ip.ip_key("127.0.0.1")).remaining == 9


def test_a_closed_limiter_without_its_store_is_answered_with_503(served: str, configure: Any, server: Server) -> None:
    configure(**OTP, redis=server.url, on_error="closed")
    server.kill()
    answer = post_json(served + "/api/throttled", account="ann")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.headers["Cache-Control"] == "no-store"
    assert ran == []


def basic(url: str, password: str) -> int:
    CLIENT.cookies.clear()
    token = b64encode(f"ann:{password}".encode()).decode()
    return CLIENT.get(f"{url}/api/basic", headers={"Authorization": f"Basic {token}"}).status_code


def test_basic_authentication_counts_only_wrong_passwords(served: str, limiter: Limiter) -> None:
    assert [basic(served, PASSWORD) for _ in range(60)] == [200] * 60
    assert [basic(served, "guess") for _ in range(6)] == [401] * 5 + [429]
    assert len(SEEN) == 65
    assert limiter.peek(conf.current().rule("login-account").key("ann")).remaining == 45


@pytest.mark.parametrize("path", ["/api/function", "/api/scopeless", "/api/listed"])
def test_a_throttle_that_a_view_names_without_a_scope_fails(served: str, configure: Any, path: str) -> None:
    configure(**OTP)
    assert [post_json(served + path, account="ann").status_code for _ in range(30)] == [500] * 30
    assert ran == []


def test_a_throttle_of_a_function_has_its_own_scope(served: str, configure: Any) -> None:
    configure(**OTP)
    statuses = attack(served + "/api/function-of-scope", [{"account": "ann"}] * 40)
    assert (statuses.count(200), statuses.count(429)) == (5, 35)
    assert post_json(served + "/api/function-of-scope", account=None).status_code == 400


def test_the_default_throttle_ignores_views_without_a_scope(configure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(**OTP)
    monkeypatch.setattr(APIView, "throttle_classes", [DoorkeepThrottle])

    class Plain(Throttled):
        throttle_classes = property(lambda self: APIView.throttle_classes)
        throttle_scope = None  # type: ignore[assignment]

    view, sent = Plain.as_view(), {"data": {"account": "ann"}, "content_type": "application/json"}
    assert [view(RequestFactory().post("/", **sent)).status_code for _ in range(30)] == [200] * 30


def test_a_scope_without_rules_is_an_error_of_the_setting() -> None:
    with pytest.raises(ConfigError, match="throttles must name at least one rule, scope=`otp`"):
        conf.read({**OTP, "throttles": {"otp": []}})


@pytest.mark.parametrize("path", ["/api/throttled", "/api/function-of-scope"])
def test_refusals_of_a_throttle_are_not_cached(served: str, configure: Any, path: str) -> None:
    configure(**OTP)
    answers = [post_json(served + path, account=account) for account in (None, *["ann"] * 6)]
    assert [answer.status_code for answer in answers] == [400] + [200] * 5 + [429]
    kept = [answer.headers.get("Cache-Control") for answer in answers]
    assert kept == ["no-store"] + [None] * 5 + ["no-store"]


def test_rules_of_the_throttle_do_not_apply_to_the_log_in() -> None:
    assert [rule.name for rule in conf.read(OTP).login] == ["login-ip", "login-account-ip", "login-account"]
    assert [rule.name for rule in conf.read({"rules": RULES}).login] == list(RULES)
