"""A password hasher that counts, and backends that behave badly on demand."""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth import authenticate, get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core.exceptions import PermissionDenied
from django.db.models import Q

# The passwords that were checked, and the credentials that a backend after doorkeep's received.
SEEN: list[str] = []
ASKED: list[dict[str, Any]] = []


class CountingHasher(PBKDF2PasswordHasher):
    """A fast hasher that records the passwords that were checked."""

    algorithm = "counting"
    iterations = 1
    # Long enough for every other request of an attack to have arrived.
    delay = 0.0

    def verify(self, password: str, encoded: str) -> bool:
        SEEN.append(password)
        time.sleep(self.delay)
        return super().verify(password, encoded)

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        return super().encode(password, salt, 1)


class Watched(ModelBackend):
    """Django's own backend, with faults that a test sets."""

    def authenticate(self, request: Any, username: Any = None, password: Any = None, **kwargs: Any) -> Any:
        ASKED.append({"username": username, **kwargs})
        if password == "crash":
            raise ZeroDivisionError
        if password == "forbidden":
            raise PermissionDenied
        if password == "nested":
            return authenticate(request, username=username, password="correct horse")
        return super().authenticate(request, username=username, password=password, **kwargs)

    async def aauthenticate(self, request: Any, username: Any = None, password: Any = None, **kwargs: Any) -> Any:
        if password == "crash":
            raise ZeroDivisionError
        return await super().aauthenticate(request, username=username, password=password, **kwargs)


class ByEmail:
    """Knows users by an email address."""

    def authenticate(self, request: Any, *, email: str, password: str) -> Any:
        user = get_user_model().objects.filter(email=email).first()
        return user if user is not None and user.check_password(password) else None

    def get_user(self, user_id: Any) -> Any:
        return get_user_model().objects.filter(pk=user_id).first()


class ByNameOrEmail(ByEmail):
    """Knows users by name or email, whichever has the password."""

    def authenticate(self, request: Any, *, username: str, password: str) -> Any:  # type: ignore[override]
        users = get_user_model().objects.filter(Q(username=username) | Q(email=username))
        return next((user for user in users if user.check_password(password)), None)


class Broken:
    """A directory that does not answer, after a backend that does."""

    def authenticate(self, request: Any, *, username: str, password: str) -> Any:
        raise ConnectionError

    async def aauthenticate(self, request: Any, *, username: str, password: str) -> Any:
        raise ConnectionError

    def get_user(self, user_id: Any) -> Any:
        return None


class ByToken:
    """Knows users by a token, which is not a password."""

    def authenticate(self, request: Any, *, token: str) -> Any:
        return get_user_model().objects.filter(username=token).first()

    def get_user(self, user_id: Any) -> Any:
        return get_user_model().objects.filter(pk=user_id).first()
