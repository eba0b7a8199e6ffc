"""Closes the stores of limiters when an application ends.

Opens nothing: a store connects on its first use. Invariant: every store is closed once, even if the application's own
lifespan fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

from doorkeep import RedisStore
from doorkeep.starlette.attempts import AnyLimiter


def lifespan(
    *opened: AnyLimiter | RedisStore, inner: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None
) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """Make a lifespan that closes stores when the application ends.

    ::

        app = FastAPI(lifespan=lifespan(limiter, inner=connect_database))

    A closed store stays closed: if an application starts several times in one process, as in tests, make a new store
    each time.

    Parameters
    ----------
    *opened
        Stores, and limiters over stores; limiters in memory have nothing to close.
    inner
        The application's own lifespan, which ends before a store is closed. Its state is passed on.

    Returns
    -------
    Callable
        For ``lifespan=`` of Starlette and FastAPI.
    """
    own = inner or (lambda app: nullcontext())
    stores = {one if isinstance(one, RedisStore) else one.store for one in opened}

    @asynccontextmanager
    async def around(app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as closing:
            for store in stores:
                if store is not None:
                    closing.push_async_callback(store.aclose)
            yield await closing.enter_async_context(own(app))

    return around
