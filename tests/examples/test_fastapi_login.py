"""The login example of FastAPI, attacked over real HTTP; and what only Python's services can get wrong."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import httpx
import pytest
from login_attacks import ANN, BILLING, GUESS, LoginAttacks, Serve, at_once, of, raw, statuses

from support.servers import Server

HERE = "tests/examples"
JSON = {"content-type": "application/json"}


class TestFastapiLogin(LoginAttacks):
    folder = "fastapi_login"

    @pytest.fixture
    def start(self, serve: Serve) -> Serve:
        """Give a function that starts the service, with an environment, and gives its URL."""
        uvicorn = [sys.executable, "-m", "uvicorn", "mishaps:app", "--app-dir", f"../../{HERE}", "--port", "{port}"]
        options = ["--no-proxy-headers", "--log-level", "critical"]
        return lambda **env: serve([*uvicorn, *options], f"examples/{self.folder}", {"PYTHONPATH": ".", **env})

    def test_a_login_that_crashes_stays_counted(self, url: str) -> None:
        crashes = [httpx.post(f"{url}/login", json={**ANN, "password": "crash"}).status_code for _ in range(10)]
        assert crashes == [500] * 5 + [429] * 5
        assert httpx.post(f"{url}/login", json=ANN).status_code == 429

    def test_an_exception_that_the_guard_names_is_no_guess_but_not_free_for_its_address(self, url: str) -> None:
        down = [httpx.post(f"{url}/login", json={**ANN, "password": "down"}).status_code for _ in range(20)]
        assert down == [500] * 20
        assert httpx.post(f"{url}/login", json=ANN).status_code == 429
        assert httpx.post(f"{url}/login", json=ANN, headers=of("203.0.113.9")).status_code == 200

    def test_a_password_that_is_no_text_is_refused(self, url: str) -> None:
        bodies: list[Any] = [{**ANN, "password": password} for password in (None, 5, ["x"], {}, "x" * 10_000, "\ud800")]
        bodies += [{"email": ANN["email"]}, {"password": "x"}, {"email": ["\ud800"]}]
        for body in bodies * 5:
            answer = httpx.post(f"{url}/login", content=json.dumps(body), headers=JSON)
            assert (answer.status_code, answer.json()) == (400, {"detail": "Bad request"})
        assert httpx.post(f"{url}/login", json=ANN).status_code == 200

    test_a_password_that_is_no_text_is_a_wrong_one = None

    def test_bodies_and_headers_of_10_mb_are_refused(self, url: str) -> None:
        huge = "x" * 10_000_000
        bodies: dict[str, Any] = {
            "/login": {**ANN, "password": huge},
            "/forgot-password": {"email": huge},
            "/otp": {"email": f"{huge}@example.com", "code": "1"},
            "/token": {**BILLING, "client_secret": huge},
        }
        for path, body in bodies.items():
            assert httpx.post(url + path, json=body, timeout=30).status_code == 400
        header = raw(url, b"POST /login HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: " + huge.encode() + b"\r\n\r\n")
        assert header.startswith(b"HTTP/1.1 400 ") or header == b""
        assert httpx.post(f"{url}/login", json=ANN).status_code == 200

    def test_a_denial_takes_no_hash(self, url: str) -> None:
        assert statuses(at_once(f"{url}/login", [GUESS] * 5)) == {401: 5}
        start = time.monotonic()
        # Two hundred hashes would take seconds.
        assert statuses(at_once(f"{url}/login", [{**ANN, "password": "slow"}] * 200)) == {429: 200}
        assert time.monotonic() - start < 10

    def test_other_logins_are_served_while_one_is_slow(self, url: str) -> None:
        answers = at_once(f"{url}/login", [{**ANN, "email": f"{n}@example.com", "password": "slow"} for n in range(8)])
        assert statuses(answers) == {401: 8}
        assert max(answer.elapsed.total_seconds() for answer in answers) < 5

    def test_the_documentation_names_what_a_denied_one_gets(self, url: str) -> None:
        paths = httpx.get(f"{url}/openapi.json").json()["paths"]
        for path in ("/login", "/forgot-password", "/otp", "/token"):
            described = paths[path]["post"]["responses"]
            assert {"400", "429", "503"} <= set(described)
            assert described["429"]["headers"]["Retry-After"]["schema"]["type"] == "integer"

    def test_several_workers_share_one_budget_in_redis(self, start: Serve) -> None:
        server = Server()
        try:
            url = start(REDIS_URL=server.url, WEB_CONCURRENCY="2")
            bodies = [{**ANN, "password": f"guess {n}"} for n in range(200)]
            assert statuses(at_once(f"{url}/login", bodies, headers=of("203.0.113.1"))) == {401: 5, 429: 195}
        finally:
            server.close()
