"""What an `IssueGuard` asks, as a protocol. In a file of its own since `typing` is slow to import.

Knows no limiter. Invariant: `TokenBucket` satisfies it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable

__all__ = ["AwaitableProvider", "RateLimitProvider"]


@runtime_checkable
class RateLimitProvider(Protocol):
    """Something that limits by a text key, such as `TokenBucket`."""

    def allow(self, key: str) -> bool:
        """Count one for this key, and say whether it may pass."""
        ...

    def reset(self, key: str) -> object:
        """Forget what was counted for this key."""
        ...

    def close(self) -> object:
        """Release what the provider holds. It may be called again."""
        ...


class AwaitableProvider(Protocol):
    """The same for a provider whose answer is awaited, such as `doorkeep.aio.TokenBucket`."""

    def allow(self, key: str) -> Awaitable[bool]:
        """Count one for this key, and say whether it may pass."""
        ...

    def reset(self, key: str) -> object:
        """Forget what was counted for this key."""
        ...

    def close(self) -> object:
        """Release what the provider holds. It may be called again."""
        ...
