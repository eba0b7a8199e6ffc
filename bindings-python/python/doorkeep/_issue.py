"""A guard for issuing tokens: it limits how many each subject gets.

Knows a provider by its methods alone, and no limiter. Invariant: `check` returns only when the provider answered True,
or when the claims have no subject to limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping

from doorkeep._native import _refuse_claim
from doorkeep.errors import ConfigError, RateLimitExceeded

# Type checkers know this name; importing typing for it would take longer than the rest of the package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from doorkeep._provider import AwaitableProvider, RateLimitProvider

    _Provider = TypeVar("_Provider", bound=AwaitableProvider | RateLimitProvider)

__all__ = ["AioIssueGuard", "IssueGuard", "key_from_claims"]

_UNLIMITED = ""


def key_from_claims(claims: object) -> str:
    """Return the key under which issuing a token for these claims is counted.

    It is the first of these that is not empty: ``sub``, ``user_id``, the result of a callable ``rate_limit_key``.

    Parameters
    ----------
    claims
        A mapping with these entries, an object with these attributes, or both.

    Returns
    -------
    str
        Empty if the claims have no subject: issuing is not limited then. A whole number becomes its digits.

    Raises
    ------
    InvalidKeyError
        The first of them that exists is neither a string nor a whole number. Ignoring it would lift the limit.
    ConfigError
        These are not claims, such as None or an encoded token: that they have no subject does not mean that there is
        none.
    """
    if claims is None or isinstance(claims, str | bytes | float | int):
        raise ConfigError(f"claims must be a mapping or an object, type=`{type(claims).__name__}`")
    for name in ("sub", "user_id"):
        if key := _text(name, _claim_of(claims, name)):
            return key
    own = _claim_of(claims, "rate_limit_key")
    return _text("rate_limit_key", own()) if callable(own) else _UNLIMITED


class IssueGuard:
    """Limits the issuing and refreshing of tokens. Validating a token is never limited.

    Issuing is limited only where the guard is called::

        guard = IssueGuard(TokenBucket(rate=100, window="1m"))

        def issue(claims):
            guard.check(claims)
            return jwt.encode(claims, KEY, algorithm="HS256")

    Parameters
    ----------
    provider
        A `TokenBucket`, or anything else with the methods of `RateLimitProvider`. If it also has ``retry_after(key)``,
        which returns a `timedelta` or None, a refusal carries that wait.
    key
        Returns the key of some claims; an empty key, or None, is not limited. Defaults to `key_from_claims`.

    Raises
    ------
    ConfigError
        The provider has no method ``allow``.
    """

    __slots__ = ("_key", "_provider")

    def __init__(self, provider: RateLimitProvider, key: Callable[[Any], object] = key_from_claims) -> None:
        self._provider = _provider(provider)
        self._key = key

    def check(self, claims: object) -> None:
        """Count one token for these claims, or refuse it. Exceptions of the provider pass through.

        Raises
        ------
        RateLimitExceeded
            The provider answered False: answer 429 and issue nothing.
        InvalidKeyError
            The key of the claims is neither a string nor a whole number: answer 400.
        ConfigError
            The provider answered neither True nor False, such as one that must be awaited.
        """
        key = _text("key", self._key(claims))
        if key and not _checked(self._provider.allow(key)):
            raise _exceeded(_wait(self._provider, key))


class AioIssueGuard:
    """The twin of `doorkeep.IssueGuard` for awaitable providers, such as `doorkeep.aio.TokenBucket`.

    Parameters
    ----------
    provider
        As for `doorkeep.IssueGuard`; its ``allow`` may be awaitable or not.
    key
        As for `doorkeep.IssueGuard`.
    """

    __slots__ = ("_key", "_provider")

    def __init__(
        self, provider: AwaitableProvider | RateLimitProvider, key: Callable[[Any], object] = key_from_claims
    ) -> None:
        self._provider = _provider(provider)
        self._key = key

    async def check(self, claims: object) -> None:
        """Count one token for these claims, or refuse it, like `doorkeep.IssueGuard.check`.

        Raises
        ------
        RateLimitExceeded
            The provider answered False: answer 429 and issue nothing.
        InvalidKeyError
            The key of the claims is neither a string nor a whole number: answer 400.
        ConfigError
            The provider answered neither True nor False.
        """
        key = _text("key", self._key(claims))
        if key and not _checked(await _awaited(self._provider.allow(key))):
            raise _exceeded(await _awaited(_wait(self._provider, key)))


def _provider(provider: _Provider) -> _Provider:
    if not callable(getattr(provider, "allow", None)):
        raise ConfigError(f"a provider must have the methods of RateLimitProvider, type=`{type(provider).__name__}`")
    return provider


def _checked(answer: object) -> bool:
    # A coroutine is truthy: one that is not awaited must not issue.
    if not isinstance(answer, bool):
        raise ConfigError(f"a provider must answer True or False, type=`{type(answer).__name__}`")
    return answer


def _wait(provider: AwaitableProvider | RateLimitProvider, key: str) -> object:
    retry_after = getattr(provider, "retry_after", None)
    return retry_after(key) if callable(retry_after) else None


def _exceeded(wait: object) -> RateLimitExceeded:
    from datetime import timedelta  # only here: an import that most programs do not need

    if wait is not None and not isinstance(wait, timedelta):
        raise ConfigError(f"retry_after of a provider must be a timedelta or None, type=`{type(wait).__name__}`")
    return RateLimitExceeded("rate limit exceeded", retry_after=wait)


async def _awaited(answer: object) -> object:
    return await answer if isinstance(answer, Awaitable) else answer


def _claim_of(claims: object, name: str) -> Any:
    entry = claims.get(name) if isinstance(claims, Mapping) else None
    return getattr(claims, name, None) if entry is None else entry


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    return _UNLIMITED if value is None else _refuse_claim(name)
