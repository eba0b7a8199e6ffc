"""The first of the authentication backends: counts each guess, then asks the others whether it is right.

Denied by what the client sent, a guess is answered with 429 and nothing is looked up. Denied by a stored name, it is
answered like a wrong password at an account that does not exist, in the same time: the answer must not reveal that the
alias names an account. See `login`.

Django asks its backends in turn and reports only to the caller which of them accepted the credentials. So this backend,
being first, asks the others itself. It knows the outcome even without a log-in afterwards, as in an API with basic
authentication. The session then names the backend that knew the user; see `signals`. When the guess is denied it raises
`PermissionDenied`: Django then asks no other backend and sends ``user_login_failed``, without a look-up or a hash.

Invariant: no backend sees a password before the guess is counted.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import load_backend
from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.module_loading import import_string
from django.views.decorators.debug import sensitive_variables

from doorkeep.django.login import Login

__all__ = ["DoorkeepBackend", "later_backends", "later_paths"]


class DoorkeepBackend(BaseBackend):
    """Place it first in ``AUTHENTICATION_BACKENDS``; it needs no configuration of its own.

    Credentials that do not name an account, such as a token or a user of the web server, are not guesses at a password:
    they are passed on uncounted.
    """

    @sensitive_variables("credentials")
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:
        """Return the user that a later backend knows by these credentials.

        Raises
        ------
        PermissionDenied
            The guess was denied, or was wrong.
        """
        login = Login(request, credentials)
        if not login.is_counted():
            return None
        login.admit(login.reserve())
        with login:
            login.find_users()
            if not login.count_stored_names():
                login.spend_time(credentials.get("password"))
                raise PermissionDenied
            for backend, path in later_backends(request, credentials):
                if (user := backend.authenticate(request, **credentials)) is not None:
                    login.succeed(user, path)
                    return user
                login.fail()
            raise PermissionDenied

    @sensitive_variables("credentials")
    async def aauthenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:
        """Return the user that a later backend knows, as `authenticate`, through their own ``aauthenticate``."""
        login = Login(request, credentials)
        if not login.is_counted():
            return None
        login.admit(await login.run(login.reserve))
        async with login:
            await sync_to_async(login.find_users)()
            if not await login.run(login.count_stored_names):
                await sync_to_async(login.spend_time)(credentials.get("password"))
                raise PermissionDenied
            for backend, path in later_backends(request, credentials):
                if (user := await backend.aauthenticate(request, **credentials)) is not None:
                    await login.run(login.succeed, user, path)
                    return user
                login.fail()
            raise PermissionDenied

    def get_user(self, user_id: Any) -> Any:
        """Return the user that a later backend knows, for sessions that name this backend."""
        users = (load_backend(path).get_user(user_id) for path in later_paths())
        return next((user for user in users if user is not None), None)

    async def aget_user(self, user_id: Any) -> Any:
        """Return the user that a later backend knows, as `get_user`, through their own ``aget_user``."""
        for path in later_paths():
            if (user := await load_backend(path).aget_user(user_id)) is not None:
                return user
        return None


def later_backends(
    request: HttpRequest | None, credentials: dict[str, Any], ours: type = DoorkeepBackend
) -> Iterator[tuple[Any, str]]:
    """Yield the backends after `ours` that accept these credentials, each with its path."""
    for path in later_paths(ours):
        backend = load_backend(path)
        try:
            inspect.signature(backend.authenticate).bind(request, **credentials)
        except TypeError:
            continue  # these credentials are not for this backend
        yield backend, path


def later_paths(ours: type = DoorkeepBackend) -> list[str]:
    """Return the paths of the backends after `ours`."""
    paths = list(settings.AUTHENTICATION_BACKENDS)
    places = [place for place, path in enumerate(paths) if issubclass(import_string(path), ours)]
    return paths[max(places, default=-1) + 1 :]
