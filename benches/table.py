"""The one table: goal beside measured.

Reads what the parts print and knows nothing of how they measure. Two forms of lines are understood: JSON objects with
`goal`, `what`, `target`, `ratio`, `better`, `unit` and `detail`, and the rows of the table that `benches/rust` prints.
Invariant: no line that names a goal is dropped, met or not.
"""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

HEAD = ("goal", "what", "goal ratio", "measured", "met", "beside it, from the same run")
RUST_ROW = re.compile(
    r"\| (?P<goal>P\d+) \| (?P<what>.+) \| <= (?P<target>[\d.]+)(?P<unit>x| B)"
    r" \| (?P<ratio>[\d.]+|inf)(?:x| B) \| \w+ \| (?P<detail>.*) \|"
)


@dataclass(frozen=True)
class Row:
    """One measurement of one goal."""

    goal: str
    what: str
    target: float
    ratio: float
    better: Literal["lower", "higher"]
    unit: str
    detail: str

    @property
    def is_met(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio <= self.target if self.better == "lower" else self.ratio >= self.target

    def cells(self) -> tuple[str, ...]:
        """Give the row as it stands in the table."""
        unit = "×" if self.unit in ("", "x") else f" {self.unit.strip()}"
        sign = "<=" if self.better == "lower" else ">="
        met = "yes" if self.is_met else "NO"
        return (self.goal, self.what, f"{sign} {self.target:g}{unit}", f"{self.ratio:.2f}{unit}", met, self.detail)


def read(line: str, where: str = "") -> Row | None:
    """Read one line of a part; None when it is no measurement."""
    if line.startswith("{"):
        told = json.loads(line)
        return Row(
            told["goal"],
            told["what"],
            told["target"],
            told["ratio"],
            told["better"],
            told.get("unit", ""),
            told["detail"],
        )
    if found := RUST_ROW.fullmatch(line.strip()):
        told = found.groupdict()
        what = f"{where}{told['what']}"
        return Row(
            told["goal"], what, float(told["target"]), float(told["ratio"]), "lower", told["unit"], told["detail"]
        )
    return None


def show(rows: Iterable[Row]) -> str:
    """Lay the rows out as a Markdown table, in the order of the goals."""
    ordered = sorted(rows, key=lambda row: int(row.goal[1:]))
    lines = [HEAD, *(row.cells() for row in ordered)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    shown = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    missed = [row for row in ordered if not row.is_met]
    shown.append(f"{len(ordered) - len(missed)} of {len(ordered)} met.")
    return "\n".join(shown)


if __name__ == "__main__":
    print(show(row for row in map(read, sys.stdin) if row))
