"""The first of the authentication backends: counts each guess, then asks the others whether it is right.

Django asks its backends in turn and tells nobody but the caller which of them said yes. So this one, being first, asks
the others itself: it knows the outcome even where nobody logs in afterwards, as in an API with basic authentication.
A user is then known by the backend that knew them; see `signals`. Denied, it raises `PermissionDenied`, upon which
Django asks no other backend and sends ``user_login_failed``: no look-up and no hashing.

Invariant: no backend sees a password before the guess was counted.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from django.conf import settings
from django.contrib.auth import load_backend
from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django.views.decorators.debug import sensitive_variables

from doorkeep import ConfigError, InvalidKeyError
from doorkeep.django import conf, signals
from doorkeep.django.attempts import Counted, extend, record_of, reserve, run
from doorkeep.django.requests import client_address, inner, request_keys, spelled

__all__ = ["DoorkeepBackend", "later_backends", "later_paths"]

# The guess that this thread or task is judging. A backend that authenticates in turn is part of the same guess.
_judging: ContextVar[Counted | None] = ContextVar("doorkeep_judging", default=None)


class DoorkeepBackend(BaseBackend):
    """Place it first in ``AUTHENTICATION_BACKENDS``; it needs no configuration of its own.

    Credentials that name no account, such as a token or a user of the web server, are not guesses at a password: they
    are handed on uncounted.
    """

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:
        """Give the user that a later backend knows by these credentials.

        Raises
        ------
        PermissionDenied
            The guess was denied, or was wrong.
        """
        guess = _Guess(request, credentials)
        if not guess.is_counted:
            return None
        guess.admit(guess.reserve())
        with guess:
            for backend, path in later_backends(request, credentials):
                if (user := backend.authenticate(request, **credentials)) is not None:
                    guess.succeed(user, path)
                    return user
                guess.fail()
            raise PermissionDenied

    @sensitive_variables("credentials")
    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:
        """As `authenticate`, asking the later backends by their own ``aauthenticate``."""
        guess = _Guess(request, credentials)
        if not guess.is_counted:
            return None
        guess.admit(await guess.wait(guess.reserve))
        async with guess:
            for backend, path in later_backends(request, credentials):
                if (user := await backend.aauthenticate(request, **credentials)) is not None:
                    await guess.wait(guess.succeed, user, path)
                    return user
                guess.fail()
            raise PermissionDenied

    def get_user(self, user_id: Any) -> Any:
        """Give the user whom a later backend knows, for sessions that name this backend."""
        users = (load_backend(path).get_user(user_id) for path in later_paths())
        return next((user for user in users if user is not None), None)

    async def aget_user(self, user_id: Any) -> Any:
        """As `get_user`, asking the later backends by their own ``aget_user``."""
        for path in later_paths():
            if (user := await load_backend(path).aget_user(user_id)) is not None:
                return user
        return None


def later_backends(
    request: HttpRequest | None, credentials: dict[str, Any], ours: type = DoorkeepBackend
) -> Iterator[tuple[Any, str]]:
    """Yield the backends behind `ours` that take these credentials, each with its path."""
    for path in later_paths(ours):
        backend = load_backend(path)
        try:
            inspect.signature(backend.authenticate).bind(request, **credentials)
        except TypeError:
            continue  # these credentials are not for this backend
        yield backend, path


def later_paths(ours: type = DoorkeepBackend) -> list[str]:
    """Return the paths of the backends behind `ours`."""
    paths = list(settings.AUTHENTICATION_BACKENDS)
    places = [place for place, path in enumerate(paths) if issubclass(import_string(path), ours)]
    return paths[max(places, default=-1) + 1 :]


class _Guess:
    """One call of ``authenticate``, from counting to settling.

    As a block it lasts while a password is looked at. Left by ``PermissionDenied`` the guess was wrong; left by another
    exception it stays counted, too, unless the setting names the class and no backend had said no before.
    """

    @sensitive_variables("credentials")
    def __init__(self, request: HttpRequest | None, credentials: dict[str, Any]) -> None:
        self._request = request
        self._configuration = conf.current()
        self._accounts = self._read(credentials)
        self._has_text = _is_text(credentials.get("password"))
        self._counted: Counted | None = None
        self._is_wrong = False
        self._outer = _judging.get()

    def _read(self, credentials: dict[str, Any]) -> list[Any]:
        named = [credentials[name] for name in self._configuration.credential if name in credentials]
        if not named and "password" in credentials:
            known = ", ".join(self._configuration.credential)
            raise ConfigError(f"credentials with a password must name an account, credential=`{known}`")
        # Which of several names a backend goes by is its own affair, so each of them is an account.
        return [account for account in named if account not in (None, "")] or named[:1]

    @property
    def is_counted(self) -> bool:
        """Whether there is anything to count the guess by."""
        # Without an address, as in a management command, rules on the address do not apply.
        applies = any("address" not in rule.by for rule in self._configuration.login)
        return bool(self._accounts) and (applies or client_address(inner(self._request)) is not None)

    def reserve(self) -> Counted | None:
        """Count the guess, or note that it was refused."""
        request, record = inner(self._request), record_of(self._request)
        if not self._has_text:
            record.refused = InvalidKeyError("password must be text")
            return None
        try:
            named = [request_keys(request, *self._configuration.login, account=account) for account in self._accounts]
        except InvalidKeyError as error:
            record.refused = error
            return None
        keys = list(dict.fromkeys(key for keys in named for key in keys))
        if self._outer is not None:
            return extend(record, self._outer, keys)
        return reserve(self._request, self._configuration.limiter, keys, is_guess=True)

    def admit(self, counted: Counted | None) -> None:
        """Stop here when the guess was refused."""
        if counted is None:
            raise PermissionDenied
        self._counted = counted

    def succeed(self, user: Any, path: str) -> None:
        """Settle the guess as right, and note which backend knew the user."""
        user.doorkeep_backend = path
        counted, configuration = self._held, self._configuration
        if self._outer is not None:
            return
        record_of(self._request).refused = None
        # Whoever may name somebody else beside themselves must not wipe the other's strikes with their own password,
        # nor have a guess at the other's given back.
        if len(self._accounts) > 1 and not self._are_all_of(user):
            return
        counted.attempt.success(
            forgive=configuration.forgive,
            forgive_address=configuration.forgive_address,
            give_back=configuration.give_back,
        )

    def fail(self) -> None:
        """Note that a backend does not know the user by these credentials."""
        self._is_wrong = True

    def _are_all_of(self, user: Any) -> bool:
        names = [user.get_username(), *(getattr(user, name, None) for name in self._configuration.credential)]
        own = {_spelled(name) for name in names if isinstance(name, str)}
        return own.issuperset(map(_spelled, self._accounts))

    @property
    def _held(self) -> Counted:
        assert self._counted is not None, "a guess is admitted before it is judged"
        return self._counted

    async def wait(self, call: Any, *args: Any) -> Any:
        """Call on an event loop what may ask the store."""
        return await run(self._configuration.limiter, call, *args)

    def __enter__(self) -> None:
        self._token = _judging.set(self._held)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        _judging.reset(self._token)
        if error is not None and self._outer is None and not self._leave(error):
            signals.tell_lockout(self._request, self._held.decision)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        _judging.reset(self._token)
        if error is not None and self._outer is None and not await self.wait(self._leave, error):
            await signals.atell_lockout(self._request, self._held.decision)

    def _leave(self, error: BaseException) -> bool:
        # A backend that said no has looked at the password: what fails behind it does not make the guess free.
        if self._is_wrong or isinstance(error, PermissionDenied):
            self._held.attempt.failure()
            return False
        return self._held.attempt._leave(error, self._configuration.give_back_on)


def _is_text(password: Any) -> bool:
    # Hashers crash on what is none, some of them only for an account that does not exist: that told which do.
    if not isinstance(password, str):
        return password is None or isinstance(password, bytes)
    try:
        password.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spelled(name: str) -> str | None:
    try:
        return str(spelled({"account": name})["account"])
    except InvalidKeyError:
        return None  # what a user is called by besides, such as an empty email, is no account
