"""Writes what the runs of ``tests/vectors/lab.json`` give today, after their meaning was changed on purpose.

A case is a name and a scenario; everything else is written by this script, and read by the tests of every language.
"""

import json
import math
from array import array
from pathlib import Path
from typing import Any

from doorkeep import _native

FILE = Path(__file__).parent.parent / "vectors" / "lab.json"


def outcome_of(scenario: str) -> dict[str, dict[str, list[Any]]]:
    """Run a scenario and give its columns as lists; NaN has no number in JSON and stands as None."""
    tables = _native.lab_run(scenario)
    return {name: {column: plain(values) for column, values in table.items()} for name, table in tables.items()}


def plain(values: bytes | list[str]) -> list[Any]:
    """Give a column as values of JSON."""
    if isinstance(values, list):
        return values
    return [None if math.isnan(number) else number for number in array("d", values)]


def main() -> None:
    """Write the file anew."""
    vectors = json.loads(FILE.read_text(encoding="utf-8"))
    for case in vectors["cases"]:
        case["outcome"] = outcome_of(case["scenario"])
    cases = ",\n".join(json.dumps(case, allow_nan=False) for case in vectors["cases"])
    about = json.dumps(vectors["about"])
    FILE.write_text(f'{{"about": {about},\n"format": 1,\n"cases": [\n{cases}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
