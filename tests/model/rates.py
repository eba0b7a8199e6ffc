"""Rates as text, their canonical form, and how many attempts they can admit.

Knows nothing of keys or state. Invariant: equal rates have one canonical text, since it names the state.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import durations
from errors import MAX_COUNT, MAX_PERIOD, ConfigError

MAX_RATES = 16


@dataclass(frozen=True)
class Rate:
    count: int
    period: int

    @property
    def interval(self):
        """T, the exact time in which one attempt is refilled."""
        return Fraction(self.period, self.count)

    def __str__(self):
        return f"{self.count}/{durations.text_of(self.period)}"


def parse(text):
    """The rates of `5/1m,50/1h` in canonical order: by period, then by count."""
    if not text.strip():
        raise ConfigError("rates must name at least one rate, rates=``")
    pieces = [piece.strip() for piece in re.split("[,;]", text)]
    rates = []
    for piece in pieces:
        rate = parse_one(piece)
        if rate in rates:
            raise ConfigError(f"rate stands twice, rate=`{piece[:64]}`")
        rates.append(rate)
    if len(rates) > MAX_RATES:
        raise ConfigError(f"a rule takes 1 to {MAX_RATES} rates, rates={len(rates)}")
    return tuple(sorted(rates, key=lambda rate: (rate.period, rate.count)))


def parse_one(piece):
    shown = piece[:64]
    halves = [half.strip() for half in piece.split("/")]
    if len(halves) != 2 or "" in halves:
        raise ConfigError(f"rate must read count/period such as 5/1m, rate=`{shown}`")
    if not re.fullmatch("[0-9]+", halves[0]) or not 1 <= durations.number(halves[0]) <= MAX_COUNT:
        raise ConfigError(f"rate count must be a whole number from 1 to {MAX_COUNT}, rate=`{shown}`")
    try:
        period = durations.parse(halves[1])
    except durations.UnknownUnit:
        raise ConfigError(f"rate period has an unknown unit, use us, ms, s, m, h, d or w, rate=`{shown}`") from None
    except durations.Malformed:
        raise ConfigError(f"rate must read count/period such as 5/1m, rate=`{shown}`") from None
    if not 1 <= period <= MAX_PERIOD:
        raise ConfigError(f"rate period must be from 1us to {MAX_PERIOD}us, rate=`{shown}`")
    return Rate(int(halves[0]), period)


def canonical(rates):
    return ",".join(str(rate) for rate in rates)


def max_in(rates, span):
    """The most attempts that pass in any half-open span of `span` microseconds, from a full window on."""
    return min(ceil(span / rate.interval) + rate.count - 1 for rate in rates)
