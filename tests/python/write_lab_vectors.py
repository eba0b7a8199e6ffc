"""Writes the results of the runs in ``tests/vectors/lab.json``, after an intended change.

A case is a name and a scenario; this script writes the rest, and the tests of every language read it.
"""

import json
import math
from array import array
from pathlib import Path
from typing import Any

from doorkeep import _native

FILE = Path(__file__).parent.parent / "vectors" / "lab.json"


def outcome_of(scenario: str) -> dict[str, dict[str, list[Any]]]:
    """Run a scenario and return its columns as lists; JSON has no NaN, so it becomes None."""
    tables = _native.lab_run(scenario)
    return {name: {column: plain(values) for column, values in table.items()} for name, table in tables.items()}


def plain(values: bytes | list[str]) -> list[Any]:
    """Return a column as JSON values."""
    if isinstance(values, list):
        return values
    return [None if math.isnan(number) else number for number in array("d", values)]


def main() -> None:
    """Rewrite the file."""
    vectors = json.loads(FILE.read_text(encoding="utf-8"))
    for case in vectors["cases"]:
        case["outcome"] = outcome_of(case["scenario"])
    cases = ",\n".join(json.dumps(case, allow_nan=False) for case in vectors["cases"])
    about = json.dumps(vectors["about"])
    FILE.write_text(f'{{"about": {about},\n"format": 1,\n"cases": [\n{cases}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
