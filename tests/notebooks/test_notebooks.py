"""The notebooks run as they stand, from a fresh kernel each, and the scenario files beside them run too.

With DOORKEEP_NOTEBOOKS set to a folder the executed notebooks are written there, with their figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SCENARIOS = sorted((FOLDER / "scenarios").glob("*.toml"))

# What the kernel and its sockets say about themselves is no concern of a notebook.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::ResourceWarning"
)


def by_name(path: Path) -> str:
    return path.stem


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def test_there_are_six() -> None:
    assert [path.stem[0] for path in NOTEBOOKS] == list("123456")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_a_notebook_runs_and_draws_at_least_two_figures(path: Path) -> None:
    notebook = read(path)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    # Nothing is warned of; only a slow machine shows the bar of a run.
    assert [output.text for output in outputs if output.output_type == "stream" and "\rlab" not in output.text] == []
    if folder := os.environ.get("DOORKEEP_NOTEBOOKS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, Path(folder) / path.name)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_a_notebook_opens_with_its_question_and_closes_with_what_may_be_concluded(path: Path) -> None:
    cells = read(path).cells
    assert cells[0].cell_type == cells[-1].cell_type == "markdown"
    assert "**Question.**" in cells[0].source
    assert "## What you may conclude\n" in cells[-1].source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    # They follow from the code; kept, each change of a number would bury what has changed.
    for cell in read(path).cells:
        assert cell.cell_type == "markdown" or (cell.outputs, cell.execution_count) == ([], None)


@pytest.mark.parametrize("path", SCENARIOS, ids=by_name)
def test_a_scenario_file_runs(path: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "doorkeep.lab",
        "run",
        str(path),
        "--no-progress",
        "--plot",
        str(tmp_path / "a.png"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "guesses admitted" in done.stdout
    assert (tmp_path / "a.png").stat().st_size > 10_000
