"""What ``manage.py check`` says of the settings.

* E001: ``DOORKEEP`` is not acceptable; the message names the piece.
* E002: a backend stands before doorkeep's: it would see passwords of denied guesses.
* W001: the backend is missing: log-ins are not counted.
* W002: the middleware is missing: a denied log-in looks like a wrong password.
* W003: the middleware stands behind the session's, which looks up before anything is denied.
* W004: advice on the rules of the log-in, as `doorkeep.lint` gives it.
* W005: with ``--deploy``: state is in the memory of each worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.utils.module_loading import import_string

from doorkeep import ConfigError, lint
from doorkeep.django import conf

__all__ = ["register_all"]

_BACKEND = "doorkeep.django.backends.DoorkeepBackend"
_MIDDLEWARE = "doorkeep.django.middleware.DoorkeepMiddleware"
_SESSION = "django.contrib.sessions.middleware.SessionMiddleware"


def register_all() -> None:
    """Make Django ask these checks."""
    register(check_settings, Tags.security)
    register(check_deployment, Tags.security, deploy=True)


def check_settings(**_: Any) -> list[CheckMessage]:
    """Look at ``DOORKEEP``, the backends and the middleware."""
    try:
        configuration = conf.current()
    except (ConfigError, TypeError) as error:
        return [Error(f"DOORKEEP is not acceptable: {error}", id="doorkeep.E001")]
    advice = lint(configuration.login, forgive=configuration.forgive | configuration.forgive_address)
    return [
        *_backends(),
        *_middleware(),
        *(Warning(text, hint="See doorkeep.lint.", id="doorkeep.W004") for text in advice),
    ]


def check_deployment(**_: Any) -> list[CheckMessage]:
    """Look at what matters only where several workers serve."""
    try:
        if conf.current().limiter.store is not None:
            return []
    except (ConfigError, TypeError):
        return []  # E001 says why
    text = "DOORKEEP has no redis: n workers admit up to n times each limit, and a restart forgets everything"
    return [Warning(text, hint='Set DOORKEEP["redis"], unless one process serves everybody.', id="doorkeep.W005")]


def _backends() -> Iterator[CheckMessage]:
    ours = [_is_named(path, _BACKEND) for path in settings.AUTHENTICATION_BACKENDS]
    if not any(ours):
        hint = f'Put "{_BACKEND}" first in AUTHENTICATION_BACKENDS.'
        yield Warning("log-ins are not counted: the backend is missing", hint=hint, id="doorkeep.W001")
    elif not ours[0]:
        text = f"AUTHENTICATION_BACKENDS must begin with `{_BACKEND}`, first=`{settings.AUTHENTICATION_BACKENDS[0]}`"
        yield Error(text, hint="A backend before it sees passwords of denied guesses.", id="doorkeep.E002")


def _middleware() -> Iterator[CheckMessage]:
    places = [place for place, path in enumerate(settings.MIDDLEWARE) if _is_named(path, _MIDDLEWARE)]
    if not places:
        hint = f'Put "{_MIDDLEWARE}" before the session\'s in MIDDLEWARE.'
        text = "denied log-ins look like wrong passwords: the middleware is missing"
        yield Warning(text, hint=hint, id="doorkeep.W002")
    elif _SESSION in settings.MIDDLEWARE[: places[0]]:
        yield Warning(f"MIDDLEWARE must name `{_MIDDLEWARE}` before `{_SESSION}`", id="doorkeep.W003")


def _is_named(path: str, name: str) -> bool:
    if path == name:
        return True
    try:
        found = import_string(path)
    except ImportError:  # Django says so itself
        return False
    return isinstance(found, type) and issubclass(found, import_string(name))
