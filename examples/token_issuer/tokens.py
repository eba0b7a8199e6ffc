"""Signs and reads the tokens of the example. Knows nothing of HTTP or of client secrets.

Invariant: nothing is signed before the guard has seen its claims, and reading a token asks no limiter.
"""

import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import jwt

from doorkeep import IssueGuard

ALGORITHM = "HS256"
LIFETIMES = {"access": timedelta(minutes=5), "refresh": timedelta(days=1)}


class Tokens:
    """Issues pairs of an access token and a refresh token, and reads both."""

    def __init__(self, key: bytes, guard: IssueGuard) -> None:
        self._key = key
        self._guard = guard

    def issue(self, claims: dict[str, Any]) -> dict[str, str]:
        """Sign a pair of tokens, or raise `RateLimitExceeded`: two signatures, one token of the subject's budget."""
        self._guard.check(claims)
        return {f"{use}_token": self._sign(claims, use) for use in LIFETIMES}

    def refresh(self, token: str) -> dict[str, str]:
        """Exchange a refresh token for a new pair. Draws on the budget of its subject, like `issue`."""
        claims = self.read(token, "refresh")
        return self.issue({name: value for name, value in claims.items() if name == "sub"})

    def read(self, token: str, use: str) -> dict[str, Any]:
        """Return the claims of a token of ours, current and for this use, or raise `InvalidTokenError`."""
        claims: dict[str, Any] = jwt.decode(token, self._key, [ALGORITHM], options={"require": ["exp", "use"]})
        if claims["use"] != use:
            raise jwt.InvalidTokenError("a token for another use")
        return claims

    def _sign(self, claims: dict[str, Any], use: str) -> str:
        now = datetime.now(timezone.utc)
        added = {"use": use, "iat": now, "exp": now + LIFETIMES[use], "jti": uuid.uuid4().hex}
        return jwt.encode({**claims, **added}, self._key, ALGORITHM)
