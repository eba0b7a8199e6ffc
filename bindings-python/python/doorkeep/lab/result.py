"""The result of a run, and the comparison of several.

Computes nothing: the numbers are the core's. Invariant: a result is immutable. Tested in `tests/python/test_lab.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doorkeep.lab.scenario import Scenario
from doorkeep.lab.table import Table
from doorkeep.lab.text import duration, html, shown, text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Comparison", "Result", "compare"]

# The most important columns of each table, with their labels in a report.
_ATTACKERS = {
    "attempts": "attempts",
    "guesses": "guesses admitted",
    "accounts": "accounts guessed at",
    "most_a_day": "most on one account in a day",
    "opened_expected": "accounts opened, expected",
    "opened": "accounts opened, this seed",
    "first_locked_s": "first lockout after",
    "first_denied_s": "first denial after",
    "wait_p50_s": "wait told, median",
    "wait_max_s": "wait told, longest",
    "degraded": "answered without the store",
    "unavailable": "answered unavailable",
}
_USERS = {
    "logins": "logins",
    "denied_percent": "logins that met a denial",
    "succeeded": "logged in",
    "gave_up": "gave up",
    "wait_p50_s": "wait told, median",
    "wait_p95_s": "wait told, 95 of 100 below",
    "wait_max_s": "wait told, longest",
    "recovery_s": "wait when the attack is over",
    "degraded": "answered without the store",
    "unavailable": "answered unavailable",
}
_RUN = {
    "events": "attempts in all",
    "degraded_percent": "answered without the store",
    "tracked_keys_max": "keys held, most",
    "evicted": "keys evicted",
}
# Omitted if they have no value.
_SILENT_IF_ZERO = {"degraded", "unavailable", "degraded_percent"}


class Result:
    """The result of a run: tables of columns. Prints as a report, also in a notebook.

    Attributes
    ----------
    scenario
        The scenario that was run, including its seed.
    run
        One row: the run as a whole.
    attackers, users
        A row for each, in the order of the scenario.
    series
        A row for each equal part of the run.
    admissions
        A row for each admitted guess whose time was kept (``record`` of the scenario).
    """

    __slots__ = ("admissions", "attackers", "run", "scenario", "series", "users")

    scenario: Scenario
    run: Table
    attackers: Table
    users: Table
    series: Table
    admissions: Table

    def __init__(self, scenario: Scenario, tables: Mapping[str, Table]) -> None:
        object.__setattr__(self, "scenario", scenario)
        for name in ("run", "attackers", "users", "series", "admissions"):
            object.__setattr__(self, name, tables[name])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a result cannot be changed")

    def __reduce__(self) -> tuple[type[Result], tuple[Scenario, dict[str, Table]]]:
        return Result, (self.scenario, self.tables)

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before its end: the numbers are those of its first `run["duration_s"]`."""
        return not self.run["complete"][0]

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
        return {name: getattr(self, name) for name in ("run", "attackers", "users", "series", "admissions")}

    def to_pandas(self, table: str = "attackers") -> pd.DataFrame:
        """Return one of the tables as a pandas DataFrame; ImportError if pandas is not installed."""
        return self.tables[table].to_pandas()

    def to_polars(self, table: str = "attackers") -> pl.DataFrame:
        """Return one of the tables as a polars DataFrame; ImportError if polars is not installed."""
        return self.tables[table].to_polars()

    def to_json(self) -> str:
        """Return all tables as JSON: columns as lists, `null` for missing values."""
        return json.dumps({name: table.to_lists() for name, table in self.tables.items()})

    def table(self) -> str:
        """Return the report as a string."""
        head = f"{duration(float(self.run['duration_s'][0]))} on a virtual clock"
        if self.interrupted:
            head += ", interrupted: what follows is a part of the run"
        parts = [text(rows) for rows in _blocks([self])]
        return "\n\n".join([head, *parts])

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        attackers, users = list(map(str, self.attackers["kind"])), list(map(str, self.users["kind"]))
        events = int(self.run["events"][0])
        return f"Result(attackers={attackers}, users={users}, events={events}, interrupted={self.interrupted})"

    def _repr_html_(self) -> str:
        note = "<p><b>Interrupted:</b> a part of the run.</p>" if self.interrupted else ""
        return note + "".join(html(rows) for rows in _blocks([self]))


@dataclass(frozen=True, repr=False)
class Comparison:
    """Results side by side. Prints as a report, also in a notebook."""

    results: tuple[Result, ...]
    labels: tuple[str, ...]

    def table(self) -> str:
        """Return the report as a string."""
        return "\n\n".join(text(rows) for rows in _blocks(self.results, self.labels))

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(html(rows) for rows in _blocks(self.results, self.labels))


def compare(*results: Result, labels: Sequence[str] | None = None) -> Comparison:
    """Compare results side by side: actors at the same position of their scenarios share their rows.

    Parameters
    ----------
    results
        At least one.
    labels
        Their names; by default ``a``, ``b``, ...

    Raises
    ------
    ValueError
        There is no result, or the number of labels differs.
    """
    names = tuple(labels) if labels is not None else tuple("abcdefghijklmnopqrstuvwxyz"[: len(results)])
    if not results or len(names) != len(results):
        raise ValueError(f"one label for each of at least one result, results={len(results)}, labels={len(names)}")
    return Comparison(results, names)


def _blocks(results: Sequence[Result], labels: Sequence[str] = ()) -> list[list[list[str]]]:
    """Return a block of rows for each attacker, each group of users, and the run."""
    blocks = []
    for name, words in (("attackers", _ATTACKERS), ("users", _USERS), ("run", _RUN)):
        tables = [result.tables[name] for result in results]
        for row in range(max(table.rows for table in tables)):
            kinds = {str(table["kind"][row]) for table in tables if "kind" in table and row < table.rows}
            title = " or ".join(sorted(kinds)) if kinds else "the run"
            role = {"attackers": "attacker", "users": "users"}.get(name)
            head = f"{role}: {title}" if role else title
            lines = [_line(column, word, tables, row) for column, word in words.items()]
            blocks.append([[head, *(labels or [""])], *(line for line in lines if line)])
    return blocks


def _line(column: str, word: str, tables: Sequence[Table], row: int) -> list[str] | None:
    values: list[Any] = [table[column][row] if row < table.rows else float("nan") for table in tables]
    if all(value != value for value in values) or (column in _SILENT_IF_ZERO and not any(values)):
        return None
    return [word, *(shown(column, value) for value in values)]
