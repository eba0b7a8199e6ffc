"""The exception classes that give an attempt back, as adapters accept them.

Knows no framework. Invariant: a list that the native module would refuse at a request is refused when a guard is made.
"""

from __future__ import annotations

from collections.abc import Iterable

from doorkeep.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Errors: TypeAlias = type[Exception] | Iterable[type[Exception]]


def error_classes(given: Errors) -> tuple[type[Exception], ...]:
    """Return the classes of ``give_back_on``, one or several.

    Raises
    ------
    ConfigError
        It lists something that is not a subclass of `Exception`.
    """
    listed = (given,) if isinstance(given, type) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(one, type) and issubclass(one, Exception) for one in listed):
        raise ConfigError("give_back_on must list classes of exceptions")
    return listed
