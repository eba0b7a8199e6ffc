"""The checks of ``manage.py check`` for the settings.

* E001: ``DOORKEEP`` is invalid; the message names the part.
* E002: a backend is listed before doorkeep's: it would see passwords of denied guesses.
* W001: the backend is missing: log-ins are not counted.
* W002: the middleware is missing: a denied log-in looks like a wrong password.
* W003: the middleware is listed after the session's, which makes look-ups before anything is denied.
* W004: the advice of `doorkeep.lint` on the rules of the log-in.
* W005: with ``--deploy``: state is in the memory of each worker.
* W006: ``paths`` names a view that ``ROOT_URLCONF`` does not have.
* W007: the database treats names as equal that are several keys: an alias is counted by the stored name, after a
  look-up.
* W008: with ``--database``: the names of several accounts share one key.
* W009: with django-axes' own backend, a right password without a log-in cannot be distinguished from a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections, router
from django.db.models import Count
from django.db.models.functions import Lower
from django.urls import URLResolver, get_resolver
from django.utils.module_loading import import_string

from doorkeep import ConfigError, canonical_email, canonical_username, lint
from doorkeep.django import conf

__all__ = ["register_all"]

_BACKEND = "doorkeep.django.backends.DoorkeepBackend"
_MIDDLEWARE = "doorkeep.django.middleware.DoorkeepMiddleware"
_SESSION = "django.contrib.sessions.middleware.SessionMiddleware"


def register_all() -> None:
    """Register these checks with Django."""
    register(check_settings, Tags.security)
    register(check_deployment, Tags.security, deploy=True)
    register(check_database, Tags.database)


def check_settings(**_: Any) -> list[CheckMessage]:
    """Check ``DOORKEEP``, the backends and the middleware."""
    try:
        configuration = conf.current()
    except (ConfigError, TypeError) as error:
        return [Error(f"DOORKEEP is not acceptable: {error}", id="doorkeep.E001")]
    advice = lint(configuration.login, forgive=configuration.forgive | configuration.forgive_address)
    return [
        *(_axes() if _is_counted_by_axes() else (*_backends(), *_middleware())),
        *_names_of_views(configuration),
        *_collation(configuration),
        *(Warning(text, hint="See doorkeep.lint.", id="doorkeep.W004") for text in advice),
    ]


def check_deployment(**_: Any) -> list[CheckMessage]:
    """Check the settings that matter only with several workers."""
    try:
        if conf.current().limiter.store is not None:
            return []
    except (ConfigError, TypeError):
        return []  # E001 says why
    text = "DOORKEEP has no redis: n workers admit up to n times each limit, and a restart forgets everything"
    return [Warning(text, hint='Set DOORKEEP["redis"], unless one process serves everybody.', id="doorkeep.W005")]


def check_database(databases: Iterable[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Check the database of the users, if it is among `databases`."""
    try:
        configuration = conf.current()
    except (ConfigError, TypeError):
        return []  # E001 says why
    database = router.db_for_read(get_user_model())
    if database not in (databases or ()) or not _is_counted() or not _spells_by_itself(configuration):
        return []
    # `migrate` runs the checks before the tables exist.
    if get_user_model()._meta.db_table not in connections[database].introspection.table_names():
        return []
    return [*_collation_in(database), *_names_that_share_a_key(database)]


def _is_counted() -> bool:
    return any(_is_named(path, _BACKEND) for path in settings.AUTHENTICATION_BACKENDS)


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


def _names_of_views(configuration: conf.Configuration) -> Iterator[CheckMessage]:
    named = [path.place for path in configuration.paths if path.is_name]
    known = set(_all_names(get_resolver(), "")) if named else set()
    for name in named:
        if name not in known:
            text = f"paths names no URL pattern of ROOT_URLCONF, name=`{name}`"
            yield Warning(text, hint="Nothing is counted by it, unless another URLconf has it.", id="doorkeep.W006")


def _all_names(resolver: Any, namespace: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            inside = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _all_names(pattern, inside)
        elif pattern.name:
            yield f"{namespace}{pattern.name}"


def _collation(configuration: conf.Configuration) -> Iterator[CheckMessage]:
    # Found without a query. A project with its own function is assumed to handle this.
    if not _is_counted() or not _spells_by_itself(configuration):
        return
    users = get_user_model()
    field = users._meta.get_field(str(users.USERNAME_FIELD))
    collation = getattr(field, "db_collation", None)
    if type(field).__name__ in ("CICharField", "CIEmailField", "CITextField"):
        yield _folds("citext")
    elif collation is not None:
        if _folds_by_its_name(collation):
            yield _folds(collation)
    elif settings.DATABASES[router.db_for_read(users)]["ENGINE"].endswith(".mysql"):
        yield _folds("MySQL's default")


def _folds_by_its_name(collation: str) -> bool:
    # ICU's levels 1 and 2 ignore accents or case, and so do MySQL's collations with ai or ci. SQLite's NOCASE folds
    # only ASCII, as keys do.
    name = collation.lower()
    parts = name.replace("-", "_").split("_")
    return any(level in name for level in ("ks-level1", "ks-level2", "colstrength=")) or bool({"ai", "ci"} & set(parts))


def _collation_in(database: str) -> Iterator[CheckMessage]:
    users = get_user_model()
    collation = getattr(users._meta.get_field(str(users.USERNAME_FIELD)), "db_collation", None)
    connection = connections[database]
    # The name of a custom collation reveals nothing; PostgreSQL knows its kind.
    if collation is None or _folds_by_its_name(collation) or connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_collation WHERE collname = %s AND NOT collisdeterministic", [collation])
        if cursor.fetchone() is not None:
            yield _folds(collation)


def _spells_by_itself(configuration: conf.Configuration) -> bool:
    return configuration.account in (canonical_username, canonical_email)


def _folds(what: str) -> CheckMessage:
    name = f"{get_user_model()._meta.label}.{get_user_model().USERNAME_FIELD}"
    text = f"the database takes several texts for one name that are several keys, field=`{name}`, collation=`{what}`"
    hint = (
        "Each alias is counted by the stored name, too, and denied there as a wrong password. To make them one key, "
        'give DOORKEEP["account"] a function that folds as the database does.'
    )
    return Warning(text, hint=hint, id="doorkeep.W007")


def _names_that_share_a_key(database: str) -> Iterator[CheckMessage]:
    users = get_user_model()
    field = str(users.USERNAME_FIELD)
    lower = users._base_manager.using(database).order_by().annotate(doorkeep_name=Lower(field)).values("doorkeep_name")
    if lower.annotate(count=Count("pk")).filter(count__gt=1).exists():
        text = f"several accounts are named by one key, field=`{users._meta.label}.{field}`"
        hint = (
            "Names such as Ann and ann share a budget, and only who is called as the key says is forgiven. "
            'Let no two be signed up, or give DOORKEEP["account"] a function that keeps them apart.'
        )
        yield Warning(text, hint=hint, id="doorkeep.W008")


def _is_counted_by_axes() -> bool:
    handler = "doorkeep.django.axes.DoorkeepHandler"
    is_on = apps.is_installed("axes") and getattr(settings, "AXES_ENABLED", True)
    return bool(is_on and getattr(settings, "AXES_HANDLER", None) == handler)


def _axes() -> Iterator[CheckMessage]:
    backend = "doorkeep.django.axes.DoorkeepAxesBackend"
    if not any(_is_named(path, backend) for path in settings.AUTHENTICATION_BACKENDS):
        hint = f'Put "{backend}" in the place of axes\' own in AUTHENTICATION_BACKENDS.'
        text = "a right password without a log-in stays counted: the handler does not see how a guess ends"
        yield Warning(text, hint=hint, id="doorkeep.W009")
