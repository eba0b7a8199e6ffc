"""Log-ins over real HTTP: which passwords are verified, what any client can see, and what a right password settles."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from django import VERSION
from django.test import override_settings

from backends import ASKED, SEEN, CountingHasher
from doorkeep import Limiter, ManualClock, network
from doorkeep.django import conf
from project import PASSWORD, RULES
from support.servers import Server
from web import CLIENT, attack, hang_up, post_form, post_json

ADDRESS = "127.0.0.1"


def left(account: str = "ann") -> int:
    """Return how many guesses the account has left from this address."""
    configuration = conf.current()
    return configuration.limiter.peek(configuration.rule("login-account-ip").key(account, network(ADDRESS))).remaining


@pytest.mark.parametrize("path", ["/api/login", "/api/check", "/api/alogin"])
def test_500_parallel_guesses_verify_five_passwords(served: str, limiter: Limiter, path: str) -> None:
    CountingHasher.delay = 0.05
    statuses = attack(served + path, [{"username": "ann", "password": f"guess {n}"} for n in range(500)])
    assert len(SEEN) == 5
    assert (statuses.count(401), statuses.count(429)) == (5, 495)


def test_500_parallel_guesses_in_a_form_verify_five_passwords(served: str, limiter: Limiter) -> None:
    CountingHasher.delay = 0.05
    guesses = [{"username": "ann", "password": f"guess {n}"} for n in range(500)]
    statuses = attack(served + "/form/", guesses, as_form=True)
    assert len(SEEN) == 5
    assert (statuses.count(200), statuses.count(429)) == (5, 495)


@pytest.mark.parametrize("path", ["/api/login", "/api/alogin"])
def test_parallel_guesses_over_a_store_verify_five_passwords(
    served: str, configure: Any, server: Server, path: str
) -> None:
    # A machine that runs other tests at the same time may be slower than a deadline of 200 ms.
    configure(redis=server.url, timeout=10)
    statuses = attack(served + path, [{"username": "ann", "password": f"guess {n}"} for n in range(200)])
    assert len(SEEN) == 5
    assert (statuses.count(401), statuses.count(429)) == (5, 195)


def test_a_denied_guess_is_answered_with_the_wait_and_admitted_after_it(
    served: str, limiter: Limiter, doorkeep_clock: ManualClock
) -> None:
    for _ in range(5):
        assert post_json(served + "/api/login", username="ann", password="guess").status_code == 401
    denied = post_json(served + "/api/login", username="ann", password=PASSWORD)
    assert (denied.status_code, denied.headers["Retry-After"]) == (429, "900")
    assert denied.json() == {"detail": "Too many attempts"}
    doorkeep_clock.advance(899)
    assert post_json(served + "/api/login", username="ann", password=PASSWORD).headers["Retry-After"] == "1"
    doorkeep_clock.advance(1)
    assert post_json(served + "/api/login", username="ann", password=PASSWORD).status_code == 200


def log_in_to_the_admin(url: str, username: str, password: str, **headers: str) -> httpx.Response:
    CLIENT.cookies.clear()
    page = CLIENT.get(f"{url}/admin/login/")
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert found is not None
    form = {"username": username, "password": password, "csrfmiddlewaretoken": found[1], "next": "/admin/"}
    return CLIENT.post(f"{url}/admin/login/", data=form, headers=headers)


def test_the_admin_answers_a_denied_log_in_with_429(served: str, limiter: Limiter) -> None:
    for _ in range(5):
        assert log_in_to_the_admin(served, "root", "guess").status_code == 200
    denied = log_in_to_the_admin(served, "root", PASSWORD, Accept="text/html,application/xml;q=0.9,*/*;q=0.8")
    assert (denied.status_code, denied.headers["Retry-After"]) == (429, "900")
    assert "Try again in 900 seconds." in denied.text
    assert len(SEEN) == 5


def test_the_admin_admits_a_right_password(served: str, limiter: Limiter) -> None:
    assert log_in_to_the_admin(served, "root", "guess").status_code == 200
    assert log_in_to_the_admin(served, "root", PASSWORD).status_code == 302
    assert left("root") == 5


def comparable(answer: httpx.Response) -> Any:
    # The form repeats the name that was typed.
    text = re.sub(r'value="(ann|nobody)"', "", answer.text)
    headers = {
        name: value for name, value in answer.headers.items() if name not in ("date", "set-cookie", "content-length")
    }
    return answer.status_code, headers, text


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_an_account_that_does_not_exist_is_answered_like_one_that_does(
    served: str, limiter: Limiter, accept: str
) -> None:
    answers = {
        name: [
            comparable(post_form(served + "/form/", {"Accept": accept}, username=name, password="guess"))
            for _ in range(10)
        ]
        for name in ("ann", "nobody")
    }
    assert answers["ann"] == answers["nobody"]
    assert [status for status, _, _ in answers["ann"]] == [200] * 5 + [429] * 5


def test_a_denied_guess_makes_no_look_up(served: str, limiter: Limiter) -> None:
    for _ in range(6):
        post_json(served + "/api/login", username="ann", password="guess")
    SEEN.clear()
    ASKED.clear()
    assert post_json(served + "/api/login", username="ann", password="guess").status_code == 429
    assert (SEEN, ASKED) == ([], [])


def test_own_successes_do_not_refill_the_budget_of_the_address(served: str, configure: Any) -> None:
    rules = {**RULES, "login-ip": {"threshold": 5, "lockout_window": "5m", "by": ["address"]}}
    configure(rules=rules)
    guesses = ["f", "f", PASSWORD, "f", "f", PASSWORD, "f", "f"]
    statuses = [
        post_json(served + "/api/login", username="ann" if guess == PASSWORD else "bob", password=guess).status_code
        for guess in guesses
    ]
    assert statuses == [401, 401, 200, 401, 401, 200, 401, 429]


def test_a_right_password_forgives_the_strikes_and_costs_nothing(served: str, limiter: Limiter) -> None:
    for _ in range(4):
        post_json(served + "/api/check", username="ann", password="guess")
    assert left() == 1
    assert post_json(served + "/api/check", username="ann", password=PASSWORD).status_code == 200
    assert left() == 5
    configuration = conf.current()
    assert limiter.peek(configuration.rule("login-ip").ip_key(ADDRESS)).remaining == 1000 - 4
    assert limiter.peek(configuration.rule("login-account").key("ann")).remaining == 50 - 4


def test_twenty_concurrent_right_passwords_leave_nothing_counted(served: str, limiter: Limiter) -> None:
    CountingHasher.delay = 0.05
    statuses = attack(served + "/api/check", [{"username": "ann", "password": PASSWORD}] * 20)
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 5
    assert left() == 5


def test_the_spelling_of_an_account_is_one_budget(served: str, limiter: Limiter) -> None:
    spellings = ["ann", " ANN ", "Ann", "\uff41nn", "aNN"]
    for name in spellings:
        assert post_json(served + "/api/login", username=name, password="guess").status_code == 401
    assert post_json(served + "/api/login", username="ann", password="guess").status_code == 429


def test_an_attacker_from_one_address_does_not_lock_the_owner_out(served: str, configure: Any) -> None:
    configure(trusted_proxies=["127.0.0.0/8"])
    for _ in range(50):
        post_json(served + "/api/login", {"X-Forwarded-For": "203.0.113.9"}, username="bob", password="guess")
    own = post_json(served + "/api/login", {"X-Forwarded-For": "198.51.100.7"}, username="bob", password=PASSWORD)
    assert own.status_code == 200


def test_a_forged_address_is_not_trusted(served: str, limiter: Limiter) -> None:
    statuses = [
        post_json(
            served + "/api/login", {"X-Forwarded-For": f"203.0.113.{n}"}, username="ann", password="x"
        ).status_code
        for n in range(6)
    ]
    assert statuses == [401] * 5 + [429]


@pytest.mark.parametrize("username", ["", " ", None, 5, ["ann"], {"a": 1}])
def test_an_invalid_account_is_answered_with_400(served: str, limiter: Limiter, username: Any) -> None:
    assert post_json(served + "/api/login", username=username, password="guess").status_code == 400
    assert SEEN == []
    assert len(limiter) == 0


@pytest.mark.parametrize("username", ["ann", "nobody"])
@pytest.mark.parametrize("password", [["x"], {"a": 1}, 5, True, "\ud800"])
def test_an_invalid_password_is_answered_with_400_for_any_account(
    served: str, limiter: Limiter, username: str, password: Any
) -> None:
    # Django's hashers raise on it, some of them only if there is no such account.
    for _ in range(7):
        assert post_json(served + "/api/login", username=username, password=password).status_code == 400
    assert SEEN == []
    assert len(limiter) == 0


@pytest.mark.parametrize("username", ["__proto__", "a" * 1_000_000, "\ud800", "%s", "'; --"])
def test_an_odd_name_has_its_own_budget(served: str, limiter: Limiter, username: str) -> None:
    statuses = [post_json(served + "/api/login", username=username, password="x").status_code for _ in range(6)]
    assert statuses in ([401] * 5 + [429], [400] * 6)
    assert left() == 5


def test_strikes_stay_when_the_view_crashes_and_its_transaction_is_rolled_back(served: str, limiter: Limiter) -> None:
    for n in range(5):
        assert post_json(served + "/api/crash", username="ann", password="guess").status_code == 500
        assert left() == 4 - n
    assert post_json(served + "/api/crash", username="ann", password="guess").status_code == 429


@pytest.mark.parametrize("path", ["/api/login", "/api/alogin"])
def test_a_backend_that_fails_leaves_the_guess_counted(served: str, limiter: Limiter, path: str) -> None:
    statuses = [post_json(served + path, username="ann", password="crash").status_code for _ in range(7)]
    assert statuses == [500] * 5 + [429] * 2
    assert left() == 0


@pytest.mark.parametrize("path", ["/api/login", "/api/alogin"])
def test_a_named_failure_gives_the_guess_back_but_not_the_address(served: str, configure: Any, path: str) -> None:
    limiter = configure(give_back_on=["builtins.ZeroDivisionError"])
    for _ in range(7):
        assert post_json(served + path, username="ann", password="crash").status_code == 500
    assert left() == 5
    assert limiter.peek(conf.current().rule("login-account").key("ann")).remaining == 50
    assert limiter.peek(conf.current().rule("login-ip").ip_key(ADDRESS)).remaining == 1000 - 7


@pytest.mark.parametrize("password", ["guess", "forbidden"])
def test_a_named_class_never_gives_back_a_wrong_guess(served: str, configure: Any, password: str) -> None:
    configure(give_back_on=Exception)
    statuses = [post_json(served + "/api/login", username="ann", password=password).status_code for _ in range(7)]
    assert statuses == [401] * 5 + [429] * 2


@pytest.mark.parametrize("path", ["/api/login", "/api/alogin"])
def test_a_backend_that_fails_after_one_that_rejected_the_password_gives_nothing_back(
    served: str, configure: Any, path: str
) -> None:
    configure(give_back_on=[ConnectionError])
    # A directory that is down must not make guesses at the passwords of the database free.
    backends = ["doorkeep.django.backends.DoorkeepBackend", "backends.Watched", "backends.Broken"]
    with override_settings(AUTHENTICATION_BACKENDS=backends):
        statuses = [post_json(served + path, username="ann", password="guess").status_code for _ in range(7)]
    assert statuses == [500] * 5 + [429] * 2
    assert len(SEEN) == 5


def test_a_backend_that_forbids_is_a_wrong_guess(served: str, limiter: Limiter) -> None:
    assert post_json(served + "/api/login", username="ann", password="forbidden").status_code == 401
    assert left() == 4


@pytest.mark.parametrize("path", ["/api/login", "/api/alogin"])
def test_a_guess_whose_client_hangs_up_stays_counted(served: str, limiter: Limiter, path: str) -> None:
    CountingHasher.delay = 0.3
    for n in range(5):
        hang_up(served + path, {"username": "ann", "password": "guess"}, once=lambda n=n: len(SEEN) > n)
    CountingHasher.delay = 0.0
    assert post_json(served + path, username="ann", password=PASSWORD).status_code == 429
    assert left() == 0


def test_two_guesses_in_one_request_are_two(served: str, limiter: Limiter) -> None:
    assert post_json(served + "/api/twice", username="ann", password="guess").status_code == 200
    assert left() == 3


def test_concurrent_guesses_of_one_request_are_counted_separately(served: str, limiter: Limiter) -> None:
    CountingHasher.delay = 0.02
    passwords = [f"guess {n}" for n in range(12)]
    assert post_json(served + "/api/at-once", username="ann", passwords=passwords).status_code == 429
    assert len(SEEN) == 5
    assert left() == 0


def test_a_backend_that_authenticates_in_turn_is_the_same_guess(served: str, limiter: Limiter) -> None:
    for _ in range(4):
        assert post_json(served + "/api/login", username="ann", password="guess").status_code == 401
    # One attempt is left: a second one would be denied.
    assert post_json(served + "/api/login", username="ann", password="nested").status_code == 200
    assert left() == 5
    assert limiter.peek(conf.current().rule("login-account").key("ann")).remaining == 46


@pytest.mark.parametrize("path", ["/api/login", "/api/alogin"])
def test_the_session_names_the_backend_that_knew_the_user(served: str, limiter: Limiter, path: str) -> None:
    CLIENT.cookies.clear()
    CLIENT.post(served + path, json={"username": "ann", "password": PASSWORD})
    assert CLIENT.get(f"{served}/who").json() == {"user": "ann", "backend": "backends.Watched"}


def test_credentials_under_another_name_are_the_account(served: str, configure: Any) -> None:
    configure(account="email")
    backends = ["doorkeep.django.backends.DoorkeepBackend", "backends.Watched", "backends.ByEmail"]
    with override_settings(AUTHENTICATION_BACKENDS=backends):
        url = served + ("/api/login" if VERSION < (5, 2) else "/api/check")
        assert post_json(url, email="Ann@Example.com", password="guess").status_code == 401
        assert left("ann@example.com") == 4
        assert post_json(url, email="ann@example.com", password=PASSWORD).status_code == 200
        assert left("ann@example.com") == 5


def test_each_of_several_names_is_counted_and_forgiven_only_to_their_owner(served: str, limiter: Limiter) -> None:
    for _ in range(3):
        post_json(served + "/api/check", username="bob", password="guess")
    # A client that knows one password must not reset the strikes of another account with it, or get free guesses at it.
    assert post_json(served + "/api/check", username="ann", email="bob", password=PASSWORD).status_code == 200
    assert (left("ann"), left("bob")) == (4, 1)
    for n in range(3):
        post_json(served + "/api/check", username=f"nobody-{n}", email="bob", password="guess")
    assert left("bob") == 0
    assert post_json(served + "/api/check", username="ann", email="", password=PASSWORD).status_code == 200
    assert left("ann") == 5


def test_an_owner_who_gives_both_their_name_and_their_email_is_forgiven(served: str, limiter: Limiter) -> None:
    both = {"username": "ann", "email": "Ann@example.com"}
    assert post_json(served + "/api/check", **both, password="guess").status_code == 401
    assert (left("ann"), left("ann@example.com")) == (4, 4)
    assert post_json(served + "/api/check", **both, password=PASSWORD).status_code == 200
    assert (left("ann"), left("ann@example.com")) == (5, 5)


def test_a_token_is_not_a_guess(served: str, limiter: Limiter) -> None:
    backends = ["doorkeep.django.backends.DoorkeepBackend", "backends.ByToken"]
    with override_settings(AUTHENTICATION_BACKENDS=backends):
        for _ in range(10):
            assert post_json(served + "/api/check", token="nobody").status_code == 401
    assert len(limiter) == 0


def test_paths_count_addresses_before_the_view(served: str, configure: Any) -> None:
    rules = {**RULES, "open-ip": {"rates": "2/1h", "by": ["address"]}}
    configure(rules=rules, login=list(RULES), paths={"POST /open/": ["open-ip"]})
    statuses = [post_form(served + "/open/").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert CLIENT.get(served + "/open/").status_code == 200


def test_a_path_for_get_counts_head_which_runs_the_same_view(served: str, configure: Any) -> None:
    rules = {**RULES, "open-ip": {"rates": "2/1h", "by": ["address"]}}
    configure(rules=rules, login=list(RULES), paths={"GET /open/": ["open-ip"]})
    assert [CLIENT.head(served + "/open/").status_code for _ in range(3)] == [200, 200, 429]
    assert CLIENT.get(served + "/open/").status_code == 429
    assert post_form(served + "/open/").status_code == 200


def test_a_path_and_a_log_in_count_the_address_once(served: str, configure: Any) -> None:
    limiter = configure(paths={"/api/login": ["login-ip"]})
    post_json(served + "/api/login", username="ann", password="guess")
    assert limiter.peek(conf.current().rule("login-ip").ip_key(ADDRESS)).remaining == 999


def test_a_request_that_makes_a_view_crash_is_not_free_for_its_address(served: str, configure: Any) -> None:
    rules = {**RULES, "open-ip": {"rates": "3/1h", "by": ["address"]}}
    limiter = configure(rules=rules, login=list(RULES), paths={"/open/": ["open-ip"]})
    key = conf.current().rule("open-ip").ip_key(ADDRESS)
    for do, status, left in [("crash", 500, 2), ("error", 500, 1), ("missing", 404, 0)]:
        assert post_form(served + "/open/", do=do).status_code == status
        assert limiter.peek(key).remaining == left
    assert post_form(served + "/open/", do="crash").status_code == 429


def test_rate_limit_fields_are_sent_when_enabled(served: str, configure: Any) -> None:
    configure()
    assert "RateLimit" not in post_json(served + "/api/login", username="ann", password="guess").headers
    configure(rate_limit=True)
    answer = post_json(served + "/api/login", username="ann", password="guess")
    assert "login-account-ip" in answer.headers["RateLimit-Policy"]
    assert "127.0.0.1" not in str(answer.headers)


def test_the_wait_of_an_account_is_rounded_up_when_configured(
    served: str, configure: Any, doorkeep_clock: ManualClock
) -> None:
    configure(round_up="10m")
    for _ in range(5):
        post_json(served + "/api/login", username="ann", password="guess")
    assert post_json(served + "/api/login", username="ann", password="guess").headers["Retry-After"] == "1200"
    doorkeep_clock.advance(301)
    assert post_json(served + "/api/login", username="ann", password="guess").headers["Retry-After"] == "600"


def test_a_header_of_megabytes_does_not_crash(asgi: str, configure: Any) -> None:
    configure(trusted_proxies=["127.0.0.0/8"])
    # As long as the server accepts.
    answer = post_json(asgi + "/api/login", {"X-Forwarded-For": "junk," * 10_000}, username="ann", password="guess")
    assert answer.status_code == 401
    assert (
        post_json(asgi + "/api/login", {"Forwarded": "for=" * 9_000}, username="ann", password="x").status_code == 401
    )


def test_a_wrong_content_type_does_not_crash(served: str, limiter: Limiter) -> None:
    answer = CLIENT.post(f"{served}/form/", content=b"\x00\xff", headers={"Content-Type": "nonsense"})
    assert answer.status_code == 200
    answer = CLIENT.post(f"{served}/form/", content=b"x", headers={"Content-Type": "multipart/form-data"})
    assert answer.status_code < 500
