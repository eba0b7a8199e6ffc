"""One call of ``authenticate``: how its guess is counted, extended by stored names, and settled.

It counts the account as the client sent it, and then as it is stored in the database, so that an alias does not have
its own budget; see `stored`. Invariant: an exception that a backend raises leaves the guess counted, unless the setting
names its class and no backend has rejected the password before.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from doorkeep import ConfigError, Decision, InvalidKeyError, Key
from doorkeep.django import conf, signals, stored
from doorkeep.django.attempts import Counted, extend, reserve, run, state_of
from doorkeep.django.requests import client_address, inner, request_keys, warn_uncounted

__all__ = ["Login"]

_MOST_KEYS = 16  # as many as one call of a limiter accepts
# What the login of this thread or task has counted. A backend that authenticates in turn is part of the same guess.
_current: ContextVar[Counted | None] = ContextVar("doorkeep_login", default=None)


class Login:
    """A guess at the password of an account.

    Use it as a block around the password check. If the block raises ``PermissionDenied``, the guess was wrong.
    """

    @sensitive_variables("credentials")
    def __init__(self, request: HttpRequest | None, credentials: dict[str, Any]) -> None:
        self._request = request
        self._configuration = conf.current()
        self._named = self._read(credentials)
        self._accounts = [name for _, name in self._named]
        self._has_text = _is_text(credentials.get("password"))
        self._counted: Counted | None = None
        self._is_wrong = False
        self._users: list[Any] = []
        self._decisions: list[Decision] = []
        self._outer = _current.get()

    def _read(self, credentials: dict[str, Any]) -> list[tuple[str, Any]]:
        named = [(name, credentials[name]) for name in self._configuration.credential if name in credentials]
        if not named and "password" in credentials:
            known = ", ".join(self._configuration.credential)
            raise ConfigError(f"credentials with a password must name an account, credential=`{known}`")
        # Each name counts as an account, since a backend may use any of them.
        return [(name, text) for name, text in named if text not in (None, "")] or named[:1]

    def is_counted(self) -> bool:
        """Return whether any rule counts the guess.

        Raises
        ------
        PermissionDenied
            The client has closed its connection, and its address is lost.
        """
        if not self._accounts:
            return False
        try:
            address = client_address(inner(self._request))
        except InvalidKeyError as error:
            state_of(self._request).refused = error
            raise PermissionDenied from error
        if address is not None or any("address" not in rule.by for rule in self._configuration.login):
            return True
        warn_uncounted("a log-in")
        return False

    def reserve(self) -> Counted | None:
        """Count the guess, or record the denial and return None."""
        state = state_of(self._request)
        if not self._has_text:
            state.refused = InvalidKeyError("password must be text")
            return None
        try:
            keys = self._keys(self._accounts)
        except InvalidKeyError as error:
            state.refused = error
            return None
        if self._outer is not None:
            return extend(state, self._outer, keys)
        return reserve(self._request, self._configuration.limiter, keys, is_guess=True)

    def admit(self, counted: Counted | None) -> None:
        """Accept what `reserve` returned.

        Raises
        ------
        PermissionDenied
            The guess was denied.
        """
        if counted is None:
            raise PermissionDenied
        self._counted = counted
        self._decisions.append(counted.decision)

    def find_users(self) -> None:
        """Look up the users that the credentials name."""
        find = self._configuration.find_users or stored.find_users
        self._users = [user for name, text in self._named for user in find(name, text)]

    def count_stored_names(self) -> bool:
        """Count the names under which the users are stored. Return whether the guess may continue."""
        keys = [key for key in self._keys(stored.stored_names(self._users)) if not self._admitted.attempt.holds(key)]
        for start in range(0, len(keys), _MOST_KEYS):
            # Not added to the keys of the request: header fields for them would reveal that the account exists.
            decision = self._admitted.attempt.extend(*keys[start : start + _MOST_KEYS])
            if not decision:
                return False
            self._decisions.append(decision)
        return True

    @sensitive_variables("password")
    def spend_time(self, password: Any) -> None:
        """Take as long as a guess at an account that does not exist takes in Django's backend: a query and a hash."""
        if password is not None:
            self.find_users()
            get_user_model()().set_password(password)

    def succeed(self, user: Any, path: str) -> None:
        """Settle the guess as right, and record which backend knew the user."""
        user.doorkeep_backend = path
        counted, configuration = self._admitted, self._configuration
        if self._outer is not None:
            return
        state_of(self._request).refused = None
        if not self._names_only(user):
            # Somebody who names another account besides their own must not get free guesses at its password.
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
        """Record that a backend rejected the credentials."""
        self._is_wrong = True

    def _names_only(self, user: Any) -> bool:
        # A key is a spelling that several names may share, such as ANN and ann. Their owners must not reset the strikes
        # of each other: only a user whose name is exactly the text of the key may forgive it.
        texts = {stored.key_text(name) for name in (*self._accounts, *stored.stored_names(self._users))}
        return self._finds_only(user) and texts.issubset(stored.names_of(user))

    def _finds_only(self, user: Any) -> bool:
        return all(found.pk == getattr(user, "pk", None) for found in self._users)

    def _keys(self, accounts: Iterable[Any]) -> list[Key]:
        rules, request = self._configuration.login, inner(self._request)
        return list(dict.fromkeys(key for name in accounts for key in request_keys(request, *rules, account=name)))

    @property
    def _admitted(self) -> Counted:
        assert self._counted is not None, "a guess is admitted before it is judged"
        return self._counted

    async def run(self, call: Any, *args: Any) -> Any:
        """Run a call that may use the store, without blocking the event loop."""
        return await run(self._configuration.limiter, call, *args)

    def __enter__(self) -> None:
        self._token = _current.set(self._admitted)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        _current.reset(self._token)
        if error is not None and self._outer is None and not self._give_back(error):
            for decision in self._decisions:
                signals.report_lockout(self._request, decision)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any) -> None:
        _current.reset(self._token)
        if error is not None and self._outer is None and not await self.run(self._give_back, error):
            for decision in self._decisions:
                await signals.areport_lockout(self._request, decision)

    def _give_back(self, error: BaseException) -> bool:
        # A backend that rejected the password has checked it: a failure of a later one does not make the guess free.
        if self._is_wrong or isinstance(error, PermissionDenied):
            self._admitted.attempt.failure()
            return False
        return self._admitted.attempt._give_back(error, self._configuration.give_back_on)


def _is_text(password: Any) -> bool:
    # Hashers raise on other types, some of them only for an account that does not exist, which would reveal the others.
    if not isinstance(password, str):
        return password is None or isinstance(password, bytes)
    try:
        password.encode()
    except UnicodeEncodeError:
        return False
    return True
