"""Accounts as they are stored: aliases that the database folds, names that differ in case, managers of all kinds."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import pytest
from django import VERSION
from django.contrib import auth
from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.backends.signals import connection_created
from django.test import RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext

from backends import SEEN, CountingHasher
from doorkeep import Limiter
from doorkeep.django import conf
from doorkeep.django.backends import DoorkeepBackend
from project import PASSWORD, RULES
from test_django_login import comparable, left
from web import post_form, post_json

STRICT = {
    "login-ip": {"rates": "1000/1h", "by": ["address"]},
    "login-account-ip": {"threshold": 5, "lockout_window": "15m", "by": ["account", "address"]},
    "login-account": {"rates": "20/1h", "by": ["account"]},
}
# Letters with accents: one name in the database, and different keys.
MARKS = [chr(code) for code in range(0x0300, 0x0345) if code not in (0x0340, 0x0341, 0x0343, 0x0344)]
ALIASES = [f"a{''.join(marks)}nn" for marks in combinations_with_replacement(MARKS, 2)][:2000]


def folded(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(part for part in parts if unicodedata.category(part) not in ("Mn", "Cf"))


def compare(one: str, other: str) -> int:
    first, second = folded(one), folded(other)
    return (first > second) - (first < second)


def add_collation(connection: Any, **_: Any) -> None:
    connection.connection.create_collation("folding", compare)


@pytest.fixture
def folding() -> Iterator[None]:
    """Make the database ignore case, accents and invisible characters when it compares names."""
    connection_created.connect(add_collation)
    collate("varchar(150) NOT NULL", "varchar(150) COLLATE folding NOT NULL")
    yield
    collate("varchar(150) COLLATE folding NOT NULL", "varchar(150) NOT NULL")
    connection_created.disconnect(add_collation)


def collate(old: str, new: str) -> None:
    # Django recreates the tables for this, which breaks the tables that refer to them.
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA writable_schema = ON")
        change = "UPDATE sqlite_master SET sql = replace(sql, %s, %s) WHERE name = 'auth_user'"
        cursor.execute(change, [f'"username" {old}', f'"username" {new}'])
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("REINDEX auth_user")
    connection.close()


def guess(name: str, address: str, password: str = "guess") -> Any:
    request = RequestFactory().post("/", REMOTE_ADDR=address)
    return auth.authenticate(request, username=name, password=password)


def addresses() -> Iterator[str]:
    return (f"198.51.{n // 250}.{n % 250 + 1}" for n in range(100_000))


def test_2000_aliases_of_one_account_share_its_budget(configure: Any, folding: None) -> None:
    limiter = configure(rules=STRICT)
    assert len(set(ALIASES)) == 2000
    for alias, address in zip(ALIASES, addresses(), strict=False):
        assert guess(alias, address) is None
    assert len(SEEN) == 20
    assert limiter.peek(conf.current().rule("login-account").key("ann")).remaining == 0
    assert guess("bob", "203.0.113.9", PASSWORD) is not None


# Earlier versions of Django do not call the coroutines of backends.
@pytest.mark.parametrize("asynchronous", [False, True] if VERSION >= (5, 0) else [False])
def test_an_alias_with_the_right_password_logs_in_only_while_the_account_has_budget(
    configure: Any, folding: None, asynchronous: bool
) -> None:
    configure(rules=STRICT)

    def tried(name: str, address: str, password: str) -> bool:
        request = RequestFactory().post("/", REMOTE_ADDR=address)
        backend = DoorkeepBackend()
        given = {"username": name, "password": password}
        try:
            if asynchronous:
                return asyncio.run(backend.aauthenticate(request, **given)) is not None
            return backend.authenticate(request, **given) is not None
        except PermissionDenied:
            return False

    places = addresses()
    assert tried("\u00c1nn", next(places), PASSWORD)
    for alias in ALIASES[:20]:
        assert not tried(alias, next(places), "guess")
    assert not tried("\u00c1nn", next(places), PASSWORD)
    assert not tried("ann", next(places), PASSWORD)


def test_a_right_password_by_an_alias_forgives_only_when_the_stored_name_is_the_key(
    configure: Any, folding: None
) -> None:
    configure()
    for _ in range(3):
        guess("ann", "127.0.0.1")
    assert left("ann") == 2
    # The alias is a different string than the stored name: it costs nothing, and forgives nothing.
    assert guess("\u00e1nn", "127.0.0.1", PASSWORD) is not None
    assert (left("ann"), left("\u00e1nn")) == (2, 5)
    assert guess("ANN", "127.0.0.1", PASSWORD) is not None
    assert left("ann") == 5


def test_an_alias_that_its_account_denies_is_answered_like_a_wrong_password(
    wsgi: str, configure: Any, folding: None
) -> None:
    configure(rules=STRICT, rate_limit=True, trusted_proxies=["127.0.0.0/8"])
    for n in range(25):
        post_json(wsgi + "/api/login", {"X-Forwarded-For": f"203.0.113.{n}"}, username="ann", password="guess")

    def answers(name: str) -> list[Any]:
        sent = {"X-Forwarded-For": "198.51.100.7", "Accept": "text/html"}
        answers = [comparable(post_form(wsgi + "/form/", sent, username=name, password="guess")) for _ in range(7)]
        return [(status, headers, text.replace(name, "")) for status, headers, text in answers]

    assert [status for status, _, _ in answers("\u00e1nn")] == [200] * 5 + [429] * 2
    configure(rules=STRICT, rate_limit=True, trusted_proxies=["127.0.0.0/8"])
    for n in range(25):
        post_json(wsgi + "/api/login", {"X-Forwarded-For": f"203.0.113.{n}"}, username="ann", password="guess")
    assert answers("\u00e1nn") == answers("n\u00f3b")


def test_known_unknown_and_denied_names_make_the_same_queries_and_hashes(
    configure: Any, folding: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(rules=STRICT)
    hashed: list[str] = []
    encode = CountingHasher.encode

    def counting(self: Any, password: str, salt: str, iterations: int | None = None) -> str:
        hashed.append(password)
        return encode(self, password, salt, iterations)

    monkeypatch.setattr(CountingHasher, "encode", counting)

    def work(name: str) -> Any:
        hashed.clear()
        with CaptureQueriesContext(connection) as queries:
            assert guess(name, "203.0.113.9") is None
        return [query["sql"].replace(name, "NAME") for query in queries.captured_queries], len(hashed)

    known, unknown = work("ann"), work("nobody")
    assert known == unknown
    for alias, address in zip(ALIASES, addresses(), strict=False):
        guess(alias, address)
    SEEN.clear()
    assert work("\u00e0nn") == known
    assert SEEN == []


def test_the_spellings_of_one_email_and_its_user_name_share_the_account(limiter: Limiter) -> None:
    backends = ["doorkeep.django.backends.DoorkeepBackend", "backends.Watched", "backends.ByEmail"]
    with override_settings(AUTHENTICATION_BACKENDS=backends):
        request = RequestFactory().post("/")
        for _ in range(3):
            assert auth.authenticate(request, email="ann@example.com", password="guess") is None
        assert (left("ann"), left("ann@example.com")) == (2, 2)
        assert auth.authenticate(request, email="ann@example.com", password=PASSWORD) is not None
        assert (left("ann"), left("ann@example.com")) == (5, 5)


@pytest.fixture
def upper() -> Iterator[None]:
    auth.get_user_model().objects.create_user("ANN", "x@example.com", "own password")
    yield
    User.objects.filter(username="ANN").delete()


def test_a_name_that_differs_in_case_does_not_forgive_guesses_at_the_other(limiter: Limiter, upper: None) -> None:
    for _ in range(4):
        assert guess("ann", "127.0.0.1") is None
    for _ in range(10):
        assert guess("ANN", "127.0.0.1", "own password") is not None
    # Only its own charge is given back.
    assert left("ann") == 1
    assert guess("ann", "127.0.0.1", PASSWORD) is not None
    assert left("ann") == 5


def test_a_user_name_that_is_the_email_of_another_user_is_not_forgiven(limiter: Limiter) -> None:
    User.objects.create_user("eve@example.com", "e@example.com", "other password")
    mallory = User.objects.create_user("mallory", "eve@example.com", "own password")
    backends = ["doorkeep.django.backends.DoorkeepBackend", "backends.ByNameOrEmail"]
    try:
        with override_settings(AUTHENTICATION_BACKENDS=backends):
            for _ in range(3):
                assert guess("eve@example.com", "127.0.0.1") is None
            assert guess("eve@example.com", "127.0.0.1", "own password") == mallory
            assert left("eve@example.com") == 1
    finally:
        User.objects.filter(username__in=["mallory", "eve@example.com"]).delete()


class Loose(BaseUserManager[Any]):
    """Finds a name in any case, as many projects do."""

    def get_by_natural_key(self, username: str | None) -> Any:
        return self.get(username__iexact=username)


def test_a_manager_that_folds_names_is_used_for_the_look_up(limiter: Limiter, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_apart = {"account": lambda name: name}
    with override_settings(DOORKEEP={"rules": STRICT, **keep_apart}):
        manager = Loose()
        manager.model = User
        monkeypatch.setitem(vars(User._meta), "default_manager", manager)
        for n, name in enumerate(["ann", "Ann", "aNn", "anN", "ANn", "aNN", "AnN", "ANN"] * 5):
            assert guess(name, f"203.0.113.{n}") is None
        assert len(SEEN) == 20


def test_several_users_of_one_name_leave_the_answer_to_the_backend(
    limiter: Limiter, monkeypatch: pytest.MonkeyPatch, upper: None
) -> None:
    manager = Loose()
    manager.model = User
    monkeypatch.setitem(vars(User._meta), "default_manager", manager)
    with pytest.raises(User.MultipleObjectsReturned):
        guess("ann", "127.0.0.1")
    assert left("ann") == 4


def test_a_manager_without_natural_keys_is_queried_by_the_field(
    limiter: Limiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(User._meta), "default_manager", User._base_manager)
    backends = ["doorkeep.django.backends.DoorkeepBackend", "backends.ByEmail"]
    with override_settings(AUTHENTICATION_BACKENDS=backends, DOORKEEP={"rules": RULES, "credential": ["username"]}):
        with CaptureQueriesContext(connection) as queries, pytest.raises(PermissionDenied):
            DoorkeepBackend().authenticate(RequestFactory().post("/"), username="ann", password="x")
        assert len(queries) == 1


def test_a_project_can_define_which_users_its_backends_find(configure: Any) -> None:
    asked: list[Any] = []

    def users(credential: str, text: str) -> Any:
        asked.append((credential, text))
        return User.objects.filter(email__iexact=text)

    configure(find_users=users)
    assert guess("Ann@Example.com", "127.0.0.1") is None
    assert asked == [("username", "Ann@Example.com")]
    assert (left("ann"), left("ann@example.com")) == (4, 4)


def test_a_look_up_that_fails_leaves_the_guess_counted(configure: Any) -> None:
    def users(credential: str, text: str) -> Any:
        raise ZeroDivisionError

    configure(find_users=users)
    with pytest.raises(ZeroDivisionError):
        guess("ann", "127.0.0.1")
    assert left("ann") == 4
