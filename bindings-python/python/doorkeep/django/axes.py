"""A handler for django-axes that counts before the password is checked, so that parallel guesses do not get through.

::

    AXES_HANDLER = "doorkeep.django.axes.DoorkeepHandler"
    AUTHENTICATION_BACKENDS = ["doorkeep.django.axes.DoorkeepAxesBackend", ...]  # in the place of axes' own

The rest of a site with django-axes is unchanged: its middleware and its settings. With axes' own backend, the handler
recognises a right password only by the log-in that follows, or by Django REST framework's user. The strikes are counted
by the limiter of ``DOORKEEP``, in its store if it has one: one strike rule for each of ``AXES_LOCKOUT_PARAMETERS``,
with ``AXES_FAILURE_LIMIT`` strikes and ``AXES_COOLOFF_TIME`` as its window.

Differences: an attempt during a lockout does not extend it; a lockout without a cool-off time ends after a year; an
IPv6 client is counted by its /64; nothing is written to the database. Invariant: a guess stays counted unless the
password was right, or a backend raised an exception that ``give_back_on`` of ``DOORKEEP`` names.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from axes.backends import AxesStandaloneBackend
from axes.conf import settings
from axes.handlers.base import AbstractAxesHandler, AxesBaseHandler
from axes.helpers import (
    get_client_ip_address,
    get_client_user_agent,
    get_client_username,
    get_cool_off,
    get_failure_limit,
    get_lockout_parameters,
)
from axes.signals import user_locked_out
from django.contrib.auth import load_backend
from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from doorkeep import Attempt, InvalidKeyError, Key, StrikeRule, keys_for
from doorkeep.django import conf, signals, stored
from doorkeep.django.attempts import Counted
from doorkeep.django.backends import later_backends, later_paths
from doorkeep.django.requests import client_address, inner, warn_uncounted

__all__ = ["DoorkeepAxesBackend", "DoorkeepHandler"]

# For each parameter of axes: the word that a rule is keyed by, and its abbreviation in the name of the rule.
_WORDS = {"username": ("account", "user"), "ip_address": ("address", "ip"), "user_agent": ("agent", "ua")}
_Rules: TypeAlias = "list[tuple[tuple[str, ...], StrikeRule]]"
_NO_COOL_OFF = timedelta(days=365)
# Two threads of one request must not take the same login.
_taking = threading.Lock()


class _Login(Counted):
    """What was counted for one log-in of a request, which may try several concurrently."""

    def __init__(self, attempt: Attempt, keys: list[Key], username: str | None = None) -> None:
        super().__init__(attempt, keys)
        self.username = username
        self.is_right = False
        self.is_wrong = False


# What the handler counted last in this thread or task, for the backend that called it.
_counted: ContextVar[_Login | None] = ContextVar("doorkeep_axes_counted", default=None)


class DoorkeepAxesBackend(AxesStandaloneBackend, BaseBackend):  # type: ignore[misc]
    """Asks the handler, then the later backends itself, so that it knows the outcome of each guess."""

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:
        """Return the user that a later backend knows by these credentials.

        Raises
        ------
        PermissionDenied
            The guess was denied, or was wrong.
        """
        if not settings.AXES_ENABLED:
            return None
        _counted.set(None)
        super().authenticate(request, **credentials)
        login = _counted.get()
        if login is None:
            return None  # nothing was counted: Django asks the other backends
        try:
            for backend, path in later_backends(request, credentials, DoorkeepAxesBackend):
                if (user := backend.authenticate(request, **credentials)) is not None:
                    login.is_right = True
                    user.doorkeep_backend = path
                    return user
                login.is_wrong = True
        except Exception as error:
            # A backend that rejected the password has checked it: a failure of a later one does not make the guess
            # free.
            if not login.is_wrong and not isinstance(error, PermissionDenied):
                login.attempt._give_back(error, conf.current().give_back_on)
            raise
        raise PermissionDenied

    def get_user(self, user_id: Any) -> Any:
        """Return the user that a later backend knows, for sessions that name this backend."""
        users = (load_backend(path).get_user(user_id) for path in later_paths(DoorkeepAxesBackend))
        return next((user for user in users if user is not None), None)


class DoorkeepHandler(AbstractAxesHandler, AxesBaseHandler):  # type: ignore[misc]
    """Counts in ``is_allowed``, which axes calls before any password is checked, and settles on Django's signals."""

    def is_locked(self, request: HttpRequest, credentials: Mapping[str, Any] | None = None) -> bool:
        """Return whether a log-in must stop. With a password in the credentials, count the attempt."""
        if not settings.AXES_LOCK_OUT_AT_FAILURE:
            return False
        try:
            client_address(inner(request))  # raises if the client has gone and its address is lost
            keys = _keys(request, credentials)
        except InvalidKeyError:
            return True
        if not keys:
            if credentials is not None:
                warn_uncounted("a log-in")
            return False
        limiter = conf.current().limiter
        if credentials is None or settings.AXES_PASSWORD_FORM_FIELD not in credentials:
            return not limiter.peek(*keys)
        login = _Login(limiter.attempt(*keys), keys, get_client_username(request, credentials))
        _pending(request).append(login)
        _counted.set(login)
        _settle_at_the_end(request, login)
        return not login.attempt.allowed

    def get_failures(self, request: HttpRequest, credentials: Mapping[str, Any] | None = None) -> int:
        """Return the number of strikes of the parameter that has most."""
        limit = get_failure_limit(request, credentials)
        try:
            keys = _keys(request, credentials)
        except InvalidKeyError:
            return int(limit)
        return int(limit - conf.current().limiter.peek(*keys).remaining) if keys else 0

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        """Leave the attempt counted, and count it if the handler was not asked before."""
        if request is None or not self._applies(request, credentials):
            return
        try:
            client_address(inner(request))
            keys = _keys(request, credentials)
        except InvalidKeyError:
            return
        login = _take(request, keys) or self._count(keys)
        if login is None:
            return
        login.attempt.failure()
        request.axes_failures_since_start = self.get_failures(request, credentials)  # type: ignore[attr-defined]
        decision = login.attempt.decision
        if decision.allowed and not decision.engaged:
            return
        # Also on Django's request, which the middleware reads: another framework may have wrapped it.
        seen: Any
        for seen in (request, inner(request)):
            seen.axes_locked_out, seen.axes_credentials = True, credentials
        signals.report_lockout(request, decision)
        user_locked_out.send(
            "axes",
            request=request,
            username=get_client_username(request, credentials),
            ip_address=request.axes_ip_address,  # type: ignore[attr-defined]
        )

    def user_logged_in(self, sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
        """Take the attempt back, and forget the strikes if ``AXES_RESET_ON_SUCCESS`` says so."""
        login = _take(request)
        if login is None:
            return
        # Strikes are counted by a spelling that several names may share, such as ANN and ann. Only a user with exactly
        # that name may reset them.
        is_called_so = stored.key_text(login.username or "") in stored.names_of(user)
        if not settings.AXES_RESET_ON_SUCCESS or not is_called_so:
            login.attempt.cancel()
            return
        by_address = [key.rule for key in login.keys if key.rule.endswith("-ip") and "-user-" not in key.rule]
        rest = [key.rule for key in login.keys if key.rule not in by_address]
        login.attempt.success(forgive=rest, forgive_address=by_address)

    def user_logged_out(self, sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
        """Do nothing: a log-out is not an attempt."""

    def reset_attempts(
        self, *, ip_address: str | None = None, username: str | None = None, ip_or_username: bool = False
    ) -> int:
        """Forget the strikes of an address or a user, and return the number of keys that had any.

        Raises
        ------
        NotImplementedError
            Neither is given: tracked keys are only known as digests and cannot be listed.
        """
        given = {"username": username, "ip_address": ip_address}
        if username is None and ip_address is None:
            raise NotImplementedError("strikes are known by digests alone: name an address or a user")
        credentials = {settings.AXES_USERNAME_FORM_FIELD: username}
        named = [given] if not ip_or_username else [{name: value} for name, value in given.items()]
        keys = [key for values in named for key in _keys_of(_rules(None, credentials), values)]
        limiter = conf.current().limiter
        tracked = [key for key in keys if not limiter.peek(key) or limiter.peek(key).reset_after]
        return sum(limiter.reset(key) for key in tracked)

    def _applies(self, request: HttpRequest, credentials: Mapping[str, Any]) -> bool:
        if not settings.AXES_LOCK_OUT_AT_FAILURE or self.is_whitelisted(request, credentials):
            return False
        return bool(not settings.AXES_ONLY_ADMIN_SITE or self.is_admin_request(request))

    def _count(self, keys: list[Key]) -> _Login | None:
        return _Login(conf.current().limiter.attempt(*keys), keys) if keys else None


def _pending(request: HttpRequest) -> list[_Login]:
    pending: list[_Login] = request.__dict__.setdefault("doorkeep_logins", [])
    return pending


def _take(request: HttpRequest, keys: list[Key] | None = None) -> _Login | None:
    # Django does not report which guess failed. Those with the same keys are interchangeable.
    pending = _pending(request)
    with _taking:
        for login in reversed(pending):
            if keys is None or login.keys == keys:
                pending.remove(login)
                return login
    return None


def _keys(request: HttpRequest, credentials: Mapping[str, Any] | None) -> list[Key]:
    values = {
        "username": get_client_username(request, credentials),
        "ip_address": get_client_ip_address(request),
        "user_agent": get_client_user_agent(request) or "<unknown>",
    }
    return _keys_of(_rules(request, credentials), values)


def _keys_of(rules: _Rules, values: Mapping[str, Any]) -> list[Key]:
    keys = []
    for parameters, rule in rules:
        if any(values.get(parameter) is None for parameter in parameters):
            continue  # as in axes: a parameter that the request does not have locks out no one
        texts = {_WORDS[parameter][0]: values[parameter] for parameter in parameters}
        if isinstance(account := texts.get("account"), str):
            texts["account"] = conf.current().account(account)
        keys += keys_for([rule], **texts)
    return keys


def _rules(request: HttpRequest | None, credentials: Mapping[str, Any] | None) -> _Rules:
    limit = get_failure_limit(request, credentials)
    cool_off = get_cool_off(request) or _NO_COOL_OFF
    given = get_lockout_parameters(request, credentials)
    named = [(item,) if isinstance(item, str) else tuple(item) for item in given]
    return [(parameters, _rule(parameters, limit, cool_off)) for parameters in named]


@lru_cache(maxsize=128)
def _rule(parameters: tuple[str, ...], limit: int, cool_off: timedelta) -> StrikeRule:
    if unknown := [name for name in parameters if name not in _WORDS]:
        raise ValueError(f"a lockout parameter must be one of {', '.join(_WORDS)}, parameter=`{unknown[0]}`")
    # The limit and the window may depend on the request, and rules of one name must agree, so both are part of the
    # name.
    shorts = "-".join(_WORDS[name][1] for name in parameters)
    name = f"axes-{limit}-{int(cool_off.total_seconds())}-{shorts}"
    return StrikeRule(name, limit, cool_off, by=[_WORDS[name][0] for name in parameters])


def _settle_at_the_end(request: HttpRequest, login: _Login) -> None:
    # Django closes each request when its answer is sent, in the server's thread; no signal has the request.
    closing = inner(request)
    close = closing.close

    def settle_and_close() -> None:
        # A right password without a log-in: nothing is forgiven, since no log-in confirmed it.
        if login.is_right or _is_user_of(request, login):
            login.attempt.cancel()
        close()

    closing.close = settle_and_close


def _is_user_of(request: Any, login: _Login) -> bool:
    # Django REST framework records on its own request which authentication knew the user.
    if vars(request).get("_authenticator") is None:
        return False
    name: str | None = request.user.get_username()
    return name is not None and name == login.username
