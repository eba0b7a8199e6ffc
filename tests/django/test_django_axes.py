"""A site of django-axes with our handler: no guess gets through a race, and its settings mean the same as before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from axes.utils import reset
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import override_settings

from backends import SEEN, CountingHasher
from doorkeep import Limiter, ManualClock
from project import PASSWORD
from test_django_drf import basic
from web import CLIENT, attack, post_json

SITE = {
    "AXES_ENABLED": True,
    "AXES_FAILURE_LIMIT": 5,
    "AXES_COOLOFF_TIME": timedelta(minutes=15),
    "AXES_LOCKOUT_PARAMETERS": [["username", "ip_address"]],
    "AXES_HTTP_RESPONSE_CODE": 429,
    "AUTHENTICATION_BACKENDS": ["axes.backends.AxesStandaloneBackend", "backends.Watched"],
    "MIDDLEWARE": [*settings.MIDDLEWARE[1:], "axes.middleware.AxesMiddleware"],
}


OURS = {**SITE, "AUTHENTICATION_BACKENDS": ["doorkeep.django.axes.DoorkeepAxesBackend", "backends.Watched"]}


@pytest.fixture
def site(limiter: Limiter) -> Iterator[Limiter]:
    """Configure the project for django-axes."""
    with override_settings(**SITE):
        yield limiter


@pytest.fixture
def ours(configure: Any) -> Iterator[Limiter]:
    """Configure the project for django-axes with our backend in place of its own."""
    limiter = configure(give_back_on=[ZeroDivisionError, ConnectionError])
    with override_settings(**OURS):
        yield limiter


def login(url: str, password: str = "guess", username: str = "ann") -> int:
    return post_json(url + "/api/login", username=username, password=password).status_code


def test_500_parallel_guesses_verify_five_passwords(site: Limiter, served: str) -> None:
    CountingHasher.delay = 0.05
    attack(served + "/api/login", [{"username": "ann", "password": f"guess {n}"} for n in range(500)])
    assert len(SEEN) == 5


def test_a_site_of_axes_answers_as_before(site: Limiter, wsgi: str, doorkeep_clock: ManualClock) -> None:
    assert [login(wsgi) for _ in range(6)] == [401] * 4 + [429] * 2
    assert login(wsgi, PASSWORD) == 429
    assert login(wsgi, username="bob") == 401
    doorkeep_clock.advance("15m")
    assert login(wsgi, PASSWORD) == 200


def test_hammering_does_not_extend_a_lockout(site: Limiter, wsgi: str, doorkeep_clock: ManualClock) -> None:
    for _ in range(5):
        login(wsgi)
    for _ in range(14):
        doorkeep_clock.advance("1m")
        assert login(wsgi) == 429
    doorkeep_clock.advance("1m")
    assert login(wsgi) == 401


def test_successes_do_not_count_as_failures(site: Limiter, wsgi: str) -> None:
    for _ in range(7):
        assert login(wsgi, PASSWORD) == 200
    for _ in range(3):
        login(wsgi)
    assert login(wsgi, PASSWORD) == 200
    assert [login(wsgi) for _ in range(2)] == [401, 429]


def test_a_success_resets_if_the_site_is_configured_so(site: Limiter, wsgi: str) -> None:
    with override_settings(AXES_RESET_ON_SUCCESS=True):
        for _ in range(3):
            assert [login(wsgi) for _ in range(4)] == [401] * 4
            assert login(wsgi, PASSWORD) == 200


def test_a_log_in_by_a_name_that_differs_in_case_keeps_the_strikes_of_the_other(site: Limiter, wsgi: str) -> None:
    get_user_model().objects.create_user("ANN", password="own password")
    try:
        with override_settings(AXES_RESET_ON_SUCCESS=True):
            assert [login(wsgi) for _ in range(3)] == [401] * 3
            assert login(wsgi, "own password", "ANN") == 200
            assert [login(wsgi) for _ in range(2)] == [401, 429]
    finally:
        get_user_model().objects.filter(username="ANN").delete()


def test_authenticating_without_logging_in_is_not_a_failure(site: Limiter, served: str) -> None:
    assert [basic(served, PASSWORD) for _ in range(7)] == [200] * 7
    assert [basic(served, "guess") for _ in range(5)] == [401] * 4 + [429]


def test_concurrent_guesses_of_one_request_are_counted_separately(site: Limiter, served: str) -> None:
    CountingHasher.delay = 0.02
    for _ in range(3):
        post_json(served + "/api/at-once", username="ann", passwords=[f"guess {n}" for n in range(12)])
    assert len(SEEN) == 5
    assert login(served) == 429


def test_a_guess_during_which_a_backend_fails_stays_counted(site: Limiter, served: str) -> None:
    assert [login(served, "crash") for _ in range(7)] == [500] * 5 + [429] * 2


def test_a_named_failure_gives_the_guess_back(ours: Limiter, served: str) -> None:
    assert [login(served, "crash") for _ in range(7)] == [500] * 7
    assert login(served) == 401


def test_a_failure_after_a_backend_that_rejected_the_password_gives_nothing_back(ours: Limiter, served: str) -> None:
    backends = ["doorkeep.django.axes.DoorkeepAxesBackend", "backends.Watched", "backends.Broken"]
    with override_settings(AUTHENTICATION_BACKENDS=backends):
        assert [login(served) for _ in range(7)] == [500] * 5 + [429] * 2
    assert len(SEEN) == 5


def test_a_view_that_answers_the_failure_of_a_backend_makes_no_guess_free(site: Limiter, served: str) -> None:
    statuses = [post_json(served + "/api/caught", username="ann", password="crash").status_code for _ in range(7)]
    assert statuses == [401] * 5 + [429] * 2


def test_our_backend_gives_back_a_right_password_without_a_log_in(ours: Limiter, served: str) -> None:
    right = {"username": "ann", "password": PASSWORD}
    assert [post_json(served + "/api/check", **right).status_code for _ in range(7)] == [200] * 7
    assert [login(served) for _ in range(5)] == [401] * 4 + [429]


def test_axes_own_backend_leaves_a_right_password_without_a_log_in_counted(site: Limiter, served: str) -> None:
    right = {"username": "ann", "password": PASSWORD}
    assert [post_json(served + "/api/check", **right).status_code for _ in range(6)] == [200] * 5 + [429]


def test_a_log_in_through_our_backend_names_the_backend_that_knew_the_user(ours: Limiter, served: str) -> None:
    CLIENT.cookies.clear()
    assert CLIENT.post(served + "/api/login", json={"username": "ann", "password": PASSWORD}).status_code == 200
    assert CLIENT.get(served + "/who").json() == {"user": "ann", "backend": "backends.Watched"}


def test_500_parallel_guesses_through_our_backend_verify_five_passwords(ours: Limiter, served: str) -> None:
    CountingHasher.delay = 0.05
    attack(served + "/api/login", [{"username": "ann", "password": f"guess {n}"} for n in range(500)])
    assert len(SEEN) == 5


@pytest.mark.parametrize(
    "parameters", [["username"], ["ip_address"], ["username", "ip_address"], [["username", "user_agent"]]]
)
def test_attempts_are_counted_by_the_lockout_parameters(site: Limiter, wsgi: str, parameters: Any) -> None:
    with override_settings(AXES_LOCKOUT_PARAMETERS=parameters):
        for _ in range(5):
            login(wsgi)
        assert login(wsgi) == 429
        assert login(wsgi, username="bob") == (429 if "ip_address" in parameters else 401)


def test_limits_and_windows_may_depend_on_the_request(site: Limiter, wsgi: str, doorkeep_clock: ManualClock) -> None:
    def limit(request: Any, credentials: Any) -> int:
        return 2 if credentials["username"] == "ann" else 4

    with override_settings(AXES_FAILURE_LIMIT=limit, AXES_COOLOFF_TIME=lambda request: timedelta(minutes=1)):
        assert [login(wsgi) for _ in range(3)] == [401, 429, 429]
        assert [login(wsgi, username="bob") for _ in range(5)] == [401] * 3 + [429] * 2
        doorkeep_clock.advance("1m")
        assert login(wsgi) == 401


def test_lists_and_switches_are_respected(site: Limiter, wsgi: str) -> None:
    with override_settings(AXES_LOCK_OUT_AT_FAILURE=False):
        assert [login(wsgi) for _ in range(7)] == [401] * 7
    with override_settings(AXES_NEVER_LOCKOUT_WHITELIST=True, AXES_IP_WHITELIST=["127.0.0.1"]):
        assert [login(wsgi) for _ in range(7)] == [401] * 7
    with override_settings(AXES_IP_BLACKLIST=["127.0.0.1"]):
        SEEN.clear()
        assert login(wsgi, PASSWORD) == 401
        assert SEEN == []
    with override_settings(AXES_ONLY_ADMIN_SITE=True):
        assert [login(wsgi) for _ in range(4)] == [401] * 4


def test_a_reset_unlocks(site: Limiter, wsgi: str) -> None:
    for _ in range(5):
        login(wsgi)
    assert reset(username="ann", ip="127.0.0.1") == 1
    assert login(wsgi, PASSWORD) == 200
    assert reset(username="ann", ip="127.0.0.1") == 0


def test_an_invalid_account_locks_no_one_out_and_crashes_nothing(site: Limiter, wsgi: str) -> None:
    for username in ("", " ", "\x00"):
        assert post_json(wsgi + "/api/login", username=username, password="x").status_code in (401, 429)
    assert login(wsgi) == 401
