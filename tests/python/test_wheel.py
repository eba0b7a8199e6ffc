"""The built wheel, as a user installs it: plain pip into an empty environment.

Needs the path of a wheel in the environment variable DOORKEEP_WHEEL, and fails without it: an untested wheel must not
look tested. Run it with ``-m wheel``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel
USE = """
import sys
from doorkeep import AttemptLimiter, Outcome, Rule, Limiter
strikes = AttemptLimiter(threshold=2, lockout_window="15m")
assert [strikes.attempt("ann") for _ in range(3)] == [Outcome.ALLOWED, Outcome.ALLOWED_LAST_ATTEMPT, Outcome.DENIED]
assert Limiter().decide(Rule("login", "5/1m").key("ann")).remaining == 4
print(sys.modules["doorkeep"].__file__)
"""


@pytest.fixture
def wheel() -> Path:
    named = os.environ.get("DOORKEEP_WHEEL")
    assert named, "DOORKEEP_WHEEL must name the wheel to test; build one with: maturin build --release"
    path = Path(named)
    assert path.is_file(), f"DOORKEEP_WHEEL names no file: {path}"
    return path


def test_the_wheel_installs_with_plain_pip_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([python, "-m", "pip", "install", "--no-index", "--quiet", wheel], check=True, env=clean)
    used = subprocess.run([python, "-c", USE], check=True, env=clean, cwd=tmp_path, capture_output=True, text=True)
    assert str(tmp_path) in used.stdout
    listed = subprocess.run([python, "-m", "pip", "check"], check=True, env=clean, capture_output=True, text=True)
    assert "No broken requirements" in listed.stdout


def test_the_wheel_has_types_and_license_and_no_build_paths(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert "doorkeep/py.typed" in names
        assert "doorkeep/_native.pyi" in names
        assert any(name.endswith("licenses/LICENSE") for name in names)
        (notices,) = [name for name in names if name.endswith("licenses/THIRD-PARTY-NOTICES")]
        assert "pyo3" in archive.read(notices).decode()
        assert not [name for name in names if "__pycache__" in name or name.endswith((".rs", ".toml"))]


def test_the_wheel_supports_every_python_from_3_10_and_is_small(wheel: Path) -> None:
    assert "-cp310-abi3-" in wheel.name
    assert wheel.stat().st_size <= 4 * 2**20
