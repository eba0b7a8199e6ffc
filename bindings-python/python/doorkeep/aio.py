"""The limiters of `doorkeep` for asyncio: the same names and arguments, every answer awaitable.

A limiter in memory decides at the call, and the awaitable is complete: no other task runs in between. A limiter over a
store sends its request at the call, and the call runs to its end even if the await is cancelled. Errors are raised by
the await. An answer that is not awaited cannot admit by accident, since taking its truth raises TypeError; what it
counted stays counted, and it warns.

Answers work wherever a coroutine does, such as in `asyncio.gather` and `asyncio.create_task`, and are awaited once.
A limiter is not bound to an event loop: it may serve several, one after the other or in several threads.
"""

from doorkeep._issue import AioIssueGuard as IssueGuard
from doorkeep._native import AioAttempt as Attempt
from doorkeep._native import AioAttemptLimiter as AttemptLimiter
from doorkeep._native import AioFixedWindow as FixedWindow
from doorkeep._native import AioLimiter as Limiter
from doorkeep._native import AioTokenBucket as TokenBucket

__all__ = [
    "Attempt",
    "AttemptLimiter",
    "FixedWindow",
    "IssueGuard",
    "Limiter",
    "TokenBucket",
]
