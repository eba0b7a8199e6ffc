"""The lab: try an attack on a policy before it is shipped.

A scenario describes a policy, attackers and honest users. A run uses the limiters of production on a virtual clock, and
returns columns. The same seed gives the same result in every language.

>>> from doorkeep import presets
>>> from doorkeep.lab import Attacker, Scenario, Users, run
>>> scenario = Scenario(
...     policy=[presets.login_ip, presets.login_account],
...     attackers=[Attacker("botnet", addresses=50)],
...     users=[Users("typo", logins="2/1d")],
... )
>>> int(run(scenario, seed=1).attackers["guesses"][0])
99

`bounds` computes what needs no run, and requires only doorkeep. Runs need NumPy and plots matplotlib: ``pip install
"doorkeep[lab]"``. On the command line: ``python -m doorkeep.lab --help``.

Validates nothing and contains no numbers: fields, defaults and messages are the core's. Invariant: ``import doorkeep``
does not import it. Tested in `tests/python/test_lab.py`, `test_lab_command.py` and `test_lab_plots.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doorkeep.lab import bounds
from doorkeep.lab.scenario import Attacker, Outage, Policy, Scenario, Store, Users

if TYPE_CHECKING:
    from doorkeep.lab import plots
    from doorkeep.lab.result import Comparison, Result, compare
    from doorkeep.lab.running import run, sweep
    from doorkeep.lab.table import Table

__all__ = [
    "Attacker",
    "Comparison",
    "Outage",
    "Policy",
    "Result",
    "Scenario",
    "Store",
    "Table",
    "Users",
    "bounds",
    "compare",
    "plots",
    "run",
    "sweep",
]

# Modules that need NumPy are imported on first use, so that bounds work without it.
_WAITING = {
    "Comparison": "doorkeep.lab.result",
    "Result": "doorkeep.lab.result",
    "Table": "doorkeep.lab.table",
    "compare": "doorkeep.lab.result",
    "run": "doorkeep.lab.running",
    "sweep": "doorkeep.lab.running",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "plots":
        return import_module("doorkeep.lab.plots")
    if name not in _WAITING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_WAITING[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
