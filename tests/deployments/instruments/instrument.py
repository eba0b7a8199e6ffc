"""Loaded into programs in Python: writes down each password that one of them really checks.

CHECKED names the file, to which every line adds one password. A wrong password that ends in "raises" raises, as all
wrong ones do in argon2.
Knows nothing of doorkeep.
"""

from __future__ import annotations

import functools
import hmac
import inspect
import json
import os
from collections.abc import Callable
from typing import Any


class MismatchError(Exception):
    """The password is wrong, as `argon2.exceptions.VerifyMismatchError` says it."""


def counted(check: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a check of a password, which is its last argument, or of a model that holds a secret."""

    @functools.wraps(check)
    def checked(*args: Any) -> Any:
        return judged(write_down(args[-1]), check(*args))

    @functools.wraps(check)
    async def awaited(*args: Any) -> Any:
        return judged(write_down(args[-1]), await check(*args))

    return awaited if inspect.iscoroutinefunction(check) else checked


def matches(sent: str, right: str) -> bool:
    """Stand for a comparison that a page writes out."""
    return judged(write_down(sent), hmac.compare_digest(sent.encode(), right.encode()))


def write_down(checked: Any) -> str:
    """Write down a password, or the one that a model holds, and return it."""
    text = checked if isinstance(checked, str) else getattr(checked, "client_secret", None)
    assert isinstance(text, str), "the check of this program has other arguments than its instrument knows"
    line = json.dumps(text) + "\n"
    # Appended by one call, so that lines of several threads do not mix.
    file = os.open(os.environ["CHECKED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
    return text


def judged(password: str, is_right: bool) -> bool:
    """Return the verdict on a password, or raise it."""
    if not is_right and password.endswith("raises"):
        raise MismatchError("the password does not match the supplied hash")
    return is_right
