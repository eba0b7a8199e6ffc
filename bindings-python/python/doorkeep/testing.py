"""Pytest fixtures with a clock that the test moves by hand.

Load them in a ``conftest.py``::

    pytest_plugins = ["doorkeep.testing"]

and pass the clock to the limiters under test::

    def test_a_lockout_ends(doorkeep_clock):
        strikes = AttemptLimiter(threshold=1, lockout_window="15m", clock=doorkeep_clock)
        assert strikes.attempt("ann")
        assert not strikes.attempt("ann")
        doorkeep_clock.advance("15m")
        assert strikes.attempt("ann")

`doorkeep` itself does not import this module, so pytest is only needed to run tests.
"""

from __future__ import annotations

import pytest

from doorkeep import Limiter, ManualClock, aio

__all__ = ["doorkeep_aio_limiter", "doorkeep_clock", "doorkeep_limiter"]


@pytest.fixture
def doorkeep_clock() -> ManualClock:
    """Return a clock that starts at 1 January 2024, 00:00 UTC, and that the test moves."""
    return ManualClock(1_704_067_200)


@pytest.fixture
def doorkeep_limiter(doorkeep_clock: ManualClock) -> Limiter:
    """Return an empty limiter in memory that reads `doorkeep_clock`."""
    return Limiter(clock=doorkeep_clock)


@pytest.fixture
def doorkeep_aio_limiter(doorkeep_clock: ManualClock) -> aio.Limiter:
    """Return an empty awaitable limiter in memory that reads `doorkeep_clock`."""
    return aio.Limiter(clock=doorkeep_clock)
