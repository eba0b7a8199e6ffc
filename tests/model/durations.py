"""Durations: text to microseconds and back, and the check of a configured one.

Knows nothing of rates. Invariant: nothing is rounded; a duration is a whole number of microseconds or an error.
"""

import math
import re
from fractions import Fraction

from errors import MAX_PERIOD, ConfigError, as_whole, shown

SECOND = 1_000_000
UNITS = {
    "us": 1, "microsecond": 1, "microseconds": 1,
    "ms": 1_000, "millisecond": 1_000, "milliseconds": 1_000,
    "s": SECOND, "sec": SECOND, "secs": SECOND, "second": SECOND, "seconds": SECOND,
    "m": 60 * SECOND, "min": 60 * SECOND, "mins": 60 * SECOND, "minute": 60 * SECOND, "minutes": 60 * SECOND,
    "h": 3_600 * SECOND, "hr": 3_600 * SECOND, "hrs": 3_600 * SECOND, "hour": 3_600 * SECOND, "hours": 3_600 * SECOND,
    "d": 86_400 * SECOND, "day": 86_400 * SECOND, "days": 86_400 * SECOND,
    "w": 604_800 * SECOND, "week": 604_800 * SECOND, "weeks": 604_800 * SECOND,
}  # fmt: skip
PRINTED = ["d", "h", "m", "s", "ms", "us"]


class Malformed(Exception):
    """The text does not have the shape of a duration."""


class UnknownUnit(Exception):
    """The text has a word that is no unit."""


def parse(text):
    """Microseconds of `15m`, `1h30m` or a bare unit such as `m`; the range is the caller's to check."""
    text = text.strip().lower()
    if not text.isascii():
        raise Malformed
    for word in re.findall(r"[a-z]+", text):
        if word not in UNITS:
            raise UnknownUnit
    if text in UNITS:
        return UNITS[text]
    if not re.fullmatch(r"([0-9]+ *[a-z]+ *)+", text):
        raise Malformed
    return sum(number(count) * UNITS[unit] for count, unit in re.findall(r"([0-9]+) *([a-z]+)", text))


def number(digits):
    """The number that the digits write; what is longer than any bound counts as 10^20."""
    return int(digits) if len(digits.lstrip("0")) <= 20 else 10**20


def text_of(microseconds):
    """One integer in the largest unit that divides it: 7d, 90m, 1500ms."""
    for unit in PRINTED:
        if microseconds % UNITS[unit] == 0:
            return f"{microseconds // UNITS[unit]}{unit}"
    raise AssertionError("every whole number of microseconds is a number of us")


class Seconds:
    """A duration that the host gives as a number of seconds, here as the decimal that it prints as."""

    def __init__(self, decimal):
        self.decimal = decimal

    def microseconds(self):
        if not math.isfinite(float(self.decimal)):
            return None
        exact = Fraction(self.decimal) * SECOND
        return int(exact) if exact.denominator == 1 else None


def duration(what, value):
    """A configured duration in microseconds: a whole number of them, `Seconds` or text."""
    if isinstance(value, str):
        try:
            made = parse(value)
        except (Malformed, UnknownUnit):
            raise ConfigError(f"{what} must read like 15m, 1h30m or 200ms, value=`{shown(value)}`") from None
    elif isinstance(value, Seconds):
        made = value.microseconds()
    else:
        made = as_whole(value)
    if made is None or not 1 <= made <= MAX_PERIOD:
        raise ConfigError(
            f"{what} must be a whole number of microseconds from 1 to {MAX_PERIOD}, value=`{shown(value)}`"
        )
    return made
