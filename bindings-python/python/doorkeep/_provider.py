"""The protocol of a provider for `IssueGuard`. In its own file, since `typing` is slow to import.

Knows no limiter. Invariant: `TokenBucket` satisfies it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

__all__ = ["AwaitableProvider", "RateLimitProvider"]


@runtime_checkable
class RateLimitProvider(Protocol):
    """An object that limits by a string as the key, such as `TokenBucket`."""

    def allow(self, key: str) -> bool:
        """Count one token for this key, and return whether it may pass."""
        ...

    def reset(self, key: str) -> object:
        """Forget what was counted for this key."""
        ...

    def close(self) -> object:
        """Release the resources of the provider. It may be called again."""
        ...


class AwaitableProvider(Protocol):
    """The same for an awaitable provider, such as `doorkeep.aio.TokenBucket`."""

    def allow(self, key: str) -> Awaitable[bool]:
        """Count one token for this key, and return whether it may pass."""
        ...

    def reset(self, key: str) -> object:
        """Forget what was counted for this key."""
        ...

    def close(self) -> object:
        """Release the resources of the provider. It may be called again."""
        ...
