"""The authentication backend, without a server: requests that have no address, tests of a project, signals, stores."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django import VERSION
from django.contrib import auth
from django.contrib.auth.signals import user_login_failed
from django.test import Client, RequestFactory, override_settings
from django.views.debug import ExceptionReporter

import doorkeep
from backends import ASKED, SEEN
from doorkeep import ConfigError, Limiter
from doorkeep.django import conf, locked_out, signals, store_failed
from doorkeep.django.backends import DoorkeepBackend
from project import PASSWORD, RULES
from support.servers import Server

# Not the folder of the clone, which may have any name.
PACKAGE = str(Path(doorkeep.__file__).parent)


def remaining(rule: str, *parts: str) -> int:
    return conf.current().limiter.peek(conf.current().rule(rule).key(*parts)).remaining


def test_client_login_counts_by_the_account_alone(limiter: Limiter) -> None:
    assert not Client().login(username="ann", password="guess")
    assert remaining("login-account", "ann") == 49
    for _ in range(60):
        assert Client().login(username="ann", password=PASSWORD)
    assert remaining("login-account", "ann") == 49
    assert limiter.stats()["denied"] == {}


def test_client_login_names_the_backend_that_knew_the_user(limiter: Limiter) -> None:
    client = Client()
    assert client.login(username="ann", password=PASSWORD)
    assert client.session["_auth_user_backend"] == "backends.Watched"
    assert client.get("/who").json()["user"] == "ann"


def test_force_login_counts_nothing(limiter: Limiter) -> None:
    Client().force_login(auth.get_user_model().objects.get(username="ann"), "backends.Watched")
    assert len(limiter) == 0


def test_a_session_that_names_this_backend_is_served_by_the_next_backend(limiter: Limiter) -> None:
    client = Client()
    client.force_login(auth.get_user_model().objects.get(username="ann"), "doorkeep.django.backends.DoorkeepBackend")
    assert client.get("/who").json()["user"] == "ann"


def test_rules_on_the_address_alone_leave_a_call_without_a_request_uncounted(configure: Any) -> None:
    limiter = configure(rules={"login-ip": RULES["login-ip"]})
    assert auth.authenticate(None, username="ann", password=PASSWORD).get_username() == "ann"
    assert auth.authenticate(None, username="ann", password="guess") is None
    assert len(limiter) == 0


def test_a_denied_guess_sends_the_signal_of_a_failed_log_in(limiter: Limiter) -> None:
    heard: list[Any] = []

    def listen(**sent: Any) -> None:
        heard.append(sent["credentials"])

    user_login_failed.connect(listen)
    try:
        request = RequestFactory().post("/")
        for _ in range(6):
            assert auth.authenticate(request, username="ann", password="guess") is None
    finally:
        user_login_failed.disconnect(listen)
    assert len(SEEN) == 5
    assert len(heard) == 6
    assert heard[5]["username"] == "ann"
    assert "guess" not in str(heard)


def test_later_backends_are_asked_once(limiter: Limiter) -> None:
    assert auth.authenticate(RequestFactory().post("/"), username="ann", password="guess") is None
    assert len(ASKED) == 1


def test_a_password_without_a_known_account_credential_is_refused(limiter: Limiter) -> None:
    with pytest.raises(ConfigError, match="credentials with a password must name an account"):
        auth.authenticate(RequestFactory().post("/"), phone="1", password="guess")


# Earlier versions of Django do not call the coroutines of backends.
@pytest.mark.parametrize("is_async", [False, True] if VERSION >= (5, 0) else [False])
def test_no_error_report_contains_the_password(limiter: Limiter, is_async: bool) -> None:
    secret = " ".join(["correct", "horse"])
    request = RequestFactory().post("/")
    with pytest.raises(ConfigError) as raised:
        if is_async:
            asyncio.run(DoorkeepBackend().aauthenticate(request, phone="1", password=secret))
        else:
            DoorkeepBackend().authenticate(request, phone="1", password=secret)
    frames = ExceptionReporter(request, raised.type, raised.value, raised.tb).get_traceback_frames()
    shown = [str(value) for frame in frames if frame["filename"].startswith(PACKAGE) for _, value in frame["vars"]]
    assert shown
    assert not [value for value in shown if secret in value]


def test_the_lockout_is_reported_once_and_only_after_a_wrong_password(limiter: Limiter) -> None:
    heard: list[Any] = []

    def listen(**sent: Any) -> None:
        heard.append((sent["rules"], sent["request"].path))

    locked_out.connect(listen)
    try:
        request = RequestFactory().post("/here")
        for password in ["guess"] * 4 + [PASSWORD] + ["guess"] * 7:
            auth.authenticate(request, username="ann", password=password)
    finally:
        locked_out.disconnect(listen)
    assert heard == [(("login-account-ip",), "/here")]
    assert [record.getMessage() for record in signals.recent] == ["lockout engaged, rules=`login-account-ip`"]


def test_an_outage_is_reported_once_and_decided_locally(configure: Any, server: Server) -> None:
    heard: list[Any] = []

    def listen(**sent: Any) -> None:
        heard.append(sent["event"])

    store_failed.connect(listen)
    try:
        configure(redis=server.url, prefix="outage")
        request = RequestFactory().post("/")
        assert auth.authenticate(request, username="ann", password="guess") is None
        assert heard == []
        server.kill()
        answers = [auth.authenticate(RequestFactory().post("/"), username="ann", password="x") for _ in range(7)]
    finally:
        store_failed.disconnect(listen)
    assert answers == [None] * 7
    assert heard == ["store_down"]
    assert len(SEEN) == 6


def test_no_log_line_contains_an_account(limiter: Limiter, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "doorkeep"):
        for _ in range(7):
            auth.authenticate(RequestFactory().post("/"), username="ann", password="guess")
    assert "ann" not in caplog.text.replace("annotations", "")


def test_lines_reach_the_terminal_of_a_project_without_logging_configuration() -> None:
    code = (
        "import django; from django.conf import settings; from doorkeep import Limiter, StrikeRule\n"
        "settings.configure(INSTALLED_APPS=['doorkeep.django', 'django.contrib.contenttypes', 'django.contrib.auth'])\n"
        "django.setup()\n"
        "from doorkeep.django import signals\n"
        "signals.report_lockout(None, Limiter().decide(StrikeRule('code', 1, '1m').key('x')))\n"
        "assert len(signals.recent) == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "lockout engaged, rules=`code`\n"


def test_a_setting_that_changes_is_read_again(configure: Any) -> None:
    first = configure()
    with override_settings(DOORKEEP={"rules": ["login_ip"]}):
        assert list(conf.current().rules) == ["login-ip"]
    assert conf.current().limiter is not first
