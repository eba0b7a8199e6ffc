"""The users that credentials name in the database, so that every alias of an account uses the budget of the account.

A database may treat two strings as one name that are two keys here: a collation without accents, a manager that ignores
case, an email next to a user name. So the backend looks up the users that the credentials name, and counts their stored
names before it checks a password. Invariant: it makes the same queries for names that exist and for names that do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist, ValidationError

from doorkeep import InvalidKeyError
from doorkeep.django import conf

__all__ = ["find_users", "key_text", "names_of", "stored_names"]

# How many users with one email are read. More than one must be a mistake.
_MOST = 8


def find_users(credential: str, text: str) -> list[Any]:
    """Return the users that a credential may name: by the manager's natural key, or by the field of its name."""
    users = get_user_model()
    name_field = str(users.USERNAME_FIELD)
    if credential not in ("username", name_field):
        return _by_field(users, credential, text)
    found = _by_natural_key(users, text)
    # Django uses a `username` as the natural key, other packages as the field of that name.
    return found if credential == name_field else found + _by_field(users, credential, text)


def stored_names(users: Iterable[Any]) -> list[str]:
    """Return for each user the name under which attempts at their account are counted."""
    named = (next((name for name in names_of(user) if key_text(name) is not None), None) for user in users)
    return list(dict.fromkeys(name for name in named if name is not None))


def names_of(user: Any) -> list[str]:
    """Return the stored names of a user: the user name first, then the fields that a credential may contain."""
    given = [user.get_username(), *(getattr(user, name, None) for name in conf.current().credential)]
    return [str(name) for name in dict.fromkeys(given) if name not in (None, "")]


def key_text(name: str) -> str | None:
    """Return the string that an account is keyed by; None for an invalid account, such as an email without a domain."""
    try:
        return conf.current().account(name) or None
    except InvalidKeyError:
        return None


def _by_natural_key(users: Any, text: str) -> list[Any]:
    manager = users._default_manager
    if not hasattr(manager, "get_by_natural_key"):
        return _by_field(users, users.USERNAME_FIELD, text)
    try:
        return [manager.get_by_natural_key(text)]
    except (users.DoesNotExist, users.MultipleObjectsReturned, TypeError, ValueError, ValidationError):
        return []  # no such user, or an invalid value for the field: the backend answers as usual


def _by_field(users: Any, field: str, text: str) -> list[Any]:
    try:
        users._meta.get_field(field)
        return list(users._default_manager.filter(**{field: text})[:_MOST])
    except (FieldDoesNotExist, TypeError, ValueError, ValidationError):
        return []
