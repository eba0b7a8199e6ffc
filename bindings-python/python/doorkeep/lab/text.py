"""Tables as text and as HTML, and numbers in readable form.

Knows columns only by their unit: names that end in `_s` are seconds, in `_percent` percent. Tested in
`tests/python/test_lab.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = ["duration", "html", "shown", "text"]


def shown(name: str, value: Any) -> str:
    """Format a value: durations in units, counts with separators, a missing value as a dash."""
    if isinstance(value, str):
        return str(value)
    number = float(value)
    if math.isnan(number):
        return "-"
    if name.endswith("_s"):
        return duration(number)
    if name.endswith("_percent"):
        return f"{number:.2f} %"
    return f"{number:,.0f}" if number == round(number) else f"{number:,.2f}"


def duration(seconds: float) -> str:
    """Format seconds by their two largest units: ``1h 12m``."""
    if seconds < 60:
        return f"{seconds:.3g}s"
    left = round(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def text(rows: Sequence[Sequence[str]]) -> str:
    """Format rows, the header first; the first column is left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    return "\n".join([lines[0].rstrip(), "  ".join("-" * width for width in widths), *map(str.rstrip, lines[1:])])


def html(rows: Sequence[Sequence[str]]) -> str:
    """Format rows, the header first, for a notebook."""

    def row(cells: Sequence[str], tag: str) -> str:
        marked = (
            f'<{tag} style="text-align:{"right" if at else "left"}">{escape(cell)}</{tag}>'
            for at, cell in enumerate(cells)
        )
        return f"<tr>{''.join(marked)}</tr>"

    head, *body = rows
    below = "".join(row(cells, "td") for cells in body)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{below}</tbody></table>"
