"""The setting, the checks of ``manage.py check``, and the command."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import RequestFactory, override_settings

from doorkeep import ConfigError, Limiter, Rule
from doorkeep.django import checks, conf
from project import RULES
from support.servers import Server

BACKEND = "doorkeep.django.backends.DoorkeepBackend"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (5, "DOORKEEP must be a mapping, DOORKEEP=`int`"),
        ({"rulez": []}, "unknown name in DOORKEEP, name=`rulez`"),
        ({"rules": "login_ip"}, "rules must be a list or a mapping, rules=`str`"),
        ({"rules": ["login_ipp"]}, "rules must be rules or names of presets, rule=`login_ipp`"),
        ({"rules": ["login_ip", "login_ip"]}, "rules must have names of their own, rule=`login-ip`"),
        ({"rules": {"login-ip": {"rates": "0/1m", "by": ["address"]}}}, "from 1 to 67108864, rate=`0/1m`"),
        ({"rules": {"login-ip": "20/1m"}}, "a login rule must say what it is keyed by, rule=`login-ip`"),
        ({"rules": ["otp_send"]}, "a login rule must be keyed by account or address, rule=`otp-send`, by=`email`"),
        ({"login": ["other"]}, "login must be among the rules of DOORKEEP, rule=`other`"),
        ({"forgive": ["other"]}, "forgive must be among the rules of DOORKEEP, rule=`other`"),
        ({"account": "no.such.thing"}, "account cannot be imported, path=`no.such.thing`"),
        ({"give_back_on": ["builtins.int"]}, "give_back_on must list exception classes"),
        (
            {"paths": {"open/": ["login_ip"]}},
            "paths must be `/prefix` or the name of a view, `METHOD` before it, path=`open/`",
        ),
        ({"paths": {"/open/": ["login_account"]}}, "rules of paths must be keyed by the address alone"),
        ({"throttles": {"otp": ["otp_ip"]}}, "throttles must be among the rules of DOORKEEP, rule=`otp_ip`"),
        ({"round_up": "1.5s"}, "round"),
        ({"trusted_proxies": ["10.0.0.0/99"]}, "10.0.0.0/99"),
        ({"on_error": "shut"}, "on error must be"),
        ({"login": 5}, "login must be names, login=`5`"),
        ({"login": [5]}, "login must be names, login=`[5]`"),
        ({"give_back_on": 5}, "give_back_on must list exception classes"),
        ({"give_back_on": ["asyncio.CancelledError"]}, "give_back_on must list exception classes"),
        ({"give_back_on": "no.such.thing"}, "give_back_on cannot be imported, path=`no.such.thing`"),
        ({"count_on": []}, "unknown name in DOORKEEP, name=`count_on`"),
        ({"paths": []}, "paths must be a mapping, paths=`list`"),
        ({"rate_limit": "false"}, "rate_limit must be True or False, rate_limit=`false`"),
        ({"trusted_proxies": 5}, "trusted_proxies"),
        ({"clock": 5}, "clock"),
        ({"rules": []}, "login must name at least one rule"),
        ({"rules": {}}, "login must name at least one rule"),
        ({"login": []}, "login must name at least one rule"),
        ({"login": ""}, "login must be among the rules of DOORKEEP, rule=``"),
        ({"paths": {"/open/": []}}, "paths must name at least one rule, path=`/open/`"),
        ({"paths": {"PUSH login": ["login_ip"]}}, "paths must be"),
        ({"paths": {"": ["login_ip"]}}, "paths must be"),
    ],
)
def test_the_check_names_an_invalid_setting(setting: Any, message: str) -> None:
    with override_settings(DOORKEEP=setting):
        (found,) = checks.check_settings()
    assert found.id == "doorkeep.E001"
    assert message in found.msg


def test_a_project_without_the_setting_has_the_presets() -> None:
    with override_settings(DOORKEEP={}):
        configuration = conf.current()
        assert list(configuration.rules) == ["login-ip", "login-account-ip", "login-account"]
        assert configuration.forgive == {"login-account-ip"}
        assert configuration.give_back == {"login-ip", "login-account"}
        assert checks.check_settings() == []


def test_classes_that_give_back_are_listed_directly_or_by_path() -> None:
    given = ["django.db.OperationalError", ConnectionError]
    assert conf.read({"give_back_on": given}).give_back_on == (OperationalError, ConnectionError)
    assert conf.read({"give_back_on": OperationalError}).give_back_on == (OperationalError,)


def test_a_list_may_mix_presets_and_rules() -> None:
    mine = Rule("login-mine", "7/1h", by=("account",))
    assert list(conf.read({"rules": ["login_ip", mine]}).rules) == ["login-ip", "login-mine"]


@pytest.mark.parametrize("setting", [{"rules": []}, {"login": []}])
def test_a_log_in_without_rules_is_also_refused_at_run_time(setting: Any) -> None:
    with override_settings(DOORKEEP=setting), pytest.raises(ConfigError, match="login must name at least one rule"):
        authenticate(RequestFactory().post("/"), username="ann", password="correct horse")


def ids(**settings: Any) -> list[str]:
    with override_settings(DOORKEEP={}, **settings):
        return [str(message.id) for message in checks.check_settings()]


def test_the_checks_name_parts_in_the_wrong_place() -> None:
    ours, session = (
        "doorkeep.django.middleware.DoorkeepMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
    )
    assert ids() == []
    assert ids(AUTHENTICATION_BACKENDS=["backends.Watched", BACKEND]) == ["doorkeep.E002"]
    assert ids(AUTHENTICATION_BACKENDS=["backends.Watched"]) == ["doorkeep.W001"]
    assert ids(MIDDLEWARE=[session]) == ["doorkeep.W002"]
    assert ids(MIDDLEWARE=[session, ours]) == ["doorkeep.W003"]


@pytest.mark.parametrize(
    ("collation", "is_reported"),
    [
        (None, False),
        ("und-u-ks-level1", True),
        ("und-u-ks-level2", True),
        ("utf8mb4_0900_ai_ci", True),
        ("utf8mb4_general_ci", True),
        ("utf8mb4_bin", False),
        ("utf8mb4_0900_as_cs", False),
        ("NOCASE", False),
        ("C", False),
    ],
)
def test_a_collation_that_folds_names_is_warned_about(
    monkeypatch: pytest.MonkeyPatch, collation: str | None, is_reported: bool
) -> None:
    monkeypatch.setattr(User._meta.get_field("username"), "db_collation", collation)
    assert ids() == (["doorkeep.W007"] if is_reported else [])
    assert ids(AUTHENTICATION_BACKENDS=["backends.Watched"]) == ["doorkeep.W001"]
    # A project with its own function is assumed to handle this.
    with override_settings(DOORKEEP={"account": str.lower}):
        assert checks.check_settings() == []


def test_the_default_of_mysql_and_citext_are_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    mysql = {"default": {**settings.DATABASES["default"], "ENGINE": "django.db.backends.mysql"}}
    monkeypatch.setattr(settings, "DATABASES", mysql)
    assert ids() == ["doorkeep.W007"]
    monkeypatch.undo()
    field = User._meta.get_field("username")
    monkeypatch.setattr(field, "__class__", type("CICharField", (type(field),), {}))
    assert ids() == ["doorkeep.W007"]


def test_names_that_share_a_key_are_searched_only_with_database() -> None:
    User.objects.create_user("ANN")
    try:
        with override_settings(DOORKEEP={}):
            assert checks.check_settings() == []
            assert checks.check_database() == []
            (found,) = checks.check_database(databases=["default"])
            assert "ann" not in str(found).lower().replace("such as ann and ann", "")
        with override_settings(DOORKEEP={"account": "test_django_settings.kept_apart"}):
            assert checks.check_database(databases=["default"]) == []
    finally:
        User.objects.filter(username="ANN").delete()
    assert found.id == "doorkeep.W008"
    with override_settings(DOORKEEP={}):
        assert checks.check_database(databases=["default"]) == []


def test_the_check_does_not_fail_on_a_database_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(User._meta, "db_table", "not_migrated_yet")
    with override_settings(DOORKEEP={}):
        assert checks.check_database(databases=["default"]) == []


def kept_apart(name: str) -> str:
    return name


def test_axes_own_backend_with_our_handler_is_warned_about() -> None:
    axes = {"AXES_ENABLED": True, "DOORKEEP": {}}
    ours = "doorkeep.django.axes.DoorkeepAxesBackend"
    for first, expected in [("axes.backends.AxesStandaloneBackend", ["doorkeep.W009"]), (ours, [])]:
        with override_settings(AUTHENTICATION_BACKENDS=[first, "backends.Watched"], **axes):
            assert [message.id for message in checks.check_settings()] == expected
    with override_settings(AXES_HANDLER="axes.handlers.database.AxesDatabaseHandler", **axes):
        assert checks.check_settings() == []


def test_the_guide_lists_every_check() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/django.md").read_text()
    known = re.findall(r"^\* ([EW]\d{3}):", checks.__doc__ or "", re.MULTILINE)
    assert len(known) == 11
    assert [name for name in known if f"`doorkeep.{name}`" not in guide] == []


def test_the_advice_on_rules_is_a_warning() -> None:
    with override_settings(DOORKEEP={"rules": ["login_account_ip"]}):
        assert {message.id for message in checks.check_settings()} == {"doorkeep.W004"}


def test_only_a_deployment_is_warned_about_memory_that_is_not_shared() -> None:
    with override_settings(DOORKEEP={}):
        assert [message.id for message in checks.check_deployment()] == ["doorkeep.W005"]
    with override_settings(DOORKEEP={"redis": "redis://127.0.0.1:1/0"}):
        assert checks.check_deployment() == []
    with override_settings(DOORKEEP="redis"):
        assert [message.id for message in checks.check_settings()] == ["doorkeep.E001"]
        assert checks.check_deployment() == []


def test_django_runs_the_checks() -> None:
    with override_settings(DOORKEEP={"rulez": 1}), pytest.raises(Exception, match=r"doorkeep\.E001"):
        call_command("check")


def test_there_is_nothing_to_migrate() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    assert apps.get_model("doorkeep", "Lockout")._meta.managed is False


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("doorkeep", *words, stdout=out, no_color=True)
    return out.getvalue()


def test_the_command_shows_rules_and_reports_what_it_cannot_see(limiter: Limiter) -> None:
    shown = run("status")
    assert "login-account-ip                 5 strikes, then locked for 0:15:00" in shown
    assert "store: none; state is in the memory of each worker" in shown
    with pytest.raises(CommandError, match="state is in the memory of each worker"):
        run("reset", "login_account", "ann")


def test_the_command_unlocks_in_the_store(configure: Any, server: Server) -> None:
    configure(redis=server.url, prefix="command", rules=RULES)
    request = RequestFactory().post("/")
    for _ in range(5):
        authenticate(request, username="ann", password="guess")
    key = conf.current().rule("login-account-ip").key("ann", "127.0.0.1")
    assert not conf.current().limiter.peek(key)
    assert f"store: 127.0.0.1:{server.port} answers" in run("status")
    shown = run("reset", "login_account_ip", " ANN ", "127.0.0.1")
    assert shown.startswith("forgotten, rule=`login-account-ip`")
    assert "ann" not in shown.lower()
    assert conf.current().limiter.peek(key).remaining == 5
    server.kill()
    with pytest.raises(CommandError, match="the store was not reached"):
        run("reset", "login_account_ip", "ann", "127.0.0.1")
    with pytest.raises(CommandError, match="on_error decides"):
        run("status")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["other", "ann"], "a rule must be among the rules of DOORKEEP, rule=`other`"),
        (["login_account_ip", "ann"], "is keyed by account, address: give as many values"),
        (["login_ip", "nowhere"], "address"),
    ],
)
def test_the_command_refuses_arguments_that_do_not_name_a_key(limiter: Limiter, words: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run("reset", *words)


def test_the_command_checks_the_settings() -> None:
    with override_settings(DOORKEEP={"redis": "redis://127.0.0.1:1/0"}):
        assert run("check") == "nothing to remark\n"
    with override_settings(DOORKEEP={"rules": ["login_account_ip"]}):
        assert "doorkeep.W004" in run("check")
    with override_settings(DOORKEEP={"rulez": 1}):
        with pytest.raises(CommandError, match="the settings are not acceptable"):
            run("check")
        with pytest.raises(CommandError, match="unknown name in DOORKEEP"):
            run("status")


def test_a_rule_is_found_by_both_names(limiter: Limiter) -> None:
    assert conf.current().rule("login_ip") is conf.current().rule("login-ip")
    with pytest.raises(ConfigError, match="rule=`nothing`"):
        conf.current().rule("nothing")
