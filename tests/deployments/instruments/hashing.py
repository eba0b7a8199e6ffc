"""Loaded into Django projects: a hasher that writes down each password that it verifies, and is quick.

What a project hashes to spend time, for an account that does not exist, is not written down.
"""

from __future__ import annotations

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from instrument import judged, write_down


class CountingHasher(PBKDF2PasswordHasher):
    """Counts passwords that are compared with the one of an account."""

    algorithm = "counting"
    iterations = 1

    def verify(self, password: str, encoded: str) -> bool:
        return judged(write_down(password), super().verify(password, encoded))
