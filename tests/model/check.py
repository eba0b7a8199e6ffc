"""Replays every file of tests/vectors against the model: python tests/model/check.py [NAME...]

Fails on the first difference of each case, and on unknown fields and repeated names.
"""

import json
import sys
from pathlib import Path

import replay

VECTORS = Path(__file__).resolve().parent.parent / "vectors"
# Whole runs of the lab, which hold languages together; what they must come to is in the tests of the lab.
ELSEWHERE = {"lab.json"}


def check_file(path):
    """(cases, steps, failures) of one file."""
    document = replay.Fields(json.loads(path.read_text(encoding="utf-8")))
    if document.take("format") != 1:
        raise SystemExit(f"{path.name}: unknown format")
    document.take("about")
    cases = document.take("cases")
    document.end()
    failures = []
    seen = set()
    for case in cases:
        if case["name"] in seen:
            failures.append(f"{path.name}: {case['name']}: stands twice")
        seen.add(case["name"])
        try:
            replay.run_case(path.stem, case)
        except Exception as problem:
            failures.append(f"{path.name}: {case['name']}: {type(problem).__name__}: {problem}")
    return len(cases), sum(len(case.get("steps", [])) for case in cases), failures


def main(names):
    paths = [VECTORS / f"{name}.json" for name in names] or sorted(
        path for path in VECTORS.glob("*.json") if path.name not in ELSEWHERE
    )
    total, failed = 0, []
    for path in paths:
        cases, steps, failures = check_file(path)
        print(f"{path.name}: {cases} cases, {steps} steps, {len(failures)} differ")
        total += cases
        failed += failures
    print(f"{total} cases in {len(paths)} files")
    for failure in failed:
        print(failure, file=sys.stderr)
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
