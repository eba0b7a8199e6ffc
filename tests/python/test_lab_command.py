"""``python -m doorkeep.lab``: its output and its errors."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """\
[policy]
rules = ["preset:vault"]

[[attackers]]
kind = "vertical"

[[users]]
kind = "typo"
logins = "1/1h"
"""


def lab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "doorkeep.lab", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def printed(*arguments: str | Path) -> str:
    done = lab(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def refused(*arguments: str | Path) -> str:
    done = lab(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "vault.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    return file


def test_run_prints_a_report(scenario: Path) -> None:
    lines = [line.split() for line in printed("run", scenario).splitlines()]
    assert ["guesses", "admitted", "480"] in lines
    assert (
        printed("run", scenario) == printed("run", scenario, "--seed", "1") != printed("run", scenario, "--seed", "2")
    )


def test_run_prints_json_and_csv(scenario: Path) -> None:
    tables = json.loads(printed("run", scenario, "--json"))
    assert tables["attackers"]["guesses"] == [480]
    (row,) = csv.DictReader(io.StringIO(printed("run", scenario, "--csv")))
    assert (row["kind"], row["guesses"]) == ("vertical", "480.0")
    rows = list(csv.DictReader(io.StringIO(printed("run", scenario, "--csv", "series"))))
    assert len(rows) == 96


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_run_draws_the_same_figure_each_time(scenario: Path, tmp_path: Path, ending: str, begins: bytes) -> None:
    figures = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for figure in figures:
        printed("run", scenario, "--plot", figure)
    first, second = (figure.read_bytes() for figure in figures)
    assert first.startswith(begins)
    assert first == second


def test_compare_prints_both_side_by_side(scenario: Path, tmp_path: Path) -> None:
    other = tmp_path / "stig.toml"
    other.write_text(SCENARIO.replace("vault", "stig"), encoding="utf-8")
    figure = tmp_path / "both.png"
    lines = [line.split() for line in printed("compare", scenario, other, "--plot", figure).splitlines()]
    assert ["guesses", "admitted", "480", "288"] in lines
    assert figure.exists()


def test_bounds_prints_what_policies_admit() -> None:
    out = printed("bounds", "5/1m,50/1h", "--strikes", "5/15m", "--fixed-window", "100/1m")
    lines = [line.split() for line in out.splitlines()]
    assert ["24h", "1,249", "1,249", "12.06", "%"] in lines
    assert ["24h", "480", "384", "8.50", "%"] in lines
    assert any(line[:2] == ["24h", "144,000"] for line in lines)


def test_help_shows_how_to_begin() -> None:
    assert 'bounds "5/1m,50/1h"' in printed("--help")
    for command in ("run", "compare", "bounds"):
        assert "usage: python -m doorkeep.lab " + command in printed(command, "--help")


def test_an_error_is_one_line(scenario: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(SCENARIO.replace('"vertical"', '"wizard"'), encoding="utf-8")
    begin = "python -m doorkeep.lab: "
    assert refused("run", bad).startswith(f"{begin}{bad}: scenario line 5, attackers[0].kind: unknown attacker, use")
    assert refused("run", tmp_path / "none.toml") == f"{begin}{tmp_path / 'none.toml'}: No such file or directory\n"
    assert refused("compare", scenario) == f"{begin}compare takes at least two scenario files\n"
    assert refused("bounds") == f'{begin}bounds takes at least one policy, such as "5/1m,50/1h" or --strikes 5/15m\n'
    assert refused("bounds", "5/0m").startswith(f"{begin}rate ")
    assert refused("run", scenario, "--seed", "-1").startswith(f"{begin}scenario run.seed: must be a whole number")
    assert "--csv: not allowed with argument --json" in refused("run", scenario, "--json", "--csv")
    assert "invalid int value: 'x'" in refused("run", scenario, "--seed", "x")
    assert "required: COMMAND" in refused()
    for figure in (tmp_path / "a.doc", tmp_path / "none" / "a.png"):
        done = lab("run", scenario, "--plot", figure)
        assert done.returncode == 2
        assert done.stderr.startswith(f"{begin}{figure}: ")
        assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_closes_the_output_early_causes_no_error(scenario: Path) -> None:
    command = ["bash", "-o", "pipefail", "-c", '"$0" -m doorkeep.lab run "$1" --json | head -c 1']
    done = subprocess.run([*command, sys.executable, scenario], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{", "")


def test_every_file_is_read_before_the_first_run(scenario: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.toml"
    long.write_text('run.duration = "3000d"\n' + SCENARIO.replace('"vertical"', '"vertical"\nrate = 1000'), "utf-8")
    assert "No such file" in refused("compare", long, tmp_path / "none.toml")


def test_ctrl_c_prints_the_results_so_far(tmp_path: Path) -> None:
    long = tmp_path / "long.toml"
    long.write_text('run.duration = "3000d"\n' + SCENARIO.replace('"vertical"', '"vertical"\nrate = 1000'), "utf-8")
    command = [sys.executable, "-u", "-m", "doorkeep.lab", "run", str(long)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    assert b"lab" in child.stderr.read(8)  # the bar is there, so it runs
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"interrupted: what follows is a part of the run" in out
    assert b"guesses admitted" in out
