"""The keys of a FastAPI guard must be made from what the endpoint reads, or a client is counted under one account and
guesses at another."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Body, Depends, FastAPI, Form, Header, Query
from fastapi.security import OAuth2PasswordRequestForm
from pydantic import BaseModel, Field

from doorkeep import ConfigError, Key, Limiter, StrikeRule
from doorkeep.fastapi import guard, install
from support.web import CLIENT, Exchange

ACCOUNT = StrikeRule("account", threshold=5, lockout_window="15m", by=("account",))
Serve = Callable[[Any], str]


class Login(BaseModel):
    """The form of a login."""

    email: str
    password: str


class Named(BaseModel):
    """The part of a login that its key is made from."""

    email: str


class Renamed(BaseModel):
    """A model that reads the account from another JSON field."""

    email: str = Field(alias="Email")


class Captcha(BaseModel):
    """Another part of a form."""

    answer: str = ""


def by_form(form: Login) -> list[Key]:
    return [ACCOUNT.key(form.email)]


def by_login(login: Login) -> list[Key]:
    return [ACCOUNT.key(login.email)]


def by_query(email: str) -> list[Key]:
    return [ACCOUNT.key(email)]


# The requests of a client that is counted under mallory and guesses at ann, wherever each is read.
TWO = {
    "form": {"email": "mallory", "password": "x", "Email": "mallory"},
    "login": {"email": "ann", "password": "x", "answer": "x"},
    "email": "ann",
    "Email": "mallory",
    "password": "x",
}


class Application:
    """An application that records the accounts that were guessed at."""

    def __init__(self) -> None:
        self.app = FastAPI()
        self.guessed: list[str] = []
        install(self.app)

    def endpoint(self) -> Any:
        async def login(login: Login) -> None:
            self.guessed.append(login.email)

        return login

    def guess(self, serve: Serve, path: str = "/login", body: Any = None, **options: Any) -> list[int]:
        """Guess seven times, as an attacker and as an honest client, and return the statuses."""
        url = serve(self.app) + path
        bodies = [TWO, {"email": "ann", "password": "x"}] if body is None else [body]
        return [CLIENT.post(url, json=sent, **options).status_code for sent in bodies for _ in range(7)]


@pytest.fixture
def application() -> Application:
    return Application()


def assert_refused(application: Application, statuses: list[int]) -> None:
    assert set(statuses) == {500}
    assert application.guessed == []


@pytest.mark.parametrize("place", ["route", "router", "included", "nested", "application", "mounted"])
def test_a_guard_with_its_own_body_is_refused_wherever_it_is_declared(serve: Serve, place: str) -> None:
    limiter, application = Limiter(), Application()
    guarded = [Depends(guard(limiter, keys=by_form))]
    app, endpoint = application.app, application.endpoint()
    if place == "route":
        app.post("/login", dependencies=guarded)(endpoint)
    elif place == "router":
        router = APIRouter(dependencies=guarded)
        router.post("/login")(endpoint)
        app.include_router(router)
    elif place == "included":
        router = APIRouter()
        router.post("/login")(endpoint)
        app.include_router(router, dependencies=guarded)
    elif place == "nested":
        router, outer = APIRouter(), APIRouter(dependencies=guarded)
        router.post("/login")(endpoint)
        outer.include_router(router)
        app.include_router(outer)
    else:
        application.app = app = FastAPI(dependencies=guarded)
        app.post("/login")(endpoint)
        install(app)
        if place == "mounted":
            application.app = FastAPI()
            application.app.mount("/", app)
    assert_refused(application, application.guess(serve))
    assert len(limiter) == 0


def test_any_request_gets_an_error_that_says_what_to_do() -> None:
    application = Application()
    application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=by_form))])(application.endpoint())
    with pytest.raises(ConfigError, match="give the parameter the same name and type in both, parameter=`form`$"):
        Exchange(path="/login", method="POST").run(application.app)


def test_a_body_that_only_another_guard_reads_is_refused(serve: Serve, application: Application) -> None:
    def by_form_again(form: Login) -> list[Key]:
        return [ACCOUNT.key(form.email)]

    guards = [Depends(guard(Limiter(), keys=keys)) for keys in (by_form, by_form_again)]
    application.app.post("/login", dependencies=guards)(application.endpoint())
    assert_refused(application, application.guess(serve))


def test_a_dependency_that_reads_another_parameter_of_the_same_name_is_not_enough(
    serve: Serve, application: Application
) -> None:
    def captcha(form: Captcha) -> None: ...

    dependencies = [Depends(captcha), Depends(guard(Limiter(), keys=by_form))]
    application.app.post("/login", dependencies=dependencies)(application.endpoint())
    assert_refused(application, application.guess(serve))


def test_an_account_from_the_query_is_refused_when_the_endpoint_reads_a_body(
    serve: Serve, application: Application
) -> None:
    application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=by_query))])(application.endpoint())
    assert_refused(application, application.guess(serve, params={"email": "mallory"}))


def test_an_account_from_another_name_of_the_query_is_refused(serve: Serve, application: Application) -> None:
    @application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=by_query))])
    async def login(account: Annotated[str, Query()]) -> None:
        application.guessed.append(account)

    assert_refused(application, application.guess(serve, params={"email": "mallory", "account": "ann"}))


def test_a_model_that_reads_another_name_of_the_same_body_is_refused(serve: Serve, application: Application) -> None:
    def keys(login: Renamed) -> list[Key]:
        return [ACCOUNT.key(login.email)]

    application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=keys))])(application.endpoint())
    assert_refused(application, application.guess(serve))


def test_forms_of_two_names_are_refused(serve: Serve, application: Application) -> None:
    def keys(name: Annotated[str, Form()]) -> list[Key]:
        return [ACCOUNT.key(name)]

    @application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=keys))])
    async def login(username: Annotated[str, Form()], password: Annotated[str, Form()]) -> None:
        application.guessed.append(username)

    url = serve(application.app) + "/login"
    sent = {"name": "mallory", "username": "ann", "password": "x"}
    assert_refused(application, [CLIENT.post(url, data=sent).status_code for _ in range(7)])


# What is accepted


def test_the_model_or_a_part_of_it_by_the_same_name_is_accepted(serve: Serve) -> None:
    def part(login: Named) -> list[Key]:
        return [ACCOUNT.key(login.email)]

    for keys in (by_login, part):
        application = Application()
        application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=keys))])(application.endpoint())
        statuses = application.guess(serve, body={"email": "ann", "password": "x"})
        assert statuses == [200] * 5 + [429] * 2
        # A second account next to the first changes nothing: it is not read.
        assert application.guess(serve, body={**TWO, "email": "eve"}) == [200] * 5 + [429] * 2


def test_an_optional_body_is_accepted(serve: Serve, application: Application) -> None:
    @application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=by_login))])
    async def login(login: Login | None = None) -> None: ...

    assert application.guess(serve, body={"email": "ann", "password": "x"}) == [200] * 5 + [429] * 2


def test_a_dependency_that_keys_and_endpoint_share_is_accepted(serve: Serve, application: Application) -> None:
    def subject(form: Login) -> str:
        return form.email

    def keys(subject: Annotated[str, Depends(subject)]) -> list[Key]:
        return [ACCOUNT.key(subject)]

    @application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=keys))])
    async def login(subject: Annotated[str, Depends(subject)], device: Annotated[str, Body()]) -> None:
        application.guessed.append(subject)

    body = {"form": {"email": "ann", "password": "x"}, "device": "x"}
    assert application.guess(serve, body=body) == [200] * 5 + [429] * 2


def test_a_body_that_only_the_keys_read_is_accepted(serve: Serve, application: Application) -> None:
    @application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=by_form))])
    async def login(agent: Annotated[str, Header(alias="user-agent")]) -> None: ...

    assert application.guess(serve, body={"email": "ann", "password": "x"}) == [200] * 5 + [429] * 2


def test_the_form_of_oauth2_is_accepted(serve: Serve, application: Application) -> None:
    Credentials = Annotated[OAuth2PasswordRequestForm, Depends()]

    def keys(form: Credentials) -> list[Key]:
        return [ACCOUNT.key(form.username)]

    @application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=keys))])
    async def login(credentials: Credentials) -> None: ...

    url = serve(application.app) + "/login"
    sent = {"username": "ann", "password": "x"}
    assert [CLIENT.post(url, data=sent).status_code for _ in range(7)] == [200] * 5 + [429] * 2


def test_a_query_that_both_read_is_accepted_next_to_a_body(serve: Serve, application: Application) -> None:
    @application.app.post("/login", dependencies=[Depends(guard(Limiter(), keys=by_query))])
    async def login(email: str, code: Annotated[str, Body(embed=True)]) -> None: ...

    assert application.guess(serve, body={"code": "1"}, params={"email": "ann"}) == [200] * 5 + [429] * 2
