"""The shared vectors as Python objects: reading, values, and building what a case asks for.

Knows the format of `tests/vectors/README.md` and nothing of expectations. Invariant: a field that is not read is an
error, so that a case cannot be weaker than it looks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from doorkeep import Key, Rule, StrikeRule

FOLDER = Path(__file__).parent.parent / "vectors"
TRACES = [
    "attempt",
    "clock",
    "fixed-window",
    "gcra",
    "gcra-give-back",
    "limiter",
    "random",
    "strikes",
    "strikes-capacity",
    "token-bucket",
    "windows-capacity",
]
FUNCTIONS = [
    "client-ip",
    "config",
    "email",
    "http",
    "keys",
    "keys-for",
    "lint",
    "network",
    "presets",
    "rates",
    "username",
]
# Only stores repeat a call after a lost reply, hosts have no call for it; the lab has its own test.
ELSEWHERE = ["strikes-repeated", "lab"]


def cases(file: str) -> list[dict[str, Any]]:
    """Read the cases of one file."""
    document = json.loads((FOLDER / f"{file}.json").read_text())
    with fields(document) as take:
        assert take("format") == 1
        take("about")
        found: list[dict[str, Any]] = take("cases")
    assert found, f"{file}.json has no case"
    return found


@contextmanager
def fields(record: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a function that takes fields out of a record; at the end none may be left."""
    left = dict(record)

    def take(name: str, *default: Any) -> Any:
        return left.pop(name, *default)

    yield take
    assert not left, f"unknown fields: {sorted(left)}"


def text(value: Any) -> str:
    """Return a string that is written out, by its code units, by repetition, or in several such parts."""
    if isinstance(value, list):
        return "".join(map(text, value))
    if isinstance(value, str):
        return value
    with fields(value) as take:
        if "utf16" in value:
            units = b"".join(unit.to_bytes(2, "little") for unit in take("utf16"))
            return units.decode("utf-16-le", "surrogatepass")
        repeated: str = take("repeat") * take("times")
        return repeated


def raw(value: Any) -> Any:
    """Return a configuration value of the type that the vector names."""
    if not isinstance(value, dict):
        return value
    with fields(value) as take:
        if "float" in value:
            return float(take("float"))
        if "bool" in value:
            return take("bool")
        if "seconds" in value:
            return float(take("seconds"))
        assert take("none") is True
    return None


def duration(value: Any) -> Any:
    """Return a configured duration: a plain number is microseconds."""
    return timedelta(microseconds=value) if type(value) is int else raw(value)


def seconds(micros: int) -> float:
    """Return an instant as Python passes it."""
    return micros / 1e6


def micros(delta: timedelta | None) -> int | None:
    """Return a returned duration as vectors write it."""
    return None if delta is None else delta // timedelta(microseconds=1)


def rule(label: str, record: Mapping[str, Any]) -> Rule | StrikeRule:
    """Build a rule. The part after a # in its label distinguishes rules of one name."""
    name = label.split("#")[0]
    with fields(record) as take:
        options: dict[str, Any] = {}
        for option in ("ipv6_prefix", "by"):
            if option in record:
                options[option] = take(option)
        if "secret_hex" in record:
            options["secret"] = bytes.fromhex(take("secret_hex"))
        if "rates" in record:
            return Rule(name, take("rates"), **options)
        window = timedelta(microseconds=take("lockout_window_us"))
        return StrikeRule(name, threshold=take("threshold"), lockout_window=window, **options)


def key(rules: Mapping[str, Rule | StrikeRule], record: Mapping[str, Any]) -> Key:
    """Build a key under one of a case's rules."""
    with fields(record) as take:
        maker = rules[take("rule")]
        if "address" in record:
            return maker.ip_key(text(take("address")))
        return maker.key(*[text(part) for part in take("parts")])
