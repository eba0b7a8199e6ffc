"""Keeps the password of a store out of error reports.

Django's reports print the settings and the variables of each frame. They hide settings whose name suggests a password,
and ``redis`` in ``DOORKEEP`` does not. Invariant: the string itself is unchanged; only its printed form changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["masked"]

# The last @ ends it: a password may contain one that was not escaped.
_PASSWORD = re.compile(r"^([a-z][a-z0-9+.-]*://[^/@:]*:).+@|([?&]password=)[^&#]+", re.IGNORECASE)


class _Url(str):
    """A URL whose password is not printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(_hidden(str.__str__(self)))


def masked(setting: Any) -> Any:
    """Return a mapping with the same strings; those that contain a password do not print it."""
    if not isinstance(setting, Mapping):
        return setting
    return {name: _Url(value) if _holds_password(value) else value for name, value in setting.items()}


def _holds_password(value: Any) -> bool:
    return isinstance(value, str) and _PASSWORD.search(value) is not None


def _hidden(url: str) -> str:
    return _PASSWORD.sub(lambda found: f"{found[1]}***@" if found[1] else f"{found[2]}***", url)
