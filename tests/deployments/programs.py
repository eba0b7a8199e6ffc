"""The programs of the README, the guides, the ways from others and the examples: how each starts, and what it admits.

A program is its page's text, read at run time. Only this is put into it: the proxies that it trusts, the wrapper that
writes down which passwords its check sees, and where a page leaves it out, the line that listens. A page that has
changed so that this cannot be put into it fails here.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import clients
from clients import Entrance
from pages import ROOT, Script, block, compile_strictly, empty_folder, script
from running import INSTRUMENTS

Files = Mapping[str, str]
USERS = 2000
PYTHON = [sys.executable, "-m"]
SEEN = ("See it work",)


@dataclass(frozen=True)
class Budget:
    """How many guesses are admitted at once, and after how many seconds one more is."""

    most: float
    regained_after: float = math.inf

    def bounds(self, guesses: int, seconds: float) -> tuple[float, float]:
        """Return the least and the most of so many guesses that are admitted within a time."""
        return min(self.most, guesses), min(self.most + seconds // self.regained_after, guesses)


UNBOUNDED = Budget(math.inf)


@dataclass(frozen=True)
class Policy:
    """What the rules of a program admit, by what the guesses have in common."""

    pair: Budget = Budget(5)
    """One account from one address."""
    address: Budget = Budget(20, 60 / 20)
    """Many accounts from one address."""
    account: Budget = Budget(20, 3600 / 20)
    """One account, without an address or from many."""
    asks_addresses: bool = True


BY_RATES = Policy(pair=Budget(5, 60 / 5))
BY_ACCOUNT = Policy(Budget(3), UNBOUNDED, Budget(3), asks_addresses=False)
OF_TOKENS = Policy(Budget(30, 86_400 / 30), Budget(30, 86_400 / 30), UNBOUNDED)


@dataclass(frozen=True)
class Login:
    """How a program is asked, and how it answers."""

    path: str = "/login"
    account: str = "email"
    password: str = "password"
    is_form: bool = False
    right: tuple[str, str] = ("ann@example.com", "correct horse battery staple")
    welcome: int = 200
    wrong: int = 401
    names: str = "user-{}@example.com"

    def guess(self, number: int, turn: int, headers: Sequence[str] = (), raising: bool = False) -> bytes:
        """Return a request with a wrong password, which tells the account and the turn."""
        name = self.names.format(number)
        return self._request(name, f"{name} guess {turn}{' raises' if raising else ''}", headers)

    def log_in(self, headers: Sequence[str] = ()) -> bytes:
        """Return a request with the right password."""
        return self._request(*self.right, headers)

    def parts(self, name: str, password: str) -> tuple[str, str, str]:
        """Return the path, the kind and the content of a request."""
        fields = {self.account: name, self.password: password}
        if self.is_form:
            # What Django's own forms ask for; see the cookie.
            fields["csrfmiddlewaretoken"] = TOKEN
            return self.path, "application/x-www-form-urlencoded", urlencode(fields)
        return self.path, "application/json", json.dumps(fields)

    def _request(self, name: str, password: str, headers: Sequence[str]) -> bytes:
        path, kind, content = self.parts(name, password)
        cookies = [f"Cookie: csrftoken={TOKEN}"] if self.is_form else []
        return clients.request(path, content.encode(), kind, [*cookies, *headers])


TOKEN = "a" * 32
OF_DJANGO = Login(
    "/login/",
    "username",
    is_form=True,
    right=("ann", "correct horse battery staple"),
    welcome=302,
    wrong=200,
    names="user-{}",
)
OF_ADMIN = Login("/admin/login/", *("username", "password", True), OF_DJANGO.right, 302, 200, "user-{}")
SESAME = Login(right=("ann@example.com", "open sesame"))


@dataclass(frozen=True)
class Program:
    """One program, and one way to serve it."""

    name: str
    server: str
    place: str
    files: Callable[[], Files]
    login: Login = Login()
    policy: Policy = Policy()
    env: Mapping[str, str] = field(default_factory=dict)
    has_users: bool = False

    @property
    def loses_addresses(self) -> bool:
        """Whether the server knows no address any more when a connection was reset before it looked."""
        # A server of WSGI is told the address when it accepts the connection.
        return self.server in ("uvicorn", "uvicorn-django", "node")

    @functools.cached_property
    def folder(self) -> Path:
        """The folder that the program is in, with its tables and users, if it has any."""
        folder = empty_folder(f"deployments/{self.name}")
        self._write(folder, self.files())
        if self.has_users:
            arguments = [sys.executable, str(INSTRUMENTS / "populate.py"), str(USERS), self.login.right[1]]
            env = {**os.environ, **self._environment(()), "PYTHONPATH": f"{INSTRUMENTS}:{folder}"}
            done = subprocess.run(arguments, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stdout + done.stderr
        return folder

    def trusting(self, proxies: Sequence[str]) -> dict[str, str]:
        """Write the program anew so that it trusts these proxies. Return the environment that it needs."""
        self._write(self.folder, {name: trusting(text, proxies) for name, text in self.files().items()})
        return self._environment(proxies)

    def command(self, entrance: Entrance, proxies: Sequence[str] = ()) -> list[str]:
        """Return what starts the program."""
        if self.server == "node":
            return ["node", "--import", (INSTRUMENTS / "instrument.mjs").as_uri(), self.place]
        if self.server == "wsgiref":
            return [sys.executable, self.place, str(entrance.port)]
        if self.server == "gunicorn":
            place = f"unix:{entrance.path}" if entrance.path else f"127.0.0.1:{entrance.port}"
            options = ["--bind", place, "--threads", "4", "--no-control-socket", "--log-level", "warning"]
            return [*PYTHON, "gunicorn", *options, self.place]
        at = ["--uds", str(entrance.path)] if entrance.path else ["--port", str(entrance.port)]
        options = [*at, "--log-level", "warning", "--timeout-graceful-shutdown", "1"]
        if self.server == "uvicorn-django":
            options += ["--factory", "--lifespan", "off"]
        # Where a program takes the peer as its server names it, the server is told whom to believe.
        by_server = proxies and self.server == "uvicorn" and "ClientIp(" not in "".join(self.files().values())
        options += ["--forwarded-allow-ips", ",".join(proxies)] if by_server else ["--no-proxy-headers"]
        return [*PYTHON, "uvicorn", *options, self.place]

    def _environment(self, proxies: Sequence[str]) -> dict[str, str]:
        return {"TRUSTED_PROXIES": ",".join(proxies), **self.env}

    def _write(self, folder: Path, files: Files) -> None:
        for name, text in files.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")


def trusting(text: str, proxies: Sequence[str]) -> str:
    """Return a program that trusts these proxies, where it says whom it trusts."""
    if not proxies:
        return text
    names = ", ".join(f"'{proxy}'" for proxy in proxies)
    text = re.sub(r"new ClientIp\(\)", f"new ClientIp({{ trustedProxies: [{names}] }})", text)
    return re.sub(r"(?<!new )\bClientIp\(\)", f"ClientIp(trusted_proxies=[{names}])", text)


def counting(text: str, check: str, *, before: str = "") -> str:
    """Return a program that writes down what its check of passwords, a function, is asked."""
    # Both languages look a function up when it is called, so that the wrapper may stand below.
    text = re.sub(rf"^const {check} = ", f"let {check} = ", text, flags=re.M)
    if re.search(rf"^(export )?(async )?function {check}\(|^let {check} = ", text, re.M):
        return f"{text}\n{before}{check} = counted({check})\n"
    assert re.search(rf"^(async )?def {check}\(", text, re.M), f"the program has no function {check}"
    return f"{text}\n{before}import instrument\n{check} = instrument.counted({check})\n"


def comparing(text: str) -> str:
    """Return a program that writes down what it compares a password with, where its page writes that out."""
    of_js = r"([\w.]+) !== ('open sesame')"
    of_python = r"([\w.]+(?:\[\"\w+\"\])?) != (\"open sesame\")"
    made, times = re.subn(of_js, r"!matches(\1, \2)", text)
    if not times:
        made, times = re.subn(of_python, r"not instrument.matches(\1, \2)", text)
        made += "\nimport instrument\n"
    assert times == 1, f"the program compares {times} passwords"
    return made


def counting_hashes(settings: str) -> str:
    """Return the settings of Django with the proxies that it trusts, and a hasher that writes down what it verifies."""
    return f"""{settings}
import os as _os
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["hashing.CountingHasher"]
if _os.environ.get("TRUSTED_PROXIES"):
    DOORKEEP = {{**globals().get("DOORKEEP", {{}}), "trusted_proxies": _os.environ["TRUSTED_PROXIES"].split(",")}}
"""


def fastapi_of_the_readme() -> Files:
    return {"login.py": counting(block("python", "from fastapi import"), "verify")}


def express_of_the_readme() -> Files:
    return {"login.mjs": counting(block("js", "from 'express'"), "verify")}


@functools.cache
def new_django_project() -> Files:
    folder = empty_folder("deployments/startproject")
    done = subprocess.run([*PYTHON, "django", "startproject", "shop", "."], cwd=folder, timeout=60)
    assert done.returncode == 0
    return texts_of(folder)


def django_of_the_readme() -> Files:
    files = new_django_project()
    settings = files["shop/settings.py"] + block("python", "doorkeep.django")
    return {**files, "shop/settings.py": counting_hashes(settings)}


def fastapi_of_the_guide() -> Files:
    # What comes after these sections is another program, or makes the objects of this one anew.
    page = script("docs/guides/fastapi.md", "python", (*SEEN, "Several workers", "Starlette without FastAPI"))
    return {"page.py": counting(page.code, "verify")}


def starlette_of_the_guide() -> Files:
    page = script("docs/guides/fastapi.md", "python", SEEN)
    # No server is there, so that it decides by itself.
    return {"page.py": counting(page.code.replace("redis://127.0.0.1:6379/0", "redis://127.0.0.1:1/0"), "verify")}


def django_of_the_guide() -> Files:
    files = script("docs/guides/django.md", "python").files
    return {"settings.py": counting_hashes(files["settings.py"]), "urls.py": files["urls.py"]}


def express_of_the_guide() -> Files:
    page = script("docs/guides/express.md", "js", SEEN)
    return {"page.mjs": counting(page.code, "verify", before="app.listen(process.env.PORT)\n")}


def fastify_of_the_guide() -> Files:
    page = script("docs/guides/fastify.md", "js", SEEN)
    listen = "await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })\n"
    return {"page.mjs": counting(page.code, "verify", before=listen)}


@functools.cache
def nest_of_the_guide() -> Files:
    page = script("docs/guides/nestjs.md", "ts", SEEN)
    folder = empty_folder("deployments/compiled")
    (folder / "page.mts").write_text(page.code + "\nvoid NestFactory, AppModule\n", encoding="utf-8")
    compile_strictly("page.mts", folder)
    compiled = (folder / "page.mjs").read_text(encoding="utf-8")
    listen = "const app = await NestFactory.create(AppModule, { logger: false })\n"
    listen += "await app.listen(process.env.PORT, '127.0.0.1')\n"
    return {"page.mjs": counting(compiled, "verify", before=listen)}


def shop_of_the_guide_to_testing() -> Files:
    text = script("docs/guides/testing.md", "python").files["shop.py"]
    return {"shop.py": comparing(text) + "app = make_app(Limiter())\n"}


def after_slowapi() -> Files:
    return {"after.py": comparing(script("docs/migrate/slowapi.md", "python").files["after.py"])}


def after_express_rate_limit() -> Files:
    text = script("docs/migrate/express-rate-limit.md", "js").files["login.mjs"]
    return {"login.mjs": comparing(text) + "app.listen(process.env.PORT)\n"}


def after_django_ratelimit() -> Files:
    files = script("docs/migrate/django-ratelimit.md", "python").files
    views = comparing(files["views.py"])
    return {"settings.py": counting_hashes(files["settings.py"]), "urls.py": files["urls.py"], "views.py": views}


def of_django_axes() -> Script:
    return script("docs/migrate/django-axes.md", "python")


def beside_django_axes() -> Files:
    files = of_django_axes().files
    # Who keeps axes tells axes, and not doorkeep, where the address is.
    settings = f'{files["settings.py"]}AXES_CLIENT_IP_CALLABLE = "proxied.client_ip"\n'
    return {"settings.py": counting_hashes(settings), "urls.py": files["urls.py"]}


def after_django_axes() -> Files:
    files = of_django_axes().files
    return {**files, "settings_after.py": counting_hashes(files["settings_after.py"])}


def example(name: str, file: str, check: str) -> Callable[[], Files]:
    """Return what gives the files of an example, with the check of passwords counted, which is in one of them."""

    def files() -> Files:
        texts = texts_of(ROOT / "examples" / name)
        if check == "hash":
            return {**texts, file: counting_hashes(texts[file])}
        return {**texts, file: counting(texts[file], check)}

    return files


def texts_of(folder: Path) -> dict[str, str]:
    kinds = (".py", ".mjs", ".html", ".json")
    found = [
        place for place in sorted(folder.rglob("*")) if place.suffix in kinds and "node_modules" not in place.parts
    ]
    return {str(place.relative_to(folder)): place.read_text(encoding="utf-8") for place in found}


WSGI = "django.core.wsgi:get_wsgi_application()"
ASGI = "django.core.asgi:get_asgi_application"
AXES = Login("/login", "username", is_form=True, right=OF_DJANGO.right, names="user-{}")
TOKENS = Login("/token", "client_id", "client_secret", right=("billing", "secret of billing"))


def settings(module: str) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": module}


PROGRAMS = [
    Program("readme-fastapi", "uvicorn", "login:app", fastapi_of_the_readme),
    Program("readme-express", "node", "login.mjs", express_of_the_readme),
    *(
        Program(
            f"readme-django-{server}",
            server,
            place,
            django_of_the_readme,
            OF_ADMIN,
            env=settings("shop.settings"),
            has_users=True,
        )
        for server, place in [("gunicorn", WSGI), ("uvicorn-django", ASGI)]
    ),
    Program("guide-fastapi", "uvicorn", "page:app", fastapi_of_the_guide),
    Program("guide-starlette", "uvicorn", "page:starlette", starlette_of_the_guide),
    Program(
        "guide-django",
        "gunicorn",
        WSGI,
        django_of_the_guide,
        OF_DJANGO,
        BY_RATES,
        settings("settings"),
        has_users=True,
    ),
    Program("guide-express", "node", "page.mjs", express_of_the_guide),
    Program("guide-fastify", "node", "page.mjs", fastify_of_the_guide),
    Program("guide-nestjs", "node", "page.mjs", nest_of_the_guide),
    Program("guide-testing", "uvicorn", "shop:app", shop_of_the_guide_to_testing, SESAME, BY_ACCOUNT),
    Program("migrate-slowapi", "uvicorn", "after:app", after_slowapi, SESAME, BY_RATES),
    Program(
        "migrate-express-rate-limit",
        "node",
        "login.mjs",
        after_express_rate_limit,
        Login(right=SESAME.right, welcome=204),
        BY_RATES,
    ),
    Program(
        "migrate-django-ratelimit",
        "gunicorn",
        WSGI,
        after_django_ratelimit,
        Login(is_form=True, right=SESAME.right),
        BY_RATES,
        settings("settings"),
    ),
    Program(
        "migrate-django-axes-kept",
        "gunicorn",
        WSGI,
        beside_django_axes,
        AXES,
        Policy(Budget(3), UNBOUNDED, UNBOUNDED),
        settings("settings"),
        has_users=True,
    ),
    Program(
        "migrate-django-axes-replaced",
        "gunicorn",
        WSGI,
        after_django_axes,
        AXES,
        Policy(Budget(3)),
        settings("settings_after"),
        has_users=True,
    ),
    Program("example-fastapi", "uvicorn", "app:app", example("fastapi_login", "accounts.py", "verify_password")),
    Program(
        "example-django",
        "uvicorn-django",
        ASGI,
        example("django_login", "shop/settings.py", "hash"),
        OF_DJANGO,
        env=settings("shop.settings"),
        has_users=True,
    ),
    Program("example-express", "node", "app.mjs", example("express_login", "accounts.mjs", "verifyPassword")),
    Program("example-fastify", "node", "app.mjs", example("fastify_login", "accounts.mjs", "verifyPassword")),
    Program(
        "example-token-issuer",
        "uvicorn",
        "app:app",
        example("token_issuer", "app.py", "known"),
        TOKENS,
        OF_TOKENS,
        {"ADDRESS_RATES": "30/1d"},
    ),
    Program(
        "example-token-issuer-node",
        "node",
        "app.mjs",
        example("token_issuer_node", "app.mjs", "known"),
        TOKENS,
        OF_TOKENS,
        {"ADDRESS_RATES": "30/1d"},
    ),
]
