"""The table of what the attacks came to, written row by row as they end."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from guesses import Answer

_HEADINGS = ("attack", "sent", "result", "", "expected", "", "Retry-After", "slowest")
_WIDTHS = (-7, -44, 6, 6, -9, 9, -5, 11, 7)


@dataclass(frozen=True)
class Row:
    """One attack: the answers to it, the number it came to, and the bounds of that number and of Retry-After.

    `found` holds faults that the attack itself found. Whoever is not let in is answered with the status `denial`. No
    answer may take longer than `longest` seconds.
    """

    attack: str
    got: int
    unit: str
    expected: tuple[int, int]
    answers: list[Answer] = field(default_factory=list)
    waits: tuple[int, int] | None = None
    found: list[str] = field(default_factory=list)
    statuses: tuple[int, ...] = (200, 401, 429)
    denial: int = 429
    longest: float = math.inf

    def faults(self) -> list[str]:
        """Say what is not as expected, if anything."""
        faults = list(self.found)
        if not self.expected[0] <= self.got <= self.expected[1]:
            faults.append(f"{self.got:,} {self.unit}, expected {_span(self.expected)}")
        statuses = Counter(answer.status for answer in self.answers)
        faults += [f"{n:,} answers of status {status}" for status, n in statuses.items() if status not in self.statuses]
        told = self.told()
        within = told and self.waits and self.waits[0] <= told[0] <= told[1] <= self.waits[1]
        if statuses[self.denial] and not within:
            faults.append(f"Retry-After {_span(told)}, expected {_span(self.waits)}")
        slowest = self.slowest()
        if slowest is not None and slowest > self.longest:
            faults.append(f"an answer took {slowest * 1000:.0f} ms, at most {self.longest * 1000:.0f} ms is expected")
        return faults

    def told(self) -> tuple[int, int] | None:
        """Give the shortest and the longest Retry-After, if every denied guess was told one."""
        denied = [answer for answer in self.answers if answer.status == self.denial]
        told = [answer.retry_after for answer in denied if answer.retry_after is not None]
        return (min(told), max(told)) if told and len(told) == len(denied) else None

    def slowest(self) -> float | None:
        """Give the seconds that the slowest answer took, if there were any."""
        return max((answer.seconds for answer in self.answers), default=None)

    def cells(self) -> tuple[str, ...]:
        """Write it down."""
        told, slowest = self.told(), self.slowest()
        return (
            self.attack,
            f"{len(self.answers):,}" if self.answers else "",
            f"{self.got:,}",
            self.unit,
            _span(self.expected),
            "WRONG" if self.faults() else "ok",
            "" if told is None else f"{_span(told)} s",
            "" if slowest is None else f"{slowest * 1000:.0f} ms",
        )


class Report:
    """Prints rows, and remembers what was wrong."""

    def __init__(self) -> None:
        self._passed = 0
        self._failures: list[str] = []

    def begin(self, subject: str) -> None:
        """Print the headings of a table whose first column names a `subject`."""
        print(_line((subject, *_HEADINGS)))
        print(_line(tuple("-" * abs(width) for width in _WIDTHS)), flush=True)

    def add(self, subject: str, row: Row) -> None:
        """Print one row."""
        print(_line((subject, *row.cells())), flush=True)
        faults = row.faults()
        self._passed += not faults
        self._failures += [f"{subject}: {row.attack.strip()}: {', '.join(faults)}"] if faults else []

    def end(self) -> int:
        """Print what was wrong, and give the exit code."""
        print("", *self._failures, f"demo: {self._passed} passed, {len(self._failures)} failed", sep="\n")
        return 1 if self._failures else 0


def admitted(answers: Iterable[Answer]) -> int:
    """Give how many guesses were let in, by their answers."""
    return sum(answer.status in (200, 401) for answer in answers)


def tally(counted: int, answers: Iterable[Answer]) -> list[str]:
    """Say it if the services count other guesses than their answers let in."""
    said = admitted(answers)
    return [] if said == counted else [f"the services count {counted:,}, their answers say {said:,}"]


def _line(cells: tuple[str, ...]) -> str:
    aligned = (
        cell.ljust(-width) if width < 0 else cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True)
    )
    return "  ".join(aligned).rstrip()


def _span(bounds: tuple[int, int] | None) -> str:
    if bounds is None:
        return "none"
    low, high = bounds
    if low == high:
        return f"{low:,}"
    return f"{low:,}-{high:,}" if low else f"<= {high:,}"
