"""The table of what the attacks came to, written row by row as they end."""

from collections import Counter
from dataclasses import dataclass, field

from guesses import Answer

_HEADINGS = ("service", "attack", "sent", "result", "", "expected", "", "Retry-After", "slowest")
_WIDTHS = (-7, -44, 6, 6, -9, 9, -5, 11, 7)


@dataclass(frozen=True)
class Row:
    """One attack: the answers to it, the number it came to, and the bounds of that number and of Retry-After."""

    attack: str
    got: int
    unit: str
    expected: tuple[int, int]
    answers: list[Answer] = field(default_factory=list)
    waits: tuple[int, int] | None = None

    def faults(self) -> list[str]:
        """Say what is not as expected, if anything."""
        faults = []
        if not self.expected[0] <= self.got <= self.expected[1]:
            faults.append(f"{self.got:,} {self.unit}, expected {_span(self.expected)}")
        statuses = Counter(answer.status for answer in self.answers)
        denied = statuses.pop(429, 0)
        if self.answers and self.got != len(self.answers) - denied:
            faults.append(f"the service counts {self.got:,}, its answers say {len(self.answers) - denied:,}")
        faults += [f"{n:,} answers of status {status}" for status, n in statuses.items() if status not in (200, 401)]
        told = self.told()
        if denied and (told is None or self.waits is None or not self.waits[0] <= told[0] <= told[1] <= self.waits[1]):
            faults.append(f"Retry-After {_span(told)}, expected {_span(self.waits)}")
        return faults

    def told(self) -> tuple[int, int] | None:
        """Give the shortest and the longest Retry-After, if every denied guess was told one."""
        denied = [answer for answer in self.answers if answer.status == 429]
        told = [answer.retry_after for answer in denied if answer.retry_after is not None]
        return (min(told), max(told)) if told and len(told) == len(denied) else None

    def cells(self) -> tuple[str, ...]:
        """Write it down, without the service."""
        told = self.told()
        slowest = max((answer.seconds for answer in self.answers), default=None)
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


def heading() -> str:
    """Write the two lines above the rows."""
    return f"{_line(_HEADINGS)}\n{_line(tuple('-' * abs(width) for width in _WIDTHS))}"


def line(service: str, row: Row) -> str:
    """Write one row."""
    return _line((service, *row.cells()))


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
