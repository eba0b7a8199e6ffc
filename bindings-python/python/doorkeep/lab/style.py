"""The style of the lab's figures: quiet, legible in print, and readable without colour.

Knows nothing of results. Invariant: saving the same figure again writes the same bytes. Tested in
`tests/python/test_lab_plots.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

from doorkeep.lab._extras import needed

if TYPE_CHECKING:
    import matplotlib
    from matplotlib import ticker
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    matplotlib = needed("matplotlib", "a plot of doorkeep.lab", "doorkeep[lab]")
    from matplotlib import ticker
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "GREY", "Figure", "drawing", "finish", "line_styles", "save", "styled", "time_axis"]

# Okabe and Ito, Color Universal Design (2008): distinguishable with every common form of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (3, 1)), (0, (8, 2)), (0, (1, 3)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GREY = "#5c5c5c"

_RC: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": "#222222",
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "figure.figsize": (6.6, 3.8),
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "savefig.dpi": 150,
    # Otherwise the ids in a figure's XML are random.
    "svg.hashsalt": "doorkeep",
    "xtick.color": GREY,
    "ytick.color": GREY,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of the lab, and restore the user's style afterwards.

    Restores only the settings of the style: a notebook makes pyplot interactive while its first figure is made.
    """
    settings = matplotlib.rcParams
    before = {name: settings[name] for name in _RC}
    settings.update(_RC)
    try:
        yield
    finally:
        settings.update(before)


@contextmanager
def drawing(ax: Axes | None) -> Iterator[Axes]:
    """Draw in the style of the lab, on the axes that were passed or on new ones of pyplot."""
    with styled():
        if ax is None:
            pyplot = needed("matplotlib.pyplot", "a plot of doorkeep.lab", "doorkeep[lab]")
            ax = pyplot.subplots()[1]
        yield ax


def line_styles() -> Iterator[dict[str, Any]]:
    """Yield a colour, a dash and a marker for each line."""
    for colour, dash, marker in cycle(zip(COLOURS, _DASHES, _MARKERS, strict=True)):
        yield {"color": colour, "linestyle": dash, "marker": marker}


def time_axis(ax: Axes, seconds: float) -> float:
    """Label the x axis with the best unit for a run of this length, and return the length of the unit in seconds."""
    units = (("s", 1, 300), ("min", 60, 3 * 3600), ("h", 3600, 4 * 86_400), ("d", 86_400, float("inf")))
    name, unit = next((name, unit) for name, unit, most in units if seconds <= most)
    ax.set_xlabel(f"time since the start [{name}]")
    ax.set_xlim(0, seconds / unit)
    if name == "h" and seconds % 21_600 == 0:
        ax.xaxis.set_major_locator(ticker.MultipleLocator(6 if seconds > 43_200 else 1))
    return float(unit)


def finish(ax: Axes, title: str | None, *, legend: bool) -> Axes:
    """Add the parts that all figures have; counts have separators."""
    if title:
        ax.set_title(title)
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            # Within two decades, an axis with powers of ten only would have almost no labels.
            if high < 100 * low:
                axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(ticker.FuncFormatter(_count))
            axis.set_minor_formatter(ticker.NullFormatter())
        elif isinstance(axis.get_major_formatter(), ticker.ScalarFormatter):
            axis.set_major_formatter(ticker.FuncFormatter(_count))
    lines = len(ax.get_legend_handles_labels()[0])
    if legend and lines > 3:
        # Below the axes, where no line crosses it.
        ax.legend(loc="upper left", bbox_to_anchor=(-0.01, -0.16), ncols=2, borderaxespad=0)
    elif legend:
        ax.legend()
    return ax


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save a figure without the date and the version in its metadata.

    Raises
    ------
    OSError
        The file cannot be written.
    ValueError
        The extension of the path is not a known format.
    """
    with styled():
        ending = os.fspath(path).rpartition(".")[2].lower()
        nameless: dict[str, dict[str, Any]] = {
            "png": {"Software": None},
            "svg": {"Date": None, "Creator": None},
            "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        }
        figure.savefig(path, metadata=nameless.get(ending))


def _count(value: float, _position: object = None) -> str:
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:g}"
