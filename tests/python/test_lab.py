"""Scenarios as objects, results as columns and reports, and bounds without a run."""

from __future__ import annotations

import doctest
import json
import pickle
import subprocess
import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doorkeep import Rule, StrikeRule, presets
from doorkeep.errors import ConfigError
from doorkeep.lab import Attacker, Outage, Policy, Scenario, Store, Users, bounds, compare, run, sweep

MODULES = ["", ".bounds", ".scenario", ".running", ".result", ".table", ".text", ".progress", ".plots", ".style"]
VERTICAL = [Attacker("vertical")]


def per_account(rates: str) -> Scenario:
    return Scenario(policy=[Rule("account", rates, by=["account"])], attackers=VERTICAL)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_lab_run_and_every_public_item_has_a_docstring(name: str) -> None:
    module = import_module(f"doorkeep.lab{name}")
    assert doctest.testmod(module).failed == 0
    for public in module.__all__:
        item = getattr(module, public)
        assert not callable(item) or item.__doc__, public


def test_rules_of_production_are_the_policy() -> None:
    scenario = Scenario(
        policy=[
            presets.login_ip,
            Rule("pair", "5/1m,20/1h", by=["account", "address"], ipv6_prefix=56, secret=b"k" * 32),
            StrikeRule("account", threshold=5, lockout_window=timedelta(minutes=15), by=["account"]),
        ],
        attackers=[Attacker("botnet", addresses=50)],
    )
    assert scenario["policy.rules[1]"] == {
        "name": "pair",
        "rates": "5/1m,20/1h",
        "by": ["account", "address"],
        "ipv6_prefix": 56,
    }
    assert scenario["policy.rules[2].strikes"] == 5
    assert run(scenario).attackers["guesses"].tolist() == [480]


def test_rules_to_forgive_are_named_by_themselves() -> None:
    rule = presets.vault
    policy = Policy([rule], forgive=rule)
    assert policy == Policy([rule], forgive=["vault"])
    forgiven = run(Scenario(policy=policy, users=[Users("typo", logins="10/1h")]))
    counted = run(Scenario(policy=[rule], users=[Users("typo", logins="10/1h")]))
    assert forgiven.users["denied_percent"][0] == 0 < counted.users["denied_percent"][0]


def test_a_store_and_its_outages_are_also_objects() -> None:
    scenario = Scenario(
        policy=Policy(["preset:vault"], replicas=4),
        store=Store(on_error="closed", outages=[Outage("6h", timedelta(hours=1), forgets=True)]),
        attackers=[Attacker("vertical"), Attacker("outage")],
        users=[Users("typo", logins="1/10m")],
        duration="24h",
    )
    result = run(scenario)
    assert result.attackers["guesses"][1] == 0
    assert result.attackers["unavailable"][1] > 0


def test_a_scenario_with_an_unknown_attacker_names_the_field() -> None:
    with pytest.raises(ConfigError, match=r"attackers\[0\].kind: unknown attacker, use vertical, .*value=`wizard`"):
        Scenario(policy=["preset:vault"], attackers=[Attacker("wizard")])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"attackers\[1\].rate: must read like 10/1s"):
        Scenario(policy=["preset:vault"], attackers=[*VERTICAL, Attacker("spray", rate=-1)])
    with pytest.raises(ConfigError, match=r"users\[0\]: unknown field, use kind"):
        Scenario(policy=["preset:vault"], users=[Users("poisson", tries=3)])
    with pytest.raises(ConfigError, match="must hold one of rules, attempt_limiter, .*, found none"):
        Scenario(policy=Policy(), attackers=VERTICAL)
    with pytest.raises(ConfigError, match="nobody attacks and nobody logs in"):
        Scenario(policy=["preset:vault"])
    with pytest.raises(ConfigError, match=r"policy.rules\[0\]: by must say what the rule is keyed by"):
        Scenario(policy=[Rule("a", "1/1m")], attackers=VERTICAL)
    with pytest.raises(ConfigError, match=r"attackers\[0\].rate: .*`nan`"):
        Scenario(policy=["preset:vault"], attackers=[Attacker("vertical", rate=float("nan"))])
    with pytest.raises(ConfigError, match="texts, numbers, truths, lists and mappings"):
        Scenario(policy=["preset:vault"], attackers=[Attacker("vertical", rate=object())])


def test_a_value_that_is_not_a_list_of_parts_is_refused_with_its_field() -> None:
    for wrong in (VERTICAL[0], "vertical", 5):
        with pytest.raises(ConfigError, match="scenario attackers: must be a list"):
            Scenario(policy=["preset:vault"], attackers=wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="scenario users: must be a list"):
            Scenario(policy=["preset:vault"], users=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"scenario policy.rules: must be a list"):
        Scenario(policy=5, attackers=VERTICAL)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"scenario policy.forgive: must be a list"):
        Scenario(policy=Policy(["preset:vault"], forgive=5), attackers=VERTICAL)
    with pytest.raises(ConfigError, match="scenario policy: must hold one of rules, .*, found none"):
        Scenario(policy=Store(on_error="open"), attackers=VERTICAL)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="scenario store.outages: must be a list"):
        Scenario(policy=["preset:vault"], attackers=VERTICAL, store=Store(outages=Outage(1, 2)))  # type: ignore[arg-type]
    assert len(Scenario(policy=["preset:vault"], attackers=iter(VERTICAL)).to_dict()["attackers"]) == 1


def test_a_string_without_a_field_is_not_a_path() -> None:
    for text in ("", "\n", "[policy]\n[run]\n"):
        with pytest.raises(ConfigError, match="scenario line 1, policy: "):
            Scenario.from_toml(text)


def test_a_scenario_is_read_from_a_path_or_from_a_string(tmp_path: Path) -> None:
    text = 'policy.rules = ["preset:vault"]\n[[attackers]]\nkind = "vertical"\n'
    file = tmp_path / "vault.toml"
    file.write_text(text, encoding="utf-8")
    assert Scenario.from_toml(file) == Scenario.from_toml(str(file)) == Scenario.from_toml(text)
    assert Scenario.from_toml(text).to_dict() == {
        "policy": {"rules": ["preset:vault"]},
        "attackers": [{"kind": "vertical"}],
    }
    assert Scenario.from_toml(Scenario.from_toml(text).to_json()) == Scenario.from_toml(text)
    file.write_text(text + "rate = -1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"vault.toml: scenario line 4, attackers\[0\].rate: must read like 10/1s"):
        Scenario.from_toml(file)
    file.write_bytes(b"\xff = 1")
    with pytest.raises(ConfigError, match="vault.toml: a scenario file must be UTF-8"):
        Scenario.from_toml(file)
    with pytest.raises(FileNotFoundError):
        Scenario.from_toml(tmp_path / "none.toml")


def test_a_scenario_is_changed_by_the_path_that_messages_name() -> None:
    scenario = per_account("5/1m")
    changed = scenario.replace({"run.seed": 7, "attackers[0].kind": "botnet", "attackers[0].addresses": np.int64(3)})
    assert (changed["run.seed"], changed["attackers[0]"]) == (7, {"kind": "botnet", "addresses": 3})
    assert scenario.to_dict().get("run", {}) == {}
    assert changed.replace({"attackers[0].addresses": None})["attackers[0]"] == {"kind": "botnet"}
    for path in ("attackers[1].rate", "attackers[x]", "", "policy.rules.name", "attackers[0]..rate", "attackers[9]"):
        with pytest.raises(ConfigError, match=r"path=`"):
            scenario.replace({path: 1})
    with pytest.raises(ConfigError, match=r"attackers\[0\].account"):
        scenario.replace({"attackers[0].account": -1})
    with pytest.raises(KeyError):
        scenario["attackers[1]"]


@pytest.mark.parametrize(("policy", "span", "most"), [("5/1m", "24h", 7204), ("50/1h", 86_400, 1249)])
def test_a_run_reaches_the_bound_exactly(policy: str, span: Any, most: int) -> None:
    assert bounds.max_in(policy, span) == bounds.max_in(policy, timedelta(days=1)) == most
    assert run(per_account(policy)).attackers["guesses"].tolist() == [most]


def test_columns_are_arrays_that_cannot_be_changed() -> None:
    result = run(per_account("5/1m"), seed=3)
    for table in result.tables.values():
        for name in table:
            assert isinstance(table[name], np.ndarray)
            assert len(table[name]) == table.rows
            with pytest.raises(ValueError, match="read-only"):
                table[name][:] = 0
    with pytest.raises(AttributeError, match="cannot be changed"):
        result.scenario = None  # type: ignore[assignment]
    assert result.scenario["run.seed"] == 3


def test_results_travel_between_processes() -> None:
    result = run(per_account("5/1m"))
    copy = pickle.loads(pickle.dumps(result))
    assert copy.to_json() == result.to_json()
    assert copy.scenario == result.scenario
    with pytest.raises(ValueError, match="read-only"):
        copy.attackers["guesses"][0] = 0


def test_columns_become_frames() -> None:
    result = run(per_account("5/1m"))
    assert result.to_pandas().loc[0, ["kind", "guesses"]].tolist() == ["vertical", 7204]
    assert result.to_polars().row(0, named=True)["guesses"] == 7204
    assert result.to_polars("series").height == len(result.to_pandas("series")) == 96
    tables = json.loads(result.to_json())
    assert tables["attackers"]["first_locked_s"] == [None]
    assert tables["attackers"]["guesses"] == [7204]


def test_a_report_reads_as_text_and_as_html() -> None:
    scenario = Scenario(policy=["preset:vault"], attackers=VERTICAL, users=[Users("typo", logins="1/1h")])
    result = run(scenario)
    lines = str(result).splitlines()
    assert lines[0] == "1d on a virtual clock"
    assert [line.split() for line in lines if line.startswith("guesses admitted")] == [["guesses", "admitted", "480"]]
    assert "users: typo" in str(result)
    assert "<td" in result._repr_html_()
    assert repr(result).startswith("Result(attackers=['vertical'], users=['typo'], events=")
    assert str(result.attackers).splitlines()[2].split()[0] == "vertical"


def test_results_are_compared_side_by_side() -> None:
    both = compare(run(per_account("5/1m")), run(per_account("50/1h")), labels=["minute", "hour"])
    (line,) = [line.split() for line in str(both).splitlines() if line.startswith("guesses admitted")]
    assert line == ["guesses", "admitted", "7,204", "1,249"]
    assert "minute" in both._repr_html_()
    with pytest.raises(ValueError, match="one label for each"):
        compare()
    with pytest.raises(ValueError, match="one label for each"):
        compare(both.results[0], labels=["a", "b"])


def test_a_sweep_runs_a_scenario_for_each_value() -> None:
    rules = [Rule("pair", "5/1m,20/1h", by=["account", "address"]), Rule("account", "100/1h", by=["account"])]
    results = sweep(Scenario(policy=rules, attackers=[Attacker("botnet")]), "attackers[0].addresses", [1, 5, 6])
    found = [int(result.attackers["guesses"][0]) for result in results]
    assert found == [bounds.botnet("5/1m,20/1h", "100/1h", addresses, "24h") for addresses in (1, 5, 6)]


def test_bounds_name_the_wrong_argument() -> None:
    for ask, message in [
        (lambda: bounds.max_in("5/1x", "1h"), "rate=`5/1x`"),
        (lambda: bounds.honest_denial(0, 1), "burst"),
        (lambda: bounds.opened(1, bits=0), "bits"),
        (lambda: bounds.table(""), "rate"),
    ]:
        with pytest.raises(ConfigError, match=message):
            ask()


ALONE = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
{code}
"""


def without(blocked: set[str], code: str) -> str:
    """Return the output of a fresh interpreter in which some packages are not installed."""
    command = [sys.executable, "-c", ALONE.format(blocked=blocked, code=code)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_without_numpy_bounds_work_and_a_run_says_what_to_install() -> None:
    code = """
from doorkeep import lab
print(lab.bounds.max_in("5/1m", "24h"))
lab.Scenario(policy=["preset:vault"], attackers=[lab.Attacker("vertical")])
try:
    lab.run
except ImportError as error:
    print(error)
"""
    message = 'a run of doorkeep.lab needs numpy, install it with: pip install "doorkeep[lab]"'
    assert without({"numpy", "matplotlib", "tqdm"}, code) == f"7204\n{message}"


def test_without_matplotlib_only_plots_are_missing() -> None:
    code = """
from doorkeep import lab
print(lab.run(lab.Scenario(policy=["preset:vault"], attackers=[lab.Attacker("vertical")])).run.rows)
try:
    lab.plots
except ImportError as error:
    print(error)
"""
    message = 'a plot of doorkeep.lab needs matplotlib, install it with: pip install "doorkeep[lab]"'
    assert without({"matplotlib", "tqdm"}, code) == f"1\n{message}"


def test_frames_say_what_to_install() -> None:
    code = """
from doorkeep import lab
result = lab.run(lab.Scenario(policy=["preset:vault"], attackers=[lab.Attacker("vertical")]))
for frame in (result.to_pandas, result.to_polars):
    try:
        frame()
    except ImportError as error:
        print(error)
"""
    message = '{0} needs {1}, install it with: pip install "{1}"'
    expected = [message.format("to_pandas", "pandas"), message.format("to_polars", "polars")]
    assert without({"pandas", "polars"}, code).splitlines() == expected


def test_the_command_line_also_says_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "vault.toml"
    file.write_text('policy.rules = ["preset:vault"]\nattackers = [{ kind = "vertical" }]\n', encoding="utf-8")
    code = f"""
import contextlib, io
from doorkeep.lab.__main__ import main
printed = io.StringIO()
with contextlib.redirect_stderr(printed):
    print(main(["run", {str(file)!r}]))
print(printed.getvalue().strip())
print(main(["bounds", "5/1m"]))
"""
    lines = without({"numpy", "matplotlib", "tqdm"}, code).splitlines()
    assert lines[0] == "2"
    assert lines[1].endswith('a run of doorkeep.lab needs numpy, install it with: pip install "doorkeep[lab]"')
    assert lines[-1] == "0"


def test_importing_the_package_does_not_import_the_lab_and_the_lab_not_numpy() -> None:
    code = "import doorkeep; print([name for name in sys.modules if 'lab' in name.split('.')])"
    assert without(set(), code) == "[]"
    code = "import doorkeep.lab; print({'numpy', 'matplotlib', 'tqdm'} & set(sys.modules))"
    assert without(set(), code) == "set()"
