"""The page of the admin: its permissions, its content, and what unlocking does and logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.models import Permission
from django.test import Client, RequestFactory

from doorkeep import Limiter
from doorkeep.django import conf

PAGE = "/admin/doorkeep/lockout/"


@pytest.fixture
def staff() -> Callable[..., Client]:
    """Return a function that logs in a member of the staff with these permissions."""

    def log_in(*permissions: str, **options: Any) -> Client:
        users = get_user_model().objects
        users.filter(username="staff").delete()
        user = users.create_user("staff", password="x", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client = Client(**options)
        client.force_login(user, "backends.Watched")
        return client

    return log_in


def lock() -> Any:
    for _ in range(6):
        authenticate(RequestFactory().post("/"), username="ann", password="guess")
    return conf.current().rule("login-account-ip").key("ann", "127.0.0.1")


def test_the_page_shows_rules_counters_and_events_and_no_account(limiter: Limiter, staff: Any) -> None:
    lock()
    page = staff("view_lockout").get(PAGE)
    assert page.status_code == 200
    shown = page.content.decode()
    assert "5 strikes, then locked for 0:15:00" in shown
    assert "locked 1" in shown
    assert "lockout engaged, rules=`login-account-ip`" in shown
    assert "ann" not in shown.replace("channel", "")
    assert "Unlock</h2>" not in shown


def test_the_page_is_in_the_index_for_users_with_permission(limiter: Limiter, staff: Any) -> None:
    assert PAGE in staff("view_lockout").get("/admin/").content.decode()
    assert PAGE not in staff().get("/admin/").content.decode()


def test_a_user_without_permission_sees_no_page(limiter: Limiter, staff: Any) -> None:
    assert Client().get(PAGE).status_code == 302
    assert staff().get(PAGE).status_code == 403


def test_unlocking_forgets_the_key_and_is_logged_without_the_account(limiter: Limiter, staff: Any) -> None:
    key = lock()
    assert not limiter.peek(key)
    client = staff("view_lockout", "unlock_lockout")
    fields = {"rule": "login-account-ip", "by_account": "Ann", "by_address": "127.0.0.1"}
    assert client.post(PAGE, fields).status_code == 302
    assert limiter.peek(key).remaining == 5
    entry = LogEntry.objects.latest("pk")
    assert entry.change_message == "unlocked, rule=login-account-ip, forgotten=True"
    assert key.digest not in entry.change_message
    assert entry.user.get_username() == "staff"


def test_unlocking_needs_its_permission_and_a_token(limiter: Limiter, staff: Any) -> None:
    key = lock()
    fields = {"rule": "login-account-ip", "by_account": "ann", "by_address": "127.0.0.1"}
    assert staff("view_lockout").post(PAGE, fields).status_code == 403
    client = staff("view_lockout", "unlock_lockout", enforce_csrf_checks=True)
    assert client.post(PAGE, fields).status_code == 403
    assert not limiter.peek(key)


def test_unlocking_asks_for_what_is_missing(limiter: Limiter, staff: Any) -> None:
    client = staff("view_lockout", "unlock_lockout")
    page = client.post(PAGE, {"rule": "login-account-ip", "by_account": "ann"})
    assert page.status_code == 200
    assert "rule login-account-ip needs: account, address" in page.content.decode()
