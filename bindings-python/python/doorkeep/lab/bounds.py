"""Closed forms, computed without a run: the most that a policy admits, and what follows from it.

Contains no formula: names, bounds and messages are the core's. Needs neither NumPy nor matplotlib. Invariant: each
number is that of a greedy attacker who starts with full windows, over a half-open span, and a run reaches exactly this
number. Tested in `tests/python/test_lab.py`, the core's formulas in `lab/tests/lab`.

A policy is a string: ``5/1m,50/1h`` (rates), ``s5/15m`` (strikes: 5, then 15 minutes) or ``w100/1m`` (fixed window).
Spans are strings, seconds or timedeltas; durations are returned in seconds.
"""

from __future__ import annotations

from array import array
from datetime import timedelta

from doorkeep._native import lab_bound, lab_bounds

__all__ = [
    "admitted_at",
    "botnet",
    "codes",
    "honest_denial",
    "key_flood",
    "max_in",
    "opened",
    "replicas",
    "stuffing",
    "table",
    "unnoticed",
]

Duration = timedelta | float | str


def max_in(policy: str, span: Duration) -> int:
    """Return the most that a policy admits in a span, on one key.

    >>> max_in("5/1m,50/1h", "24h"), max_in("s5/15m", "24h"), max_in("w100/1m", "24h")
    (1249, 480, 144000)
    """
    return int(lab_bound("max_in", policy=policy, span=_seconds(span)))


def unnoticed(policy: str, span: Duration) -> int:
    """Return the most that a policy admits in a span to a client that is never denied.

    >>> unnoticed("s5/15m", "24h")
    384
    """
    return int(lab_bound("unnoticed", policy=policy, span=_seconds(span)))


def admitted_at(rates: str, guess: int) -> float:
    """Return the time in seconds, after the first guess, at which a greedy attacker's n-th guess (from 1) is admitted.

    >>> admitted_at("5/1m,50/1h", 6), admitted_at("5/1m,50/1h", 1249)
    (12.0, 86328.0)
    """
    return lab_bound("admitted_at", rates=rates, guess=guess)


def botnet(account_and_address: str, account: str, addresses: int, span: Duration) -> int:
    """Return the most guesses on one account from several addresses, under a rule for pairs and one for the account.

    >>> [botnet("5/1m,20/1h", "100/1h", addresses, "24h") for addresses in (1, 5, 6)]
    [499, 2495, 2499]
    """
    return int(
        lab_bound(
            "botnet",
            account_and_address=account_and_address,
            account=account,
            addresses=addresses,
            span=_seconds(span),
        )
    )


def stuffing(address: str, pairs: int, addresses: int) -> float:
    """Return the seconds that it takes to try stolen pairs from several addresses under the same limit.

    >>> stuffing("200/1h", 1_000_000, 100) / 3600
    49.0
    """
    return lab_bound("stuffing", address=address, pairs=pairs, addresses=addresses)


def key_flood(threshold: int, capacity: int, rate: str, span: Duration) -> int:
    """Return the most guesses on one account whose strikes are evicted from a full table by fresh keys.

    >>> key_flood(5, 2000, "100/1s", "6h"), max_in("s5/15m", "6h")
    (4312, 120)
    """
    return int(lab_bound("key_flood", threshold=threshold, capacity=capacity, rate=rate, span=_seconds(span)))


def honest_denial(burst: int, load: float) -> float:
    """Return the share (0 to 1) of honest attempts that a rate denies if they arrive at random.

    Parameters
    ----------
    burst
        The count of the rate.
    load
        Attempts in one interval (period / count), on average. 1 is as many as the rate admits in the long run.

    Examples
    --------
    >>> round(100 * honest_denial(5, 1.0), 4)
    10.3449
    """
    return lab_bound("honest_denial", burst=burst, load=load)


def codes(digits: int, valid: int, guesses: int) -> float:
    """Return the probability (0 to 1) that guesses at a one-time code hit a valid code.

    >>> round(codes(6, 3, 720 * 365), 3)
    0.545
    """
    return lab_bound("codes", digits=digits, valid=valid, guesses=guesses)


def replicas(policy: str, replicas: int, span: Duration) -> int:
    """Return the most that several processes admit together if each counts separately.

    >>> replicas("5/1m", 4, "24h")
    28816
    """
    return int(lab_bound("replicas", policy=policy, replicas=replicas, span=_seconds(span)))


def opened(guesses: int, *, bits: int | None = None) -> float:
    """Return the share (0 to 1) of accounts that this many guesses on each account open.

    Parameters
    ----------
    guesses
        Guesses on each account, the most popular password first.
    bits
        Passwords are drawn evenly from 2^bits. If omitted, they are distributed as at RockYou, whose first 5,000 are
        modelled.

    Examples
    --------
    >>> opened(1), opened(256, bits=10)
    (0.00892, 0.25)
    """
    return lab_bound("opened", guesses=guesses, **({} if bits is None else {"bits": bits}))


def table(policy: str) -> dict[str, list[str] | list[float]]:
    """Return what a policy admits in spans from a minute to a year, as columns.

    ``span`` and ``span_s``; ``admitted`` to a greedy attacker; ``unnoticed`` to one that is never denied.

    >>> columns = table("5/1m,50/1h")
    >>> columns["span"][4], columns["admitted"][4]
    ('24h', 1249.0)
    """
    return {
        name: array("d", column).tolist() if isinstance(column, bytes) else column
        for name, column in lab_bounds(policy).items()
    }


def _seconds(span: Duration) -> float | str:
    return f"{span // timedelta(microseconds=1)}us" if isinstance(span, timedelta) else span
