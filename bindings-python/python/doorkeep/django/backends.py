"""The first of the authentication backends: counts each guess, then asks the others whether it is right.

It counts what the client sent, and then what the account is called in the database, so that an alias does not have a
budget of its own; see `stored`. Denied by the former, a guess is answered with 429 and looks nothing up. Denied by the
latter, it is answered like a wrong password at an account that does not exist, in the same time: the answer must not
tell that the alias names somebody.

Django asks its backends in turn and tells nobody but the caller which of them said yes. So this one, being first, asks
the others itself: it knows the outcome even where nobody logs in afterwards, as in an API with basic authentication.
A user is then known by the backend that knew them; see `signals`. Denied, it raises `PermissionDenied`, upon which
Django asks no other backend and sends ``user_login_failed``: no look-up and no hashing.

Invariant: no backend sees a password before the guess was counted.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user_model, load_backend
from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django.views.decorators.debug import sensitive_variables

from doorkeep import ConfigError, Decision, InvalidKeyError, Key
from doorkeep.django import conf, signals, stored
from doorkeep.django.attempts import Counted, extend, record_of, reserve, run
from doorkeep.django.requests import client_address, inner, request_keys, tell_uncounted

__all__ = ["DoorkeepBackend", "later_backends", "later_paths"]

_MOST_KEYS = 16  # as many as one call of a limiter takes
# The guess that this thread or task is judging. A backend that authenticates in turn is part of the same guess.
_judging: ContextVar[Counted | None] = ContextVar("doorkeep_judging", default=None)


class DoorkeepBackend(BaseBackend):
    """Place it first in ``AUTHENTICATION_BACKENDS``; it needs no configuration of its own.

    Credentials that name no account, such as a token or a user of the web server, are not guesses at a password: they
    are handed on uncounted.
    """

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:
        """Return the user that a later backend knows by these credentials.

        Raises
        ------
        PermissionDenied
            The guess was denied, or was wrong.
        """
        guess = _Guess(request, credentials)
        if not guess.is_counted():
            return None
        guess.admit(guess.reserve())
        with guess:
            guess.find_users()
            if not guess.count_stored():
                guess.look_at_nothing(credentials.get("password"))
                raise PermissionDenied
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
        if not guess.is_counted():
            return None
        guess.admit(await guess.wait(guess.reserve))
        async with guess:
            await sync_to_async(guess.find_users)()
            if not await guess.wait(guess.count_stored):
                await sync_to_async(guess.look_at_nothing)(credentials.get("password"))
                raise PermissionDenied
            for backend, path in later_backends(request, credentials):
                if (user := await backend.aauthenticate(request, **credentials)) is not None:
                    await guess.wait(guess.succeed, user, path)
                    return user
                guess.fail()
            raise PermissionDenied

    def get_user(self, user_id: Any) -> Any:
        """Return the user whom a later backend knows, for sessions that name this backend."""
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
        self._named = self._read(credentials)
        self._accounts = [text for _, text in self._named]
        self._has_text = _is_text(credentials.get("password"))
        self._counted: Counted | None = None
        self._is_wrong = False
        self._users: list[Any] = []
        self._decisions: list[Decision] = []
        self._outer = _judging.get()

    def _read(self, credentials: dict[str, Any]) -> list[tuple[str, Any]]:
        named = [(name, credentials[name]) for name in self._configuration.credential if name in credentials]
        if not named and "password" in credentials:
            known = ", ".join(self._configuration.credential)
            raise ConfigError(f"credentials with a password must name an account, credential=`{known}`")
        # Which of several names a backend goes by is its own affair, so each of them is an account.
        return [(name, text) for name, text in named if text not in (None, "")] or named[:1]

    def is_counted(self) -> bool:
        """Return whether there is anything to count the guess by. Stop here when the client has gone."""
        if not self._accounts:
            return False
        try:
            address = client_address(inner(self._request))
        except InvalidKeyError as error:
            record_of(self._request).refused = error
            raise PermissionDenied from error
        if address is not None or any("address" not in rule.by for rule in self._configuration.login):
            return True
        tell_uncounted("a log-in")
        return False

    def reserve(self) -> Counted | None:
        """Count the guess, or note that it was refused."""
        record = record_of(self._request)
        if not self._has_text:
            record.refused = InvalidKeyError("password must be text")
            return None
        try:
            keys = self._keys(self._accounts)
        except InvalidKeyError as error:
            record.refused = error
            return None
        if self._outer is not None:
            return extend(record, self._outer, keys)
        return reserve(self._request, self._configuration.limiter, keys, is_guess=True)

    def admit(self, counted: Counted | None) -> None:
        """Stop here when the guess was refused."""
        if counted is None:
            raise PermissionDenied
        self._counted = counted
        self._decisions.append(counted.decision)

    def find_users(self) -> None:
        """Look up whom the credentials name."""
        find = self._configuration.find_users or stored.find_users
        self._users = [user for name, text in self._named for user in find(name, text)]

    def count_stored(self) -> bool:
        """Count what the users are called in the database. Return whether the guess may go on."""
        keys = [key for key in self._keys(stored.stored_names(self._users)) if not self._held.attempt.holds(key)]
        for start in range(0, len(keys), _MOST_KEYS):
            # Not among the keys of the request: the fields of its answer would tell that there is such an account.
            decision = self._held.attempt.extend(*keys[start : start + _MOST_KEYS])
            if not decision:
                return False
            self._decisions.append(decision)
        return True

    @sensitive_variables("password")
    def look_at_nothing(self, password: Any) -> None:
        """Spend the time of a guess at an account that does not exist, as Django's backend does: a query and a hash."""
        if password is not None:
            self.find_users()
            get_user_model()().set_password(password)

    def succeed(self, user: Any, path: str) -> None:
        """Settle the guess as right, and note which backend knew the user."""
        user.doorkeep_backend = path
        counted, configuration = self._held, self._configuration
        if self._outer is not None:
            return
        record_of(self._request).refused = None
        if not self._names_only(user):
            # Whoever may name somebody else beside themselves must not guess at the other's password for nothing.
            if len(self._accounts) == 1 and self._finds_only(user):
                lists = (configuration.forgive, configuration.forgive_address, configuration.give_back)
                counted.attempt.success(give_back=frozenset[str]().union(*lists))
            return
        counted.attempt.success(
            forgive=configuration.forgive,
            forgive_address=configuration.forgive_address,
            give_back=configuration.give_back,
        )

    def fail(self) -> None:
        """Note that a backend does not know the user by these credentials."""
        self._is_wrong = True

    def _names_only(self, user: Any) -> bool:
        # A key is a spelling that several names may share, such as ANN and ann. Their owners must not wipe each other's
        # strikes: only who is called exactly as the key says may forgive it.
        texts = {stored.key_text(name) for name in (*self._accounts, *stored.stored_names(self._users))}
        return self._finds_only(user) and texts.issubset(stored.names_of(user))

    def _finds_only(self, user: Any) -> bool:
        return all(found.pk == getattr(user, "pk", None) for found in self._users)

    def _keys(self, accounts: Iterable[Any]) -> list[Key]:
        rules, request = self._configuration.login, inner(self._request)
        return list(dict.fromkeys(key for name in accounts for key in request_keys(request, *rules, account=name)))

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
            for decision in self._decisions:
                signals.tell_lockout(self._request, decision)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        _judging.reset(self._token)
        if error is not None and self._outer is None and not await self.wait(self._leave, error):
            for decision in self._decisions:
                await signals.atell_lockout(self._request, decision)

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
