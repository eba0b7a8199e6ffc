"""What every example of a login in Node withstands, over real HTTP.

The services are told that 127.0.0.1 is a proxy of their own, so that the tests choose addresses as a proxy would.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.servers import Server

ROOT = Path(__file__).parents[2]
ANN = {"email": "ann@example.com", "password": "correct horse battery staple"}
BOB = {"email": "bob@example.com", "password": "tall trees hold many birds"}
GUESS = {**ANN, "password": "wrong"}
BILLING = {"client_id": "billing", "client_secret": "secret of billing"}
BEHIND_A_PROXY = {"TRUSTED_PROXIES": "127.0.0.1"}
Serve = Callable[..., str]


def of(address: str) -> dict[str, str]:
    return {"x-forwarded-for": address}


def at_once(url: str, bodies: list[Any], **options: Any) -> list[httpx.Response]:
    async def send() -> list[httpx.Response]:
        # httpx looks at all that wait for a connection whenever one is free, so they wait here.
        gate = asyncio.Semaphore(100)
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=100), timeout=60) as client:

            async def one(body: Any) -> httpx.Response:
                async with gate:
                    return await client.post(url, json=body, **options)

            return await asyncio.gather(*(one(body) for body in bodies))

    return asyncio.run(send())


def statuses(answers: list[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def seen(answer: httpx.Response) -> tuple[int, list[tuple[str, str]], bytes]:
    """Give all that a stranger sees of an answer, but for its date."""
    return answer.status_code, [item for item in answer.headers.multi_items() if item[0] != "date"], answer.content


def raw(url: str, sent: bytes) -> bytes:
    """Give what a server answers to these bytes, which it may refuse while they are sent."""
    target = httpx.URL(url)
    received = b""
    with socket.create_connection((target.host, target.port), 10) as connection:
        connection.settimeout(10)
        try:
            connection.sendall(sent)
            while chunk := connection.recv(65536):
                received += chunk
        except OSError:
            pass
    return received


class LoginAttacks:
    """The tests of one example, whose folder a subclass names."""

    folder: str

    @pytest.fixture
    def start(self, serve: Serve) -> Serve:
        """Give a function that starts the service, with an environment, and gives its URL."""
        preload = ROOT / "tests" / "node" / "support" / "mishaps.mjs"
        return lambda **env: serve(["node", "--import", preload.as_uri(), "app.mjs"], f"examples/{self.folder}", env)

    @pytest.fixture
    def url(self, start: Serve) -> str:
        return start(**BEHIND_A_PROXY)

    def test_500_parallel_guesses_verify_5_passwords(self, url: str) -> None:
        spellings = ["ann@example.com", " Ann@Example.COM ", "\uff41nn@example.com"]
        guesses = [{"email": spellings[n % 3], "password": f"guess {n}"} for n in range(500)]
        answers = at_once(f"{url}/login", guesses)
        assert statuses(answers) == {401: 5, 429: 495}
        assert all(0 < int(answer.headers["retry-after"]) <= 900 for answer in answers if answer.status_code == 429)
        # The right password does not help on a locked key: the answer must not tell that it was right.
        assert httpx.post(f"{url}/login", json=ANN).status_code == 429

    def test_a_right_password_is_welcome_also_after_four_wrong_ones_and_takes_them_back(self, url: str) -> None:
        for _ in range(3):
            for _ in range(4):
                assert httpx.post(f"{url}/login", json=GUESS).status_code == 401
            welcome = httpx.post(f"{url}/login", json=ANN)
            assert (welcome.status_code, welcome.json()) == (200, {"welcome": "ann@example.com"})

    @pytest.mark.parametrize(
        ("path", "rest"),
        [("/login", {"password": "wrong"}), ("/forgot-password", {}), ("/otp", {"code": "000000"})],
    )
    def test_known_and_unknown_accounts_are_answered_by_the_same_bytes_at_ten_steps(
        self, url: str, path: str, rest: dict[str, str]
    ) -> None:
        steps: list[int] = []
        with httpx.Client(base_url=url) as client:
            for _ in range(10):
                known = client.post(path, json={"email": "ann@example.com", **rest}, headers=of("203.0.113.1"))
                unknown = client.post(path, json={"email": "eve@example.com", **rest}, headers=of("203.0.113.2"))
                assert seen(known) == seen(unknown)
                steps.append(known.status_code)
        assert steps[0] in (401, 202)
        assert steps[-1] == 429

    def test_guesses_whose_client_hangs_up_stay_counted(self, url: str) -> None:
        target = httpx.URL(url)
        body = b'{"email": "ann@example.com", "password": "slow"}'
        head = (
            f"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        for _ in range(5):
            with socket.create_connection((target.host, target.port), 10) as connection:
                connection.sendall(head.encode() + body)
                time.sleep(0.2)  # the hash takes a second, so nothing has been answered
        assert httpx.post(f"{url}/login", json=ANN).status_code == 429

    def test_a_login_that_crashes_stays_counted(self, url: str) -> None:
        for _ in range(5):
            crashed = httpx.post(f"{url}/login", json={**ANN, "password": "crash"})
            assert (crashed.status_code, crashed.json()) == (500, {"error": "something went wrong"})
        assert httpx.post(f"{url}/login", json={**ANN, "password": "crash"}).status_code == 429
        assert httpx.post(f"{url}/login", json=ANN, headers=of("203.0.113.10")).status_code == 200

    def test_a_client_that_hangs_up_at_once_is_counted_for_no_account(self, url: str) -> None:
        target = httpx.URL(url)
        body = b'{"email": "ann@example.com", "password": "wrong"}'
        head = f"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        for _ in range(100):
            with socket.create_connection((target.host, target.port), 10) as connection:
                # Closing resets the connection.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.sendall(f"{head}\r\n".encode() + body)
        time.sleep(0.5)
        # Without the address of the attacker none of it was counted for Ann; with it, only there.
        assert httpx.post(f"{url}/login", json=ANN, headers=of("203.0.113.10")).status_code == 200

    def test_a_redirect_after_a_wrong_password_is_no_success(self, url: str) -> None:
        for _ in range(5):
            wrong = httpx.post(f"{url}/login", data=GUESS)
            assert (wrong.status_code, wrong.headers["location"]) == (302, "/?wrong")
        assert httpx.post(f"{url}/login", data=ANN).status_code == 429

    def test_an_owner_is_not_shut_out_by_whoever_locks_them_from_elsewhere(self, url: str) -> None:
        attacks = at_once(f"{url}/login", [{**BOB, "password": "wrong"}] * 50, headers=of("203.0.113.66"))
        assert statuses(attacks) == {401: 5, 429: 45}
        assert httpx.post(f"{url}/login", json=BOB, headers=of("198.51.100.7")).status_code == 200

    def test_a_forged_header_changes_nothing(self, start: Serve) -> None:
        url = start()
        for n in range(6):
            answer = httpx.post(f"{url}/login", json=GUESS, headers=of(f"203.0.113.{n}"))
            assert answer.status_code == (401 if n < 5 else 429)

    def test_behind_a_proxy_the_address_that_the_proxy_saw_is_counted(self, url: str) -> None:
        for n in range(6):
            answer = httpx.post(f"{url}/login", json=GUESS, headers=of(f"198.51.100.{n}, 203.0.113.9"))
            assert answer.status_code == (401 if n < 5 else 429)
        assert httpx.post(f"{url}/login", json=ANN, headers=of("203.0.113.10")).status_code == 200

    def test_an_ipv6_network_is_one_client(self, url: str) -> None:
        for n in range(6):
            answer = httpx.post(f"{url}/login", json=GUESS, headers=of(f"2001:db8:0:1::{n:x}"))
            assert answer.status_code == (401 if n < 5 else 429)

    def test_a_malformed_address_is_the_proxys_own(self, url: str) -> None:
        odd = ["garbage", "", ",,,", "999.1.1.1", "::::", "1.2.3.4, garbage", "%00", "[::1", "a" * 8000, "unknown"]
        answers: Counter[int] = Counter()
        for n, address in enumerate(odd):
            bodies = [{"email": f"user-{n}-{m}@example.com", "password": "wrong"} for m in range(3)]
            answers += statuses(at_once(f"{url}/login", bodies, headers=of(address)))
        # 20 a minute, one of which comes back every three seconds.
        assert 20 <= answers[401] <= 25
        assert answers[401] + answers[429] == 30
        assert httpx.post(f"{url}/login", json=ANN, headers=of("203.0.113.10")).status_code == 200

    @pytest.mark.parametrize("path", ["/login", "/forgot-password", "/otp"])
    def test_what_names_no_account_is_400_and_in_no_shared_bucket(self, url: str, path: str) -> None:
        missing: list[Any] = [{}, {"email": ""}, {"email": " "}, {"email": None}, {"email": 5}, {"email": ["a@b.c"]}]
        odd: list[Any] = [
            [],
            {"email": "no at"},
            {"email": "a@b@c"},
            {"email": {"toString": None}},
            {"email": "\0@a.b"},
        ]
        with httpx.Client(base_url=url) as client:
            for body in (missing + odd) * 5:
                assert client.post(path, json=body).status_code == 400, body
            assert client.post("/login", json=ANN).status_code == 200

    def test_a_password_that_is_no_text_is_a_wrong_one(self, url: str) -> None:
        for n, password in enumerate([None, 5, ["x"], {"toString": None}, "\ud800", "right?"]):
            # Escaped by hand, since a lone surrogate cannot be sent as it is.
            body = {"email": ANN["email"], "password": password}
            answer = httpx.post(f"{url}/login", json=body) if password != "\ud800" else surrogate(url)
            assert answer.status_code == (401 if n < 5 else 429)

    def test_a_wrong_body_is_the_clients_fault(self, url: str) -> None:
        json = [b"not json", b"", b"null", b'"text"', b"\xff\xfe\x00", b"[" * 10_000]
        bodies = [("application/json", content) for content in json]
        bodies += [("application/x-www-form-urlencoded", content) for content in (b"", b"email", b"%", b"a[b]=c")]
        bodies += [("text/plain", b"email=a@b.c"), ("nonsense", b"x"), ("multipart/form-data; boundary=x", b"--x")]
        for content_type, content in bodies:
            for path in ("/login", "/forgot-password", "/otp", "/token"):
                answer = httpx.post(url + path, content=content, headers={"content-type": content_type})
                assert answer.status_code in (400, 401, 413, 415), (path, content_type, content[:20])

    def test_bodies_and_headers_of_10_mb_are_refused(self, url: str) -> None:
        huge = b"x" * 10_000_000
        body = b'{"email":"ann@example.com","password":"' + huge + b'"}'
        lines = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        with_body = raw(url, lines + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert with_body.startswith(b"HTTP/1.1 413 ") or with_body == b""
        with_header = raw(url, lines + b"X-Forwarded-For: " + huge + b"\r\n\r\n")
        assert with_header.startswith(b"HTTP/1.1 431 ") or with_header == b""
        assert httpx.post(f"{url}/login", json=ANN).status_code == 200

    def test_a_one_time_code_is_verified_and_five_wrong_ones_are_the_last(self, url: str) -> None:
        verified = httpx.post(f"{url}/otp", json={"email": "ann@example.com", "code": "271828"})
        assert (verified.status_code, verified.json()) == (200, {"verified": "ann@example.com"})
        guesses = [{"email": "ann@example.com", "code": f"{n:06}"} for n in range(100)]
        assert statuses(at_once(f"{url}/otp", guesses)) == {401: 5, 429: 95}

    @pytest.mark.parametrize("code", ["------", "000000", "", "-"])
    def test_an_account_without_a_code_verifies_none(self, url: str, code: str) -> None:
        assert httpx.post(f"{url}/otp", json={"email": "eve@example.com", "code": code}).status_code == 401

    def test_an_account_is_sent_one_mail_a_minute(self, url: str) -> None:
        asked = at_once(f"{url}/forgot-password", [{"email": "ann@example.com"}] * 20)
        assert statuses(asked) == {202: 1, 429: 19}
        assert httpx.post(f"{url}/forgot-password", json={"email": "bob@example.com"}).status_code == 202

    def test_a_subject_gets_100_tokens_a_minute_and_a_stranger_none_of_them(self, url: str) -> None:
        began = time.monotonic()
        wrong = at_once(f"{url}/token", [{**BILLING, "client_secret": "wrong"}] * 20)
        assert statuses(wrong) == {401: 20}
        answers = at_once(f"{url}/token", [BILLING] * 130)
        issued = [answer.json()["access_token"] for answer in answers if answer.status_code == 200]
        assert 100 <= len(issued) <= 100 + math.ceil((time.monotonic() - began) * 100 / 60)
        assert len(set(issued)) == len(issued)
        assert all(int(answer.headers["retry-after"]) == 1 for answer in answers if answer.status_code == 429)

    def test_an_address_is_counted_before_its_body_is_read(self, url: str) -> None:
        answers: Counter[int] = Counter()
        # A tenth of a second brings one attempt back, so a slow machine needs more than 601.
        while not answers[429] and sum(answers.values()) < 5000:
            answers += statuses(at_once(f"{url}/login", [{}] * 700, headers=of("203.0.113.5")))
        assert answers[400] >= 600
        assert answers[400] + answers[429] == sum(answers.values())
        assert answers[429] > 0
        assert httpx.post(f"{url}/login", json=ANN, headers=of("203.0.113.6")).status_code == 200

    def test_a_lockout_ends_when_its_window_does(self, start: Serve) -> None:
        url = start(LOCKOUT_WINDOW="2s")
        answers = [httpx.post(f"{url}/login", json=GUESS).status_code for _ in range(6)]
        assert answers == [401] * 5 + [429]
        time.sleep(2.1)
        assert httpx.post(f"{url}/login", json=ANN).status_code == 200

    def test_two_processes_share_one_budget_in_redis(self, start: Serve) -> None:
        server = Server()
        try:
            urls = [start(REDIS_URL=server.url) for _ in range(2)]
            answers = Counter(httpx.post(f"{urls[n % 2]}/login", json=GUESS).status_code for n in range(4))
            answers += statuses(at_once(f"{urls[0]}/login", [GUESS] * 50))
            assert answers == {401: 5, 429: 49}
            assert httpx.post(f"{urls[1]}/login", json=ANN).status_code == 429
        finally:
            server.close()

    def test_the_page_is_that_of_every_example(self, url: str) -> None:
        page = httpx.get(url)
        assert page.headers["content-type"].lower() == "text/html; charset=utf-8"
        assert {"email", "password", "submit", "message"} <= set(re.findall(r'id="(\w+)"', page.text))
        pages = {path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*_login/login.html")}
        assert pages == {page.text}


def surrogate(url: str) -> httpx.Response:
    body = b'{"email": "ann@example.com", "password": "\\ud800"}'
    return httpx.post(f"{url}/login", content=body, headers={"content-type": "application/json"})
