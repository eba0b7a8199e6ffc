"""The limiters of `doorkeep` for asyncio: the same names and arguments, every answer awaitable.

Over memory the decision is taken at the call and the awaitable is already finished, so no other task runs in between.
Over a store the request is sent at the call, and runs to its end however long anybody waits for it. Errors are raised
by the await. An answer that is never awaited cannot admit by accident (taking its truth raises TypeError), stays
counted, and warns.

A limiter belongs to no event loop: it may serve several of them, one after the other or in several threads.
"""

from doorkeep._issue import AioIssueGuard as IssueGuard
from doorkeep._native import AioAttempt as Attempt
from doorkeep._native import AioAttemptLimiter as AttemptLimiter
from doorkeep._native import AioFixedWindow as FixedWindow
from doorkeep._native import AioLimiter as Limiter
from doorkeep._native import AioTokenBucket as TokenBucket
from doorkeep._native import Answer, PendingAttempt

__all__ = [
    "Answer",
    "Attempt",
    "AttemptLimiter",
    "FixedWindow",
    "IssueGuard",
    "Limiter",
    "PendingAttempt",
    "TokenBucket",
]
