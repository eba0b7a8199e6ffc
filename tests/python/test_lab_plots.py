"""Figures: they draw the values of the columns, with units, as the same bytes each time, and on any axes."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from doorkeep import Rule
from doorkeep.lab import Attacker, Outage, Policy, Result, Scenario, Store, Users, bounds, plots, run, sweep
from doorkeep.lab.style import COLOURS

POLICY = [Rule("account", "5/1m,50/1h", by=["account"])]


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def attacked(policy: Policy | list[Rule] = POLICY, record: int | None = None, **attacker: object) -> Result:
    kind = attacker.pop("kind", "vertical")
    users = [Users("typo", logins="1/1h")]
    return run(Scenario(policy=policy, attackers=[Attacker(kind, **attacker)], users=users, record=record))  # type: ignore[arg-type]


def png(ax: Axes) -> bytes:
    file = BytesIO()
    ax.figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def everything() -> dict[str, Axes]:
    result = attacked(record=2000)
    return {
        "guesses_over_time": plots.guesses_over_time(result, bound="5/1m,50/1h", title="a"),
        "honest_over_time": plots.honest_over_time(result),
        "honest_denial_by_load": plots.honest_denial_by_load([5, 20], [0.5, 1, 1.5], runs=[(5, 1, result)]),
        "admission_by_addresses": plots.admission_by_addresses(
            sweep(result.scenario.replace({"attackers[0].kind": "botnet"}), "attackers[0].addresses", [1, 10])
        ),
        "lines": plots.lines([1, 10], {"a": [2, 3], "b": [0, 1]}, xlabel="days", ylabel="share [%]", log="x"),
        "trade_off": plots.trade_off([result], ["ours"]),
    }


def test_every_figure_labels_its_axes_with_their_units() -> None:
    labels = {name: (ax.get_xlabel(), ax.get_ylabel()) for name, ax in everything().items()}
    security = "security: guesses on one account in a day, fewer is better"
    assert labels == {
        "guesses_over_time": ("time since the start [h]", "guesses admitted, in all"),
        "honest_over_time": ("time since the start [h]", "honest attempts in 15m"),
        "honest_denial_by_load": (
            "load: honest attempts for one that the rate admits",
            "honest attempts denied [%]",
        ),
        "admission_by_addresses": ("addresses of the attacker", "guesses admitted in 1d"),
        "lines": ("days", "share [%]"),
        "trade_off": (security, "availability: honest logins denied [%]"),
    }
    assert set(labels) | {"report", "save", "styled"} == set(plots.__all__)


def test_every_figure_is_the_same_bytes_each_time_whatever_the_style_of_the_user() -> None:
    first = {name: png(ax) for name, ax in everything().items()}
    with mpl.rc_context({"lines.linewidth": 9, "axes.grid": False, "font.size": 30}):
        before = dict(mpl.rcParams)
        second = everything()
        assert dict(mpl.rcParams) == before
    assert {name: png(ax) for name, ax in second.items()} == first


def test_figures_are_drawn_on_the_axes_that_are_passed() -> None:
    mine = pyplot.subplots()[1]
    result = attacked()
    assert plots.guesses_over_time(result, ax=mine) is mine
    assert plots.honest_over_time(result, ax=mine) is mine
    assert plots.trade_off([result], ["a"], ax=mine) is mine
    assert len(pyplot.get_fignums()) == 1


def test_recorded_guesses_are_drawn_at_their_times_and_never_above_the_bound() -> None:
    ax = plots.guesses_over_time(attacked(record=2000), bound="5/1m,50/1h")
    exact, most = ax.get_lines()
    hours, counts = exact.get_data()
    moments = [bounds.admitted_at("5/1m,50/1h", guess) / 3600 for guess in range(1, 1250)]
    np.testing.assert_array_equal(hours[1:-1], moments)
    at_bound = np.interp(most.get_xdata(), hours, counts, right=counts[-1])
    assert (np.diff(most.get_ydata()) >= 0).all()
    assert counts[-1] == most.get_ydata()[-1] == 1249 or most.get_ydata()[-1] == 1250
    assert (at_bound <= np.asarray(most.get_ydata()) + 1).all()


def test_guesses_that_were_not_recorded_are_as_fine_as_the_series() -> None:
    (line,) = plots.guesses_over_time(attacked()).get_lines()
    assert len(line.get_xdata()) == 98
    assert line.get_ydata()[-1] == 1249


def test_times_without_the_store_are_shaded() -> None:
    store = Store(outages=[Outage("6h", "30m"), Outage(43_200, 3600)])
    scenario = Scenario(policy=POLICY, attackers=[Attacker("vertical")], store=store)
    ax = plots.guesses_over_time(run(scenario))
    assert [(patch.get_x(), patch.get_width()) for patch in ax.patches] == [(6, 0.5), (12, 1)]
    at_once = scenario.replace({"store.outages[0].at": "0s"})
    assert plots.guesses_over_time(run(at_once)).patches[0].get_x() == 0


def test_lines_are_distinguishable_without_colour() -> None:
    ax = plots.guesses_over_time(attacked(), attacked(kind="low-and-slow"), labels=["greedy", "quiet"])
    assert len({line.get_linestyle() + str(line._unscaled_dash_pattern) for line in ax.get_lines()}) == 2
    assert len(set(COLOURS)) == 7
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["greedy", "quiet"]


def test_a_trade_off_has_a_labelled_point_for_each_policy() -> None:
    results = [attacked(), attacked([Rule("account", "5/1h", by=["account"])])]
    ax = plots.trade_off(results, ["wide", "tight"])
    assert [text.get_text() for text in ax.texts] == ["wide", "tight"]
    points = [float(line.get_xdata()[0]) for line in ax.get_lines()]
    assert points == [1249, bounds.max_in("5/1h", "24h")]


def test_a_report_has_a_panel_for_guesses_and_one_for_honest_users() -> None:
    result = attacked()
    assert [ax.get_title("left") for ax in plots.report(result).axes] == ["Guesses admitted", "Honest attempts"]
    both = plots.report(result, result, labels=["a", "b"])
    assert [ax.get_title("left") for ax in both.axes] == [
        "Guesses admitted",
        "Honest attempts: a",
        "Honest attempts: b",
    ]
    only = run(Scenario(policy=POLICY, users=[Users("typo")]))
    assert [ax.get_title("left") for ax in plots.report(only).axes] == ["Honest attempts"]
    assert pyplot.get_fignums() == []


def test_a_figure_that_was_saved_twice_is_the_same_file(tmp_path: Path) -> None:
    for ending in ("png", "svg", "pdf"):
        for name in "ab":
            plots.save(plots.report(attacked()), tmp_path / f"{name}.{ending}")
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
