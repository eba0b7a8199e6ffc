"""Figures of results, for design documents.

Each function draws on the axes that are passed, or on new ones, and returns them. Needs matplotlib: ``pip install
"doorkeep[lab]"``. Computes only sums of columns. Invariant: drawing does not change a result. Tested in
`tests/python/test_lab_plots.py`; the style is in `style.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from doorkeep._native import Rate
from doorkeep.errors import ConfigError
from doorkeep.lab import bounds
from doorkeep.lab._extras import needed
from doorkeep.lab.style import GREY, Figure, drawing, finish, line_styles, save, styled, time_axis
from doorkeep.lab.text import duration

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from doorkeep.lab.result import Result
else:
    np = needed("numpy", "a plot of doorkeep.lab", "doorkeep[lab]")

__all__ = [
    "admission_by_addresses",
    "guesses_over_time",
    "honest_denial_by_load",
    "honest_over_time",
    "lines",
    "report",
    "save",
    "styled",
    "trade_off",
]

POINTS = 400


def guesses_over_time(
    *results: Result,
    labels: Sequence[str] | None = None,
    bound: str | None = None,
    log: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the guesses that were admitted up to each point in time, one line for each attacker of each result.

    Times without the store are shaded.

    Parameters
    ----------
    results
        Times are exact if the scenario's ``record`` kept all of them; otherwise they are as fine as its ``bins``, which
        also include an attacker's own logins and fresh keys.
    labels
        One for each line; by default the kinds of the attackers.
    bound
        A policy such as ``5/1m,50/1h``; the most that it admits is drawn as well.
    log
        Whether guesses are on a logarithmic scale.
    """
    with drawing(ax) as ax:
        length = max(float(result.run["duration_s"][0]) for result in results)
        unit = time_axis(ax, length)
        lines = [line for result in results for line in _lines(result)]
        for (kind, times, counts), style, at in zip(lines, line_styles(), range(len(lines)), strict=False):
            label = labels[at] if labels is not None else kind
            ax.step(times / unit, counts, where="post", label=label, color=style["color"], linestyle=style["linestyle"])
        if bound is not None:
            # For an open span that just includes this time: a greedy attacker is on the line, never above it.
            moments = np.linspace(0, length, POINTS)
            most = [bounds.max_in(bound, f"{round(1e6 * at) + 1}us") for at in moments]
            ax.plot(moments / unit, most, color=GREY, linewidth=1, label=f"most that {bound} admits", zorder=1)
        for begin, end in _outages(results[0]):
            ax.axvspan(begin / unit, min(end, length) / unit, color="#000000", alpha=0.07, linewidth=0)
        ax.set_ylabel("guesses admitted, in all")
        if log:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
        return finish(ax, title, legend=len(lines) + (bound is not None) > 1)


def honest_over_time(result: Result, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw how many honest attempts were admitted and denied in each part of the run."""
    with drawing(ax) as ax:
        series = result.series
        length = float(result.run["duration_s"][0])
        unit = time_axis(ax, length)
        starts = series["start_s"] / unit
        width = (starts[1] - starts[0]) if len(starts) > 1 else length / unit
        first, second = (style["color"] for style, _ in zip(line_styles(), range(2), strict=False))
        ax.bar(starts, series["users_admitted"], width, align="edge", label="admitted", color=first)
        ax.bar(
            starts,
            series["users_denied"],
            width,
            bottom=series["users_admitted"],
            align="edge",
            label="denied",
            color=second,
            hatch="////",
            edgecolor="white",
            linewidth=0,
        )
        ax.set_ylabel(f"honest attempts in {duration(float(width * unit))}")
        return finish(ax, title, legend=True)


def admission_by_addresses(
    results: Iterable[Result],
    *,
    bound: tuple[str, str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the guesses of the first attacker against the number of its addresses.

    Parameters
    ----------
    results
        Runs of one scenario with several ``attackers[0].addresses``, as `sweep` returns them.
    bound
        The rates of the rule for each pair of account and address, and of the rule for the account: the most that both
        admit is drawn as well.
    """
    with drawing(ax) as ax:
        runs = sorted(results, key=_addresses)
        addresses = [_addresses(result) for result in runs]
        guesses = [float(result.attackers["guesses"][0]) for result in runs]
        span = float(runs[0].run["duration_s"][0])
        if bound is not None:
            numbers = np.unique(np.geomspace(addresses[0], addresses[-1], POINTS).round())
            most = [bounds.botnet(*bound, int(number), span) for number in numbers]
            ax.plot(numbers, most, color=GREY, linewidth=1, label="most that the rules admit")
        style = next(line_styles())
        ax.plot(addresses, guesses, color=style["color"], marker="o", linestyle="none", label="run")
        ax.set_xscale("log")
        ax.set_xlim(min(addresses) / 1.15, max(addresses) * 1.15)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("addresses of the attacker")
        ax.set_ylabel(f"guesses admitted in {duration(span)}")
        return finish(ax, title, legend=bound is not None)


def honest_denial_by_load(
    counts: Sequence[int],
    loads: Sequence[float],
    *,
    runs: Iterable[tuple[int, float, Result]] = (),
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of honest attempts that a rate denies against their load, one line for each count.

    Parameters
    ----------
    counts
        Counts of rates: how many attempts a full window admits as a burst.
    loads
        Attempts in one interval (period / count), on average.
    runs
        Runs to draw as points, each with its count and load; the share is that of the first group of users.
    """
    with drawing(ax) as ax:
        points = list(runs)
        for count, style in zip(counts, line_styles(), strict=False):
            marker = style.pop("marker")
            denied = [100 * bounds.honest_denial(count, load) for load in loads]
            ax.plot(loads, denied, label=f"{count:,} at once", **style)
            found = [(load, float(result.users["denied_percent"][0])) for of, load, result in points if of == count]
            if found:
                ax.plot(*zip(*found, strict=True), color=style["color"], marker=marker, linestyle="none", zorder=3)
        ax.axvline(1, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        ax.annotate(
            "as many as the rate admits",
            (1, 1),
            xycoords=("data", "axes fraction"),
            xytext=(-5, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8.5,
            color=GREY,
        )
        ax.set_xlim(min(loads), max(loads))
        ax.set_ylim(bottom=0)
        ax.set_xlabel("load: honest attempts for one that the rate admits")
        ax.set_ylabel("honest attempts denied [%]")
        return finish(ax, title, legend=True)


def trade_off(
    results: Iterable[Result],
    labels: Sequence[str],
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw policies by what they allow an attacker and what they cost honest users; lower left is better.

    Parameters
    ----------
    results
        Runs of one scenario with several policies: across, the most guesses that any attacker gets on one account in a
        day; up, the share of logins, of all groups of users, that were denied at least once.
    labels
        The names of the policies.
    """
    with drawing(ax) as ax:
        groups: list[list[tuple[float, float, str]]] = []
        for result, label, style in zip(results, labels, line_styles(), strict=False):
            guesses = max(float(most) for most in result.attackers["most_a_day"])
            logins, denied = (float(result.users[name].sum()) for name in ("logins", "logins_denied"))
            share = 100 * denied / logins
            ax.plot(guesses, share, style["marker"], color=style["color"], markersize=8, clip_on=False, zorder=3)
            for group in groups:
                # Policies whose points overlap in print share a label.
                if abs(np.log10(group[0][0] / guesses)) < 0.06 and abs(group[0][1] - share) < 5:
                    group.append((guesses, share, label))
                    break
            else:
                groups.append([(guesses, share, label)])
        for group in groups:
            guesses, share, _ = max(group)
            names = "\n".join(label for *_, label in group)
            ax.annotate(names, (guesses, share), (9, 0), textcoords="offset points", va="center", fontsize=9)
        ax.set_xscale("log")
        ax.margins(x=0.3)
        ax.set_ylim(-6, 104)
        ax.set_yticks(range(0, 101, 20))
        ax.set_xlabel("security: guesses on one account in a day, fewer is better")
        ax.set_ylabel("availability: honest logins denied [%]")
        return finish(ax, title, legend=False)


def lines(
    x: Sequence[float],
    columns: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
    log: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw any numbers in the style of the lab, a line with markers for each column.

    Parameters
    ----------
    x
        The positions of the markers.
    columns
        Their heights, by the label of each line.
    xlabel, ylabel
        The labels of the axes, with the unit.
    log
        Which axes are logarithmic: ``"x"``, ``"y"``, ``"xy"``.
    """
    with drawing(ax) as ax:
        for (label, heights), style in zip(columns.items(), line_styles(), strict=False):
            ax.plot(x, heights, label=label, markersize=5, **style)
        if "x" in log:
            ax.set_xscale("log")
        if "y" in log:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        return finish(ax, title, legend=len(columns) > 1)


def report(*results: Result, labels: Sequence[str] | None = None) -> Figure:
    """Draw a report: guesses over time, and below them the attempts of honest users in each result.

    The figure is not managed by pyplot, so it does not have to be closed.
    """
    with styled():
        guessed = [result for result in results if result.attackers.rows]
        honest = [(at, result) for at, result in enumerate(results) if result.users.rows]
        rows = bool(guessed) + len(honest)
        figure = Figure(figsize=(6.6, 3.2 * rows))
        axes = iter(figure.subplots(rows, squeeze=False)[:, 0])
        if guessed:
            of = {} if labels is None else dict(zip(map(id, results), labels, strict=True))
            names = [f"{of[id(result)]}: {kind}" for result in guessed if of for kind in result.attackers["kind"]]
            guesses_over_time(*guessed, labels=names or None, title="Guesses admitted", ax=next(axes))
        for at, result in honest:
            whose = "" if labels is None else f": {labels[at]}"
            honest_over_time(result, title=f"Honest attempts{whose}", ax=next(axes))
    return figure


def _lines(result: Result) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Return the kind of each attacker, and the times and the number of its admitted guesses."""
    length = float(result.run["duration_s"][0])
    starts = result.series["start_s"]
    lines = []
    for at, kind in enumerate(result.attackers["kind"]):
        moments = result.admissions["at_s"][result.admissions["attacker"] == at]
        if len(moments) == result.attackers["guesses"][at]:
            times, counts = moments, np.arange(1, len(moments) + 1)
        else:
            times, counts = np.append(starts[1:], length), np.cumsum(result.series[f"attacker_{at}_admitted"])
        last = counts[-1] if len(counts) else 0
        lines.append((str(kind), np.concatenate([[0], times, [length]]), np.concatenate([[0], counts, [last]])))
    return lines


def _outages(result: Result) -> list[tuple[float, float]]:
    """Return the times without the store, in seconds."""
    outages = result.scenario.to_dict().get("store", {}).get("outages", [])
    begins = [_seconds(outage["at"]) for outage in outages]
    return [(at, at + _seconds(outage["duration"])) for at, outage in zip(begins, outages, strict=True)]


def _seconds(span: float | str) -> float:
    """Return a duration of a valid scenario in seconds; 0 if the core does not accept it as a period."""
    try:
        return Rate(1, span).period.total_seconds()
    except ConfigError:
        return 0.0


def _addresses(result: Result) -> int:
    return int(result.scenario["attackers[0].addresses"])
