"""The token issuers hold their budgets over real HTTP: one in Python, one in Node, and both on one Redis.

Where a count must be exact the bucket refills in a day, so that nothing comes back while a test runs.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from support.servers import Server

COMMANDS = {
    "python": (
        [
            sys.executable,
            "-m",
            "uvicorn",
            "--no-proxy-headers",
            "app:app",
            "--port",
            "{port}",
            "--log-level",
            "warning",
        ],
        "token_issuer",
    ),
    "node": (["node", "app.mjs"], "token_issuer_node"),
}
BUDGET = 100
JSON = {"content-type": "application/json"}
Start = Callable[..., str]


@pytest.fixture(params=COMMANDS)
def start(request: pytest.FixtureRequest, serve: Callable[..., str]) -> Start:
    """Give a function that starts the service of one language, with an environment, and gives its URL."""
    return lambda **env: run(serve, request.param, env)


def run(serve: Callable[..., str], language: str, env: dict[str, str]) -> str:
    command, folder = COMMANDS[language]
    return serve(command, f"examples/{folder}", {"WINDOW": "1d", **env})


@pytest.fixture
def redis() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def client(name: str, secret: str | None = None) -> dict[str, str]:
    return {"client_id": name, "client_secret": f"secret of {name}" if secret is None else secret}


def at_once(calls: list[tuple[str, dict[str, Any]]]) -> list[httpx.Response]:
    """Send all requests in parallel: a list of URLs and the options of each."""

    async def send() -> list[httpx.Response]:
        # httpx looks at all that wait for a connection whenever one is free, so they wait here.
        gate = asyncio.Semaphore(100)
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=100), timeout=60) as http:

            async def one(url: str, rest: dict[str, Any]) -> httpx.Response:
                async with gate:
                    return await http.request(**{"method": "POST", "url": url, **rest})

            return await asyncio.gather(*(one(url, rest) for url, rest in calls))

    return asyncio.run(send())


def statuses(answers: list[httpx.Response]) -> dict[int, int]:
    return dict(Counter(answer.status_code for answer in answers))


def take(url: str, count: int, name: str = "billing") -> list[httpx.Response]:
    return at_once([(f"{url}/token", {"json": client(name)})] * count)


def test_a_subject_gets_its_100_tokens_and_not_one_more_of_300_parallel_requests(start: Start) -> None:
    answers = take(start(), 300)
    assert statuses(answers) == {200: BUDGET, 429: 200}
    issued = [answer.json()["access_token"] for answer in answers if answer.status_code == 200]
    assert len(set(issued)) == BUDGET


def test_a_budget_of_a_minute_refills_evenly_and_no_faster(start: Start) -> None:
    url = start(WINDOW="1m")
    began = time.monotonic()
    issued = statuses(take(url, 300))[200]
    assert BUDGET <= issued <= BUDGET + (time.monotonic() - began) / 0.6


def test_refreshing_draws_on_the_budget_of_issuing(start: Start) -> None:
    url = start()
    (first,) = take(url, 1)
    renewal = {"json": {"refresh_token": first.json()["refresh_token"]}}
    assert statuses(at_once([(f"{url}/refresh", renewal)] * 150)) == {200: BUDGET - 1, 429: 51}
    assert statuses(take(url, 1)) == {429: 1}


def test_a_refreshed_token_can_be_refreshed_and_read(start: Start) -> None:
    url = start()
    (first,) = take(url, 1)
    for _ in range(3):
        first = httpx.post(f"{url}/refresh", json={"refresh_token": first.json()["refresh_token"]})
    assert whoami(url, first.json()["access_token"]).json() == {"sub": "billing"}


def test_1000_tokens_are_read_while_their_subject_has_no_budget_left(start: Start) -> None:
    url = start()
    tokens = [answer.json()["access_token"] for answer in take(url, 150) if answer.status_code == 200]
    reading = [
        (f"{url}/whoami", {"method": "GET", "headers": {"authorization": f"Bearer {tokens[i % BUDGET]}"}})
        for i in range(1000)
    ]
    assert statuses(at_once(reading)) == {200: 1000}
    assert statuses(take(url, 1)) == {429: 1}


def test_another_subject_has_a_budget_of_its_own(start: Start) -> None:
    url = start()
    take(url, 150)
    assert statuses(take(url, 150, "reports")) == {200: BUDGET, 429: 50}


def test_claims_without_a_subject_are_counted_on_the_address_alone(start: Start) -> None:
    url = start()
    guests = at_once([(f"{url}/guest", {})] * 150)
    assert statuses(guests) == {200: 150}
    assert whoami(url, guests[0].json()["access_token"]).json() == {"sub": None}


def test_wrong_secrets_are_counted_on_the_address_and_right_ones_are_not(start: Start) -> None:
    url = start(ADDRESS_RATES="30/1d")
    for _ in range(40):
        assert statuses(take(url, 1)) == {200: 1}
    answers = at_once([(f"{url}/token", {"json": client("billing", "wrong")})] * 100)
    assert statuses(answers) == {401: 30, 429: 70}
    waits = {int(answer.headers["retry-after"]) for answer in answers if answer.status_code == 429}
    assert max(waits) <= 86_400 / 30 < min(waits) + 60


def test_what_makes_no_sense_is_refused_and_costs_no_subject_anything(start: Start) -> None:
    url = start()
    (issued,) = take(url, 1)
    nonsense = at_once(
        [
            (f"{url}/token", {"json": {}}),
            (f"{url}/token", {"json": {"client_id": "billing"}}),
            (f"{url}/token", {"json": client("nobody")}),
            (f"{url}/token", {"json": client("billing", "\N{KEY}" * 9)}),
            (f"{url}/token", {"content": b"{", "headers": JSON}),
            (f"{url}/token", {"content": b'{"client_id": NaN, "client_secret": "secret of billing"}', "headers": JSON}),
            (f"{url}/token", {"content": b'["secret of billing"]', "headers": JSON}),
            (f"{url}/token", {"content": b'"secret of billing"', "headers": JSON}),
            (f"{url}/token", {"content": b"client_id=billing"}),
            (f"{url}/refresh", {"json": {}}),
            (f"{url}/refresh", {"json": {"refresh_token": "a.b.c"}}),
            (f"{url}/refresh", {"json": {"refresh_token": issued.json()["access_token"]}}),
        ]
    )
    assert set(statuses(nonsense)) <= {400, 401}
    assert all("secret" not in answer.text and answer.text.startswith("{") for answer in nonsense)
    assert whoami(url, issued.json()["refresh_token"]).status_code == 401
    assert whoami(url, "none").status_code == 401
    assert statuses(take(url, 150)) == {200: BUDGET - 1, 429: 51}


def test_a_provider_without_doorkeep_keeps_the_budget(start: Start) -> None:
    assert statuses(take(start(PROVIDER="quota"), 300)) == {200: BUDGET, 429: 200}


def test_both_services_share_one_window_in_redis(serve: Callable[..., str], redis: Server) -> None:
    env = {"PROVIDER": "window", "REDIS_URL": redis.url}
    urls = [run(serve, language, env) for language in COMMANDS]
    answers = at_once([(f"{url}/token", {"json": client("billing")}) for url in urls] * 150)
    assert statuses(answers) == {200: BUDGET, 429: 200}


def test_a_window_whose_server_is_gone_issues_nothing(start: Start, redis: Server) -> None:
    url = start(PROVIDER="window", REDIS_URL=redis.url)
    (issued,) = take(url, 1)
    redis.kill()
    assert statuses(take(url, 20)) == {429: 20}
    assert whoami(url, issued.json()["access_token"]).status_code == 200


def whoami(url: str, token: str) -> httpx.Response:
    return httpx.get(f"{url}/whoami", headers={"authorization": f"Bearer {token}"})


def test_clients_without_an_address_get_their_tokens_and_each_is_logged() -> None:
    lines = [
        "from app import app",
        "from fastapi.testclient import TestClient",
        "body = {'client_id': 'billing', 'client_secret': 'secret of billing'}",
        "print([TestClient(app).post('/token', json=body).status_code for _ in range(3)])",
    ]
    command = [sys.executable, "-W", "ignore", "-c", "\n".join(lines)]
    folder = Path(__file__).parents[2] / "examples" / "token_issuer"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[200, 200, 200]\n", done.stderr
    assert done.stderr.count("it has no address") == 3
