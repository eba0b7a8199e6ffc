"""The example of Django, attacked over real HTTP: its log-in, its admin, its forgotten password and its code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.servers import Server

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "django_login"
ANN = {"username": "ann", "password": "correct horse battery staple"}
GUESS = {"username": "ann", "password": "wrong"}
ROOT_USER = {"username": "root", "password": "tall trees hold many birds"}
Serve = Callable[..., str]
Browser = Callable[..., httpx.Client]


def manage(*words: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=FOLDER,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def database(tmp_path: Path) -> str:
    name = str(tmp_path / "db.sqlite3")
    manage("migrate", "--verbosity", "0", DATABASE=name)
    manage("loaddata", "demo", "--verbosity", "0", DATABASE=name)
    return name


@pytest.fixture
def start(serve: Serve, database: str) -> Serve:
    """Give a function that starts the project, with an environment, and gives its URL."""
    command = [sys.executable, "-m", "uvicorn", "shop.asgi:application", "--port", "{port}"]
    options = ["--no-proxy-headers", "--lifespan", "off", "--log-level", "critical"]
    return lambda **env: serve([*command, *options], FOLDER, {"DATABASE": database, **env})


@pytest.fixture
def url(start: Serve) -> str:
    return start(TRUSTED_PROXIES="127.0.0.1")


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Give a function that makes clients with the cookie of the form and its token, as a browser has them."""
    with contextlib.ExitStack() as open_clients:

        def browse(url: str, address: str = "203.0.113.1") -> httpx.Client:
            headers = {"x-forwarded-for": address, "referer": url}
            client = open_clients.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60))
            take_token(client, "/login/")
            return client

        yield browse


def take_token(client: httpx.Client, path: str) -> str:
    """Read the token of a page's form into the client, and give the page."""
    page = client.get(path).text
    client.headers["x-csrftoken"] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
    return page


def at_once(client: httpx.Client, path: str, forms: list[dict[str, Any]]) -> Counter[int]:
    async def send() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=100)
        options = {"headers": client.headers, "cookies": client.cookies, "timeout": 60, "limits": limits}
        async with httpx.AsyncClient(base_url=client.base_url, **options) as many:
            return await asyncio.gather(*(many.post(path, data=form) for form in forms))

    return Counter(answer.status_code for answer in asyncio.run(send()))


def test_500_parallel_guesses_verify_5_passwords(url: str, browser: Browser) -> None:
    client = browser(url)
    spellings = ["ann", " ANN ", "\uff41nn"]
    guesses = [{"username": spellings[n % 3], "password": f"guess {n}"} for n in range(500)]
    assert at_once(client, "/login/", guesses) == {200: 5, 429: 495}
    denied = client.post("/login/", data=ANN, headers={"Accept": "text/html"})
    assert denied.status_code == 429
    assert 0 < int(denied.headers["retry-after"]) <= 900
    assert f"Try again in {denied.headers['retry-after']} seconds." in denied.text


def test_the_admin_and_the_log_in_share_one_budget(url: str, browser: Browser) -> None:
    client = browser(url)
    assert [client.post("/login/", data=GUESS).status_code for _ in range(3)] == [200] * 3
    assert [client.post("/admin/login/", data=GUESS).status_code for _ in range(3)] == [200] * 2 + [429]


def test_a_right_password_after_four_wrong_ones_takes_them_back(url: str, browser: Browser) -> None:
    for _ in range(3):
        client = browser(url)
        for _ in range(4):
            assert client.post("/login/", data=GUESS).status_code == 200
        assert client.post("/login/", data=ANN).headers["location"] == "/"


def test_known_and_unknown_accounts_are_answered_by_the_same_bytes_at_ten_steps(url: str, browser: Browser) -> None:
    statuses = []
    known, unknown = browser(url, "203.0.113.1"), browser(url, "203.0.113.2")
    for _ in range(10):
        answers = [
            client.post("/login/", data={**GUESS, "username": name})
            for client, name in ((known, "ann"), (unknown, "eve"))
        ]
        # The form has a token and repeats the name; the waits began one after the other.
        texts = [re.sub(r'value="[^"]*"|again in \d+ ', "", answer.text) for answer in answers]
        assert texts[0] == texts[1]
        assert answers[0].status_code == answers[1].status_code
        assert set(answers[0].headers) == set(answers[1].headers)
        statuses.append(answers[0].status_code)
    assert statuses == [200] * 5 + [429] * 5


def test_an_owner_is_not_shut_out_by_whoever_locks_them_from_elsewhere(url: str, browser: Browser) -> None:
    assert at_once(browser(url, "203.0.113.66"), "/login/", [GUESS] * 50) == {200: 5, 429: 45}
    assert browser(url, "198.51.100.7").post("/login/", data=ANN).status_code == 302


def test_a_mail_is_asked_for_once_a_minute(url: str, browser: Browser) -> None:
    client = browser(url)
    assert at_once(client, "/forgot-password/", [{"email": "Eve@example.com"}] * 8) == {302: 1, 429: 7}
    assert client.post("/forgot-password/", data={"email": "bob@example.com"}).status_code == 302
    assert client.post("/forgot-password/", data={}).status_code == 400
    assert client.get("/forgot-password/").status_code == 200


def test_a_one_time_code_is_verified_and_five_wrong_ones_are_the_last(url: str, browser: Browser) -> None:
    client = browser(url)
    client.post("/login/", data=ANN)
    take_token(client, "/")
    assert client.post("/verify/", data={"code": "271828"}).status_code == 302
    assert "Welcome, ann" in client.get("/").text
    assert at_once(client, "/verify/", [{"code": f"{n:06}"} for n in range(10)]) == {403: 5, 429: 5}


def test_an_account_without_a_code_verifies_none(url: str, browser: Browser, database: str) -> None:
    words = ["createsuperuser", "--noinput", "--username", "eve", "--email", "eve@example.com"]
    manage(*words, DATABASE=database, DJANGO_SUPERUSER_PASSWORD="a new account")
    client = browser(url)
    assert client.post("/login/", data={"username": "eve", "password": "a new account"}).status_code == 302
    take_token(client, "/")
    for form in ({}, {"code": ""}, {"code": "271828"}):
        assert client.post("/verify/", data=form).status_code == 403


def test_the_owner_of_the_site_unlocks_in_the_admin(url: str, browser: Browser) -> None:
    attacked = browser(url)
    assert at_once(attacked, "/login/", [GUESS] * 6) == {200: 5, 429: 1}
    operator = browser(url, "198.51.100.7")
    assert operator.post("/login/", data=ROOT_USER).status_code == 302
    page = take_token(operator, "/admin/doorkeep/lockout/")
    assert "5 strikes, then locked for 0:15:00" in page
    unlocked = {"rule": "login-account-ip", "by_account": "ann", "by_address": "203.0.113.1"}
    assert operator.post("/admin/doorkeep/lockout/", data=unlocked).status_code == 302
    assert attacked.post("/login/", data=ANN).status_code == 302


def test_a_lockout_ends_when_its_window_does(start: Serve, browser: Browser) -> None:
    client = browser(start(LOCKOUT_WINDOW="2s", TRUSTED_PROXIES="127.0.0.1"))
    assert at_once(client, "/login/", [GUESS] * 6) == {200: 5, 429: 1}
    time.sleep(2.1)
    assert client.post("/login/", data=ANN).status_code == 302


def test_several_workers_share_one_budget_in_redis(start: Serve, browser: Browser) -> None:
    server = Server()
    try:
        # A machine that hashes on all its cores may keep a log-in waiting for longer than a user would.
        env = {"REDIS_URL": server.url, "REDIS_TIMEOUT": "10s"}
        url = start(**env, WEB_CONCURRENCY="2", TRUSTED_PROXIES="127.0.0.1")
        client = browser(url)
        assert at_once(client, "/login/", [{**GUESS, "password": f"guess {n}"} for n in range(200)]) == {
            200: 5,
            429: 195,
        }
        assert "answers" in manage("doorkeep", "status", **env)
        assert "forgotten" in manage("doorkeep", "reset", "login-account-ip", "ann", "203.0.113.1", **env)
        assert client.post("/login/", data=ANN).status_code == 302
    finally:
        server.close()


def test_the_project_passes_its_own_checks() -> None:
    assert "no issues" in manage("check")
