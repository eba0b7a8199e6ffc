"""The README's code runs as it stands, and its login routes survive 500 parallel guesses."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pages import block, compile_strictly, empty_folder, printed

RIGHT = {"email": "ann@example.com", "password": "correct horse battery staple"}
GUESSES = 500


@pytest.fixture
def folder() -> Path:
    return empty_folder("readme")


@contextlib.contextmanager
def serving(command: list[str], folder: Path, port: int, path: str = "/login") -> Iterator[str]:
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "PORT": str(port)})
    try:
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, "the service ended"
            assert time.monotonic() < deadline, "the service did not come up"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}{path}"
    finally:
        process.terminate()
        process.wait(10)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def attack(url: str) -> Counter[int]:
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:
        guesses = (client.post(url, json={"email": RIGHT["email"], "password": f"guess {i}"}) for i in range(GUESSES))
        answers = await asyncio.gather(*guesses)
        denied = next(answer for answer in answers if answer.status_code == 429)
        assert 0 < int(denied.headers["retry-after"]) <= 900
        assert (await client.post(url, json={"email": " ", "password": "x"})).status_code == 400
        return Counter(answer.status_code for answer in answers)


def hold(command: list[str], folder: Path, port: int) -> None:
    with serving(command, folder, port) as url:
        welcome = httpx.post(url, json=RIGHT, timeout=30)
        assert (welcome.status_code, welcome.json()) == (200, {"welcome": "ann@example.com"})
        assert asyncio.run(attack(url)) == {401: 5, 429: GUESSES - 5}
        # The right password does not help on a locked key: the answer must not tell that it was right.
        assert httpx.post(url, json=RIGHT, timeout=30).status_code == 429


class DjangoProject:
    """What `startproject` makes, with the README's lines at the end of its settings and one member of staff."""

    def __init__(self, folder: Path, lines: str) -> None:
        self.folder = folder
        self._run("-m", "django", "startproject", "shop", ".")
        with (folder / "shop" / "settings.py").open("a", encoding="utf-8") as settings:
            settings.write(lines)
        self._run("manage.py", "check", "--fail-level", "WARNING")
        self._run("manage.py", "migrate", "--verbosity", "0")
        self._run("manage.py", "createsuperuser", "--no-input", "--username", "ann", "--email", RIGHT["email"])

    def _run(self, *arguments: str) -> None:
        environment = {**os.environ, "DJANGO_SUPERUSER_PASSWORD": RIGHT["password"]}
        subprocess.run([sys.executable, *arguments], cwd=self.folder, env=environment, check=True)

    def serving(self) -> contextlib.AbstractContextManager[str]:
        port = free_port()
        command = [sys.executable, "manage.py", "runserver", "--noreload", "--verbosity", "0", str(port)]
        return serving(command, self.folder, port, "/admin/login/")

    def log_in(self, url: str, password: str) -> httpx.Response:
        with httpx.Client(timeout=60) as client:
            return client.post(url, **self._form(client.get(url), password))

    async def attack(self, url: str) -> Counter[int]:
        # Django's own server queues ten connections: more would wait for their packets to be sent again.
        limits = httpx.Limits(max_connections=20)
        async with httpx.AsyncClient(limits=limits, timeout=120) as client:
            form = await client.get(url)
            guesses = (client.post(url, **self._form(form, f"guess {i}")) for i in range(GUESSES))
            return Counter(answer.status_code for answer in await asyncio.gather(*guesses))

    def _form(self, form: httpx.Response, password: str) -> dict[str, dict[str, str]]:
        token = form.cookies["csrftoken"]
        fields = {"csrfmiddlewaretoken": token, "username": "ann", "password": password, "next": "/admin/"}
        return {"data": fields, "headers": {"Cookie": f"csrftoken={token}"}}


def test_the_fastapi_login_verifies_5_of_500_parallel_guesses(folder: Path) -> None:
    (folder / "login.py").write_text(block("python", "from fastapi import"), encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "login:app", "--no-proxy-headers", "--log-level", "warning"]
    hold([*command, "--port", str(port)], folder, port)


def test_the_express_login_verifies_5_of_500_parallel_guesses(folder: Path) -> None:
    (folder / "login.mjs").write_text(block("js", "from 'express'"), encoding="utf-8")
    hold(["node", "login.mjs"], folder, free_port())


def test_the_django_admin_verifies_5_of_500_parallel_guesses(folder: Path) -> None:
    project = DjangoProject(folder, block("python", "doorkeep.django"))
    with project.serving() as login:
        assert project.log_in(login, RIGHT["password"]).status_code == 302
        assert asyncio.run(project.attack(login)) == {200: 5, 429: GUESSES - 5}
        assert project.log_in(login, RIGHT["password"]).status_code == 429


def test_the_bound_of_a_day_is_what_the_readme_prints(folder: Path) -> None:
    (folder / "bound.py").write_text(block("python", "max_in"), encoding="utf-8")
    assert printed([sys.executable, "bound.py"], folder) == ["1249"]


def test_the_stores_are_made_as_the_readme_says_also_while_no_server_is_there(folder: Path) -> None:
    (folder / "store.py").write_text(block("python", "RedisStore"), encoding="utf-8")
    (folder / "store.mts").write_text(block("ts", "RedisStore"), encoding="utf-8")
    compile_strictly("store.mts", folder)
    assert printed([sys.executable, "store.py"], folder) == []
    assert printed(["node", "store.mjs"], folder) == []
