"""The answers to any client: their content type, caching, and the paths that they cover."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import include, path

from doorkeep import RateLimitExceeded, StrikeRule
from doorkeep.django import checks, conf, guarded
from doorkeep.django.answers import refusal
from project import RULES
from support.servers import Server
from web import CLIENT, post_form, post_json

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


def denied(accept: str | None, content_type: str = "application/x-www-form-urlencoded") -> HttpResponse:
    headers = {} if accept is None else {"HTTP_ACCEPT": accept}
    request = RequestFactory().post("/", "x", content_type=content_type, **headers)
    rule = StrikeRule("once", threshold=1, lockout_window="1h")
    limiter = conf.current().limiter
    limiter.decide(rule.key("x"))
    return refusal(request, (limiter.decide(rule.key("x")), [rule.key("x")]))


@pytest.mark.parametrize(
    ("accept", "is_html"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("application/xhtml+xml", True),
        ("application/json;q=0.5, text/html", True),
        ("text/html, application/json", True),
        ("application/json, text/html", False),
        ("text/html;q=0.5, application/json", False),
        ("text/html;q=0, */*", False),
        ("application/problem+json", False),
        ("application/json, text/plain, */*", False),
        ("*/*", False),
        ("text/*", False),
        ("", False),
        (None, False),
        ("text/html;q=much", True),
    ],
)
def test_html_is_sent_to_clients_that_accept_and_prefer_it(limiter: Any, accept: str | None, is_html: bool) -> None:
    answer = denied(accept)
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == ("text/html; charset=utf-8" if is_html else "application/json")


def test_a_refusal_to_issue_has_retry_after_if_the_wait_is_known(limiter: Any) -> None:
    request = RequestFactory().post("/")
    answer = refusal(request, RateLimitExceeded(retry_after=timedelta(seconds=1.5)))
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "2")
    assert "Retry-After" not in refusal(request, RateLimitExceeded()).headers


def test_refusals_are_not_cached(served: str, configure: Any, server: Server) -> None:
    configure()
    for place in ("/form/", "/verify", "/averify"):
        fields = {"username": "ann", "account": f"ann{place}", "password": "guess"}
        answers = [post_form(served + place, **fields) for _ in range(6)]
        assert answers[5].status_code == 429
        assert answers[5].headers["Cache-Control"] == "no-store"
        assert "no-store" not in answers[0].headers.get("Cache-Control", "")
    for place in ("/verify", "/averify"):
        refused = post_form(served + place, account="")
        assert (refused.status_code, refused.headers["Cache-Control"]) == (400, "no-store")
    configure(redis=server.url, on_error="closed", rules=RULES)
    server.kill()
    answer = post_json(served + "/api/login", username="ann", password="guess")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (503, "no-store")


def a_view(request: Any, **_: Any) -> HttpResponse:
    return HttpResponse("ran")


@transaction.non_atomic_requests
async def an_async_view(request: Any, **_: Any) -> HttpResponse:
    return HttpResponse("ran")


class Urls:
    """A site in several languages, with names in a namespace and patterns that capture a part of the path."""

    urlpatterns: ClassVar = [
        path("secret/<int:number>/", a_view, name="secret"),
        path("asecret/<int:number>/", an_async_view, name="asecret"),
        path("accounts/", include(([path("sign-in/", a_view, name="login")], "accounts"))),
    ]


OPEN = {**RULES, "open-ip": {"rates": "2/1h", "by": ["address"]}}
SITE = {"USE_I18N": True, "LANGUAGES": [("en", "English"), ("de", "German"), ("pt-br", "Portuguese")]}


@pytest.fixture
def named() -> Iterator[None]:
    """Use the views above in the project. Request it before the fixture that sets ``DOORKEEP``, so that it ends after
    it."""
    with override_settings(ROOT_URLCONF=Urls):
        yield


def statuses(client: Any, *places: str, method: str = "post") -> list[int]:
    return [getattr(client, method)(place).status_code for place in places]


@pytest.mark.parametrize("prefix", ["de", "en", "pt-br", "de-at"])
def test_a_path_is_counted_after_each_language_prefix(configure: Any, prefix: str) -> None:
    configure(rules=OPEN, login=list(RULES), paths={"POST /open/": ["open-ip"]})
    with override_settings(**SITE):
        client = Client()
        assert statuses(client, "/open/", f"/{prefix}/open/", f"/{prefix}/open/")[2] == 429
        assert statuses(client, f"/{prefix}/other/", "/xx/open/") == [404, 404]
        assert statuses(client, f"/{prefix}", f"/{prefix}/open", method="get") == [404, 404]


def test_without_languages_a_path_has_no_prefix(configure: Any) -> None:
    configure(rules=OPEN, login=list(RULES), paths={"POST /open/": ["open-ip"]})
    with override_settings(USE_I18N=False):
        assert statuses(Client(), *["/de/open/"] * 3) == [404] * 3


@pytest.mark.parametrize(("name", "place"), [("secret", "/secret/{}/"), ("asecret", "/asecret/{}/")])
def test_a_view_is_counted_by_its_name_whatever_its_path(named: None, configure: Any, name: str, place: str) -> None:
    configure(rules=OPEN, login=list(RULES), paths={f"POST {name}": ["open-ip"]})
    places = [place.format(number) for number in range(4)]
    assert statuses(Client(), *places) == [200, 200, 429, 429]
    assert statuses(Client(), *places, method="get") == [200] * 4


def test_a_name_in_a_namespace_is_not_the_name_alone(named: None, configure: Any) -> None:
    configure(rules=OPEN, login=list(RULES), paths={"login": ["open-ip"]})
    assert statuses(Client(), *["/accounts/sign-in/"] * 4) == [200] * 4
    configure(rules=OPEN, login=list(RULES), paths={"accounts:login": ["open-ip"]})
    assert statuses(Client(), *["/accounts/sign-in/"] * 4) == [200, 200, 429, 429]


def test_a_log_in_of_the_admin_is_counted_by_its_name_over_http(served: str, configure: Any) -> None:
    configure(rules=OPEN, login=list(RULES), paths={"GET admin:login": ["open-ip"]})
    answers = [CLIENT.get(served + "/admin/login/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["Cache-Control"] == "no-store"


def test_a_name_and_a_guard_count_the_address_once(configure: Any) -> None:
    limiter = configure(rules=OPEN, login=list(RULES), paths={"guarded": ["open-ip"]})

    class Guarded:
        urlpatterns: ClassVar = [path("guarded/", guarded(keys=["open-ip"])(a_view), name="guarded")]

    with override_settings(ROOT_URLCONF=Guarded):
        assert statuses(Client(), "/guarded/") == [200]
        assert limiter.peek(conf.current().rule("open-ip").ip_key("127.0.0.1")).remaining == 1


def test_the_check_warns_about_a_name_without_a_url_pattern(named: None, configure: Any) -> None:
    configure(rules=OPEN, login=list(RULES), paths={"POST accounts:login": ["open-ip"], "secret": ["open-ip"]})
    assert checks.check_settings() == []
    configure(rules=OPEN, login=list(RULES), paths={"POST accounts:logn": ["open-ip"]})
    (found,) = checks.check_settings()
    assert (found.id, found.msg) == (
        "doorkeep.W006",
        "paths names no URL pattern of ROOT_URLCONF, name=`accounts:logn`",
    )
