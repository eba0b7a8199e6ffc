"""Scenarios as plain objects: attackers, users and the policy.

Knows no field of an attacker and no default: all fields are passed to the core, which validates them. Invariant: any
`Scenario` can be run. Tested in `tests/python/test_lab.py`; the fields are in `docs/lab.md`.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from doorkeep._native import Rule, StrikeRule, lab_json
from doorkeep.errors import ConfigError

__all__ = ["Attacker", "Outage", "Policy", "Scenario", "Store", "Users"]

Duration = timedelta | float | str
Rules = Sequence[Rule | StrikeRule | str | Mapping[str, Any]]

AttackerKind = Literal[
    "vertical",
    "spray",
    "stuffing",
    "low-and-slow",
    "botnet",
    "ipv6-rotation",
    "key-flood",
    "lockout",
    "own-success",
    "race",
    "outage",
    "otp",
]
UsersKind = Literal["typo", "wrong-account", "stale-client", "forgetful", "poisson", "nat"]


class _Part:
    """A part of a scenario: its fields, by their names in a scenario file."""

    _fields: dict[str, Any]

    def __init__(self, **fields: Any) -> None:
        self._fields = {name: _plain(value) for name, value in fields.items() if value is not None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._fields.items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, _Part) and self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]


class Attacker(_Part):
    """A client that guesses passwords.

    Parameters
    ----------
    kind
        Its behaviour: ``vertical`` (one account from one address), ``spray`` (each guess on many accounts),
        ``stuffing`` (stolen pairs, each tried once), ``low-and-slow`` (never denied), ``botnet`` (one account from many
        addresses), ``ipv6-rotation``, ``key-flood`` (fresh keys, to evict strikes), ``lockout`` (keeps a victim out),
        ``own-success`` (logs in to its own account in between), ``race`` (many guesses at the same time), ``outage``
        (only during outages of the store), ``otp`` (one-time codes).
    fields
        As in a scenario file: ``rate`` ("greedy", "10/1s", a number per second), ``addresses``, ``accounts``,
        ``start``, ``end``, ``passwords`` and the fields of its kind. Durations are strings, seconds or timedeltas.

    Examples
    --------
    >>> Attacker("spray", accounts=5000, rate="10/1s")
    Attacker(kind='spray', accounts=5000, rate='10/1s')
    """

    def __init__(self, kind: AttackerKind, **fields: Any) -> None:
        super().__init__(kind=kind, **fields)


class Users(_Part):
    """People who log in.

    Parameters
    ----------
    kind
        Their behaviour: ``typo``, ``wrong-account`` (passwords of other accounts first), ``stale-client`` (a program
        with an old password), ``forgetful``, ``poisson`` (one right try), ``nat`` (``typo`` from one address).
    fields
        As in a scenario file: ``users``, ``account`` (of the first), ``logins`` (of each, "2/1d"), ``tries``,
        ``patience`` and the fields of their kind.

    Examples
    --------
    >>> Users("nat", users=200, logins="3/1d")
    Users(kind='nat', users=200, logins='3/1d')
    """

    def __init__(self, kind: UsersKind, **fields: Any) -> None:
        super().__init__(kind=kind, **fields)


class Policy(_Part):
    """The policy under attack: rules in call order, or one of the limiters that take strings, by its options.

    Parameters
    ----------
    rules
        `Rule` and `StrikeRule` objects with a ``by``, strings such as ``preset:login-ip``, and mappings as in a
        scenario file.
    fields
        As in a scenario file: ``capacity``, ``forgive``, ``give_back``, ``forgive_address`` (rules or their names),
        ``replicas``; instead of rules one of ``attempt_limiter``, ``token_bucket``, ``fixed_window``, a mapping.

    Examples
    --------
    >>> Policy(attempt_limiter={"threshold": 5, "lockout_window": "15m"}, replicas=4)
    Policy(attempt_limiter={'threshold': 5, 'lockout_window': '15m'}, replicas=4)
    """

    def __init__(self, rules: Rules | None = None, **fields: Any) -> None:
        for name in ("forgive", "give_back", "forgive_address"):
            if fields.get(name) is not None:
                fields[name] = _names(fields[name])
        super().__init__(rules=_rules(rules), **fields)


class Outage(_Part):
    """A time without the store.

    Parameters
    ----------
    at
        When it begins, from the start of the run.
    duration
        How long it lasts.
    forgets
        Whether the store is empty afterwards.
    """

    def __init__(self, at: Duration, duration: Duration, *, forgets: bool | None = None) -> None:
        super().__init__(at=at, duration=duration, forgets=forgets)


class Store(_Part):
    """The store that all replicas share. Without a store each replica counts separately.

    Parameters
    ----------
    on_error
        What the replicas do during an outage: ``local``, ``open`` or ``closed``.
    outages
        Its outages, in order.
    """

    def __init__(
        self, *, on_error: Literal["local", "open", "closed"] | None = None, outages: Iterable[Outage] = ()
    ) -> None:
        super().__init__(on_error=on_error, outages=_listed(outages))


@dataclass(frozen=True, init=False, repr=False)
class Scenario:
    """The complete description of a run. It is validated when it is made.

    Parameters
    ----------
    policy
        A `Policy`, or its rules.
    attackers, users
        The clients that guess and the users that log in; at least one of them.
    store
        The store that the replicas share.
    duration
        The length of the run; one day by default.
    seed
        0 to 2^53. The same seed gives the same result.
    bins
        Rows of the time series, 1 to 10,000.
    record
        For how many admitted guesses of each attacker the times are kept.

    Raises
    ------
    ConfigError
        A field is unknown or out of its bounds, or the parts do not fit together. The message names the field, as in
        ``scenario attackers[0].rate: ...``, and the line, if the scenario came from a file.

    Examples
    --------
    >>> scenario = Scenario(policy=["preset:login-account"], attackers=[Attacker("vertical")], duration="7d")
    >>> scenario["attackers[0].kind"]
    'vertical'
    """

    _json: str

    def __init__(
        self,
        *,
        policy: Policy | Rules,
        attackers: Iterable[Attacker] = (),
        users: Iterable[Users] = (),
        store: Store | None = None,
        duration: Duration | None = None,
        seed: int | None = None,
        bins: int | None = None,
        record: int | None = None,
    ) -> None:
        settings = {"duration": duration, "seed": seed, "bins": bins, "record": record}
        tree = {
            "run": {name: _plain(value) for name, value in settings.items() if value is not None},
            "policy": _plain(policy if isinstance(policy, _Part) else Policy(policy)),
            "store": _plain(store),
            "attackers": _plain(_listed(attackers)),
            "users": _plain(_listed(users)),
        }
        self._validate(_text({name: part for name, part in tree.items() if part is not None}))

    @classmethod
    def from_toml(cls, source: str | os.PathLike[str]) -> Scenario:
        """Read a scenario file.

        Parameters
        ----------
        source
            The path of a file, or the scenario itself: a string that contains ``=`` or a line break, as every scenario
            does, begins with a brace (JSON) or is empty.

        Raises
        ------
        ConfigError
            It is invalid. The message names the file, the line and the field.
        OSError
            The file cannot be read.
        """
        if isinstance(source, str) and (not source or source.lstrip().startswith("{") or set("=\n") & set(source)):
            return cls._of(source)
        path = Path(source)
        try:
            return cls._of(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: a scenario file must be UTF-8") from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    def replace(self, changes: Mapping[str, Any]) -> Scenario:
        """Return the same scenario with other values, named as in error messages.

        Parameters
        ----------
        changes
            Values by path, such as ``{"attackers[0].addresses": 6, "run.duration": "7d"}``. `None` removes a field.

        Raises
        ------
        ConfigError
            A path does not exist, or the new scenario is invalid.
        """
        tree = self.to_dict()
        for path, value in changes.items():
            _put(tree, path, _plain(value))
        return self._of(_text(tree))

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario as plain values, as in a file."""
        tree: dict[str, Any] = json.loads(self._json)
        return tree

    def to_json(self) -> str:
        """Return the scenario as JSON, which every language of doorkeep reads."""
        return self._json

    def __getitem__(self, path: str) -> Any:
        """Return the value at a path, such as ``attackers[0].kind``; KeyError if there is none."""
        found: Any = self.to_dict()
        for step in _steps(path):
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                raise KeyError(path) from None
        return found

    def __repr__(self) -> str:
        return f"Scenario({self._json})"

    @classmethod
    def _of(cls, text: str) -> Scenario:
        scenario = object.__new__(cls)
        scenario._validate(text)
        return scenario

    def _validate(self, text: str) -> None:
        object.__setattr__(self, "_json", lab_json(text))


def _put(tree: dict[str, Any], path: str, value: object) -> None:
    """Set the value at a path; missing tables on the way are made, lists are not."""
    *way, last = _steps(path)
    place: Any = tree
    for step in way:
        if isinstance(place, dict) and isinstance(step, str):
            place = place.setdefault(step, {})
        elif isinstance(place, list) and isinstance(step, int) and step < len(place):
            place = place[step]
        else:
            raise ConfigError(f"the scenario has no such place, path=`{path}`")
    if isinstance(place, dict) and isinstance(last, str):
        place[last] = value
        if value is None:
            del place[last]
    elif isinstance(place, list) and isinstance(last, int) and last < len(place):
        place[last] = value
    else:
        raise ConfigError(f"the scenario has no such place, path=`{path}`")


def _steps(path: str) -> list[str | int]:
    """Split ``attackers[0].rate`` into its steps."""
    if not re.fullmatch(r"\w+(\[\d+\]|\.\w+)*", path):
        raise ConfigError(f"a path must read like attackers[0].rate, path=`{path}`")
    return [int(step) if step.isdigit() else step for step in re.findall(r"\w+", path)]


def _listed(values: Any) -> Any:
    """Return a list of an iterable; other values are left for the core to refuse."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, (str, Mapping)) else values


def _rules(rules: Any) -> Any:
    return [rules] if isinstance(rules, (Rule, StrikeRule, str)) else _listed(rules)


def _names(rules: Any) -> Any:
    named = _rules(rules)
    if not isinstance(named, list):
        return named
    return [rule.name if isinstance(rule, (Rule, StrikeRule)) else rule for rule in named]


def _plain(value: Any) -> Any:
    """Turn objects into their form in a scenario file."""
    if isinstance(value, _Part):
        return value._fields
    if isinstance(value, Rule):
        return {"name": value.name, "rates": str(value.rates), **_key(value)}
    if isinstance(value, StrikeRule):
        window = _plain(value.lockout_window)
        return {"name": value.name, "strikes": value.threshold, "window": window, **_key(value)}
    if isinstance(value, timedelta):
        # As a whole number of the smallest unit: a float of seconds would lose precision for long durations.
        return f"{value // timedelta(microseconds=1)}us"
    if isinstance(value, Mapping):
        return {name: _plain(field) for name, field in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and hasattr(value, "dtype") and value.ndim == 0:
        value = value.item()  # NumPy's numbers, without NumPy
    # JSON has no form for these; as strings the core refuses them and names the field.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _key(rule: Rule | StrikeRule) -> dict[str, Any]:
    return {"by": list(rule.by), "ipv6_prefix": rule.ipv6_prefix}


def _text(tree: Mapping[str, Any]) -> str:
    try:
        return json.dumps(tree)
    except TypeError as error:
        raise ConfigError(f"a scenario holds texts, numbers, truths, lists and mappings, {error}") from None
