"""Error reports, in HTML and in text, do not contain the password of the store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.test import RequestFactory, override_settings
from django.views.debug import ExceptionReporter

from doorkeep import ConfigError
from doorkeep.django import conf
from support.servers import Server

SECRET = "".join(["s3cr3t", "-of-", "redis"])
URL = f"rediss://user:{SECRET}@10.0.0.5:6380/1"


def reports(call: Callable[[], Any]) -> list[str]:
    try:
        call()
    except Exception as error:
        reporter = ExceptionReporter(RequestFactory().get("/"), type(error), error, error.__traceback__)
        return [reporter.get_traceback_html(), reporter.get_traceback_text()]
    raise AssertionError("it did not raise")


def fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("debug", [True, False])
def test_no_error_report_shows_the_password_of_the_store(debug: bool) -> None:
    with override_settings(DEBUG=debug, DOORKEEP={"redis": URL, "rules": ["login_account"]}):
        conf.current()
        for report in reports(fail):
            assert SECRET not in report
            assert "login_account" in report, "the settings are in the report"
            assert "10.0.0.5:6380" in report


def test_a_setting_is_hidden_before_anything_reads_it() -> None:
    with override_settings(DOORKEEP={"redis": URL}):
        assert all(SECRET not in report for report in reports(fail))


def test_a_setting_is_hidden_once_django_is_set_up() -> None:
    apps = "'doorkeep.django', 'django.contrib.contenttypes', 'django.contrib.auth'"
    code = (
        "import django; from django.conf import settings\n"
        f"settings.configure(INSTALLED_APPS=[{apps}], DOORKEEP={{'redis': {URL!r}}})\n"
        "django.setup()\n"
        "print(settings.DOORKEEP)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "{'redis': 'rediss://user:***@10.0.0.5:6380/1'}\n"


@pytest.mark.parametrize("name", ["rulez", "timeout"])
def test_no_variable_of_a_traceback_shows_the_password(name: str) -> None:
    with override_settings(DEBUG=True, DOORKEEP={"redis": URL, name: "?"}):
        for report in reports(conf.current):
            assert SECRET not in report
            assert "ConfigError" in report


def test_no_variable_of_a_view_that_holds_the_setting_shows_the_password() -> None:
    def view() -> None:
        given, url = settings.DOORKEEP, settings.DOORKEEP["redis"]
        raise ZeroDivisionError(len(given), len(url))

    with override_settings(DEBUG=True, DOORKEEP={"redis": URL}):
        for report in reports(view):
            assert SECRET not in report


def test_the_url_is_still_the_original_string(server: Server) -> None:
    given = {"redis": URL, "rules": ["login_account"]}
    with override_settings(DOORKEEP=given):
        url = settings.DOORKEEP["redis"]
        assert url == URL
        assert isinstance(url, str)
        assert repr(url) == "'rediss://user:***@10.0.0.5:6380/1'"
        assert given["redis"] is URL, "the mapping of the project is left as it is"
    with override_settings(DOORKEEP={"redis": server.url, "prefix": "masked"}):
        assert conf.current().limiter.store is not None


@pytest.mark.parametrize("url", ["redis://127.0.0.1/0", "redis://:@h", "nonsense", 5, None])
def test_a_setting_without_a_password_is_shown_unchanged(url: Any) -> None:
    with override_settings(DOORKEEP={"redis": url}):
        assert repr(settings.DOORKEEP["redis"]) == repr(url)


def test_a_password_with_an_at_sign_is_hidden_completely() -> None:
    with override_settings(DOORKEEP={"redis": f"redis://:a@{SECRET}@h/0"}):
        assert SECRET not in repr(settings.DOORKEEP)
        with pytest.raises(ConfigError) as raised:
            conf.read({**settings.DOORKEEP, "on_error": "shut"})
        assert SECRET not in str(raised.value)
