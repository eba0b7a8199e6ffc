"""Runs scenarios.

Validates nothing: takes a scenario as a string and returns columns. Invariant: an interrupted run returns its results
so far. Tested in `tests/python/test_lab_running.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from doorkeep._native import lab_run
from doorkeep.lab.progress import Bar
from doorkeep.lab.result import Result
from doorkeep.lab.scenario import Scenario
from doorkeep.lab.table import Table

__all__ = ["run", "sweep"]

Progress = Callable[[int, float], object]


def run(scenario: Scenario, *, seed: int | None = None, progress: bool | Progress | None = None) -> Result:
    """Run a scenario over the limiters of production, on a virtual clock.

    Does not hold the GIL, so other threads continue. A few million attempts take a second.

    Parameters
    ----------
    scenario
        The scenario to run.
    seed
        Replaces the seed of the scenario; 0 to 2^53. The same seed gives the same result in every language.
    progress
        By default a bar, once a run takes more than two seconds. ``False``: no bar. A function is called every 65,536
        attempts, or points in time without attempts, with the attempts so far and the share of the run that is done (0
        to 1); if it returns ``False``, the run ends.

    Returns
    -------
    Result
        Ctrl-C does not raise: it ends the run, and the result has the numbers so far and is ``interrupted``.

    Raises
    ------
    ConfigError
        The seed is out of its bounds.

    Examples
    --------
    >>> from doorkeep.lab import Attacker
    >>> scenario = Scenario(policy=["preset:vault"], attackers=[Attacker("vertical")], duration="1h")
    >>> float(run(scenario).attackers["guesses"][0])
    20.0
    """
    if seed is not None:
        scenario = scenario.replace({"run.seed": seed})
    if callable(progress):
        return _run(scenario, progress)
    if progress is False:
        return _run(scenario, None)
    with Bar() as bar:
        return _run(scenario, bar)


def sweep(
    scenario: Scenario, path: str, values: Iterable[Any], *, seed: int | None = None, progress: bool | None = None
) -> list[Result]:
    """Run a scenario once for each value of one field.

    Parameters
    ----------
    scenario
        The common scenario.
    path
        The field, as in error messages: ``attackers[0].addresses``.
    values
        The values to set.
    seed, progress
        As for `run`.

    Returns
    -------
    list of Result
        One for each value. After an interrupt, the last result is partial and others are missing.

    Examples
    --------
    >>> from doorkeep.lab import Attacker
    >>> scenario = Scenario(policy=["preset:login-account-ip"], attackers=[Attacker("botnet")])
    >>> [int(result.attackers["guesses"][0]) for result in sweep(scenario, "attackers[0].addresses", [1, 10])]
    [79, 790]
    """
    results = []
    for changed in [scenario.replace({path: value}) for value in values]:
        results.append(run(changed, seed=seed, progress=progress))
        if results[-1].interrupted:
            break
    return results


def _run(scenario: Scenario, progress: Progress | None) -> Result:
    tables = lab_run(scenario.to_json(), progress)
    return Result(scenario, {name: Table.of(columns) for name, columns in tables.items()})
