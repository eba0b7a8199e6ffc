"""The FastAPI programs of README, guide and example, over a database that folds names, and without an address.

Each is imported as it stands, and its look-up is replaced by one that takes every accented spelling for the account.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from pages import FENCE, ROOT, empty_folder

RIGHT = {"email": "ann@example.com", "password": "correct horse battery staple"}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer releases of Starlette ask for another client of HTTP
    from fastapi.testclient import TestClient

ADDRESSES = [f"203.0.113.{n}" for n in range(1, 201)]
# What `presets.login_account` admits at once.
BUDGET = 20
ACCENTS = [chr(code) for code in range(0x300, 0x370) if unicodedata.combining(chr(code)) and code != 0x34F]


def readme() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return next(body for language, _, body in FENCE.findall(text) if language == "python" and "from fastapi" in body)


def guide() -> str:
    text = (ROOT / "docs" / "guides" / "fastapi.md").read_text(encoding="utf-8")
    text = re.split(r"^## See it work$", text, flags=re.M)[0]
    return "".join(body for language, title, body in FENCE.findall(text) if language == "python" and not title)


class Program:
    """A program that has been imported, and the passwords that it compared with the one of an account."""

    def __init__(self, module: ModuleType, accounts: ModuleType, verify: str) -> None:
        self.app = module.app
        self.checked: list[str] = []
        self._replace(accounts, "find", lambda find: lambda name: find(folded(name)))
        self._replace(accounts, verify, self._noting)

    def client(self, address: str | None = None) -> TestClient:
        return TestClient(self.app) if address is None else TestClient(self.app, client=(address, 50000))

    def _noting(self, verify: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def note(account: Any, password: str) -> Any:
            if account is not None:
                self.checked.append(password)
            return verify(account, password)

        async def awaited(account: Any, password: str) -> Any:
            return await note(account, password)

        return awaited if inspect.iscoroutinefunction(verify) else note

    @staticmethod
    def _replace(module: ModuleType, name: str, wrap: Callable[[Any], Any]) -> None:
        setattr(module, name, wrap(getattr(module, name)))


def folded(name: str) -> str:
    """Return a name as a collation folds it that knows neither case nor accents."""
    return "".join(one for one in unicodedata.normalize("NFD", name) if not unicodedata.combining(one)).lower()


@pytest.fixture(params=["readme", "guide", "example"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    folder = empty_folder(f"aliases-{request.param}")
    if request.param == "example":
        folder = ROOT / "examples" / "fastapi_login"
    else:
        (folder / "app.py").write_text({"readme": readme, "guide": guide}[request.param](), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    scrypt = hashlib.scrypt
    monkeypatch.setattr(hashlib, "scrypt", lambda password, **cost: scrypt(password, **{**cost, "n": 2}))
    try:
        module = importlib.import_module("app")
        accounts = importlib.import_module("accounts") if request.param == "example" else module
        yield Program(module, accounts, "verify_password" if request.param == "example" else "verify")
    finally:
        for name in ("app", "accounts"):
            sys.modules.pop(name, None)


def aliases() -> list[str]:
    found = [f"a{one}nn@example.com" for one in ACCENTS] + [f"an{one}n@example.com" for one in ACCENTS]
    assert len(found) >= 200
    return found[:200]


@pytest.mark.parametrize("addresses", [ADDRESSES, [None] * 200], ids=["many-addresses", "no-address"])
def test_200_aliases_of_an_account_share_its_budget_and_answer_alike(
    program: Program, addresses: list[str | None]
) -> None:
    seen = set()
    for n, (email, address) in enumerate(zip(aliases(), addresses, strict=True)):
        answer = program.client(address).post("/login", json={"email": email, "password": f"guess {n}"})
        seen.add((answer.status_code, tuple(sorted(answer.headers.items())), answer.content))
    assert 0 < len(program.checked) <= BUDGET
    assert [status for status, _, _ in seen] == [401]
    # Not even the right password is told apart by an alias when the account has no budget left.
    late = program.client("198.51.100.1").post("/login", json={**RIGHT, "email": aliases()[0]})
    assert (late.status_code, tuple(sorted(late.headers.items())), late.content) in seen
    assert program.client("198.51.100.2").post("/login", json=RIGHT).status_code == 429


def test_an_unknown_account_is_limited_like_a_known_one(program: Program) -> None:
    client = program.client()
    unknown = {"email": "eve@example.com", "password": "wrong"}
    assert [client.post("/login", json=unknown).status_code for _ in range(25)] == [401] * BUDGET + [429] * 5
    assert not program.checked


def test_the_right_password_by_an_alias_is_welcome(program: Program) -> None:
    for email in aliases()[:30]:
        assert program.client("203.0.113.9").post("/login", json={**RIGHT, "email": email}).status_code == 200


def test_without_an_address_the_right_password_is_welcome_and_guesses_are_limited(program: Program) -> None:
    client = program.client()
    assert [client.post("/login", json=RIGHT).status_code for _ in range(30)] == [200] * 30
    guesses = [client.post("/login", json={**RIGHT, "password": f"guess {n}"}).status_code for n in range(30)]
    assert guesses == [401] * BUDGET + [429] * 10
    assert len(program.checked) == 30 + BUDGET
