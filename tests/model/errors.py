"""Errors and the bounds of numbers, with the texts that every language shows.

Knows nothing of limiters. Invariant: a message names the thing and its bound, never a key's value.
"""

import math

MAX_NOW = 2**52
MAX_PERIOD = 2**48
MAX_COUNT = 2**26
MAX_THRESHOLD = 1024
MAX_TABLE = 2**30
MAX_COST = 2**32 - 1


class ConfigError(ValueError):
    kind = "config"


class InvalidKeyError(ValueError):
    kind = "invalid_key"


def shown(value):
    """A configured value as messages print it: text in double quotes, floats as Rust prints them."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, str):
        return f'"{value}"'
    return "a value of another type"


def as_whole(value):
    """The whole number that `value` is, or None. 5.0 is one, True is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return None


def whole(what, low, high, value):
    number = as_whole(value)
    if number is None or not low <= number <= high:
        raise ConfigError(f"{what} must be a whole number from {low} to {high}, value=`{shown(value)}`")
    return number


def timestamp(value):
    number = as_whole(value)
    if number is None or not 0 <= number <= MAX_NOW:
        raise ConfigError(f"now must be from 0 to {MAX_NOW} microseconds, value=`{shown(value)}`")
    return number
