"""What the pages of the documentation hold as code, and how it is run.

In README.md each block stands alone. On a page of docs/guides and docs/migrate the blocks of one language are one
script, run in order; a block with a title is a file beside it, which the script may import. A file that is called
test_something must pass under the test runner. A block of text that follows a block of the script is what it prints.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUFFIXES = {"python": ".py", "js": ".mjs", "ts": ".mts"}
# Within the package, so that its own name and its tools resolve as they would for a user who installed both.
FOLDER = ROOT / "build" / "readme"
RUNNERS = {".py": [sys.executable, "-m", "pytest", "-q", "-c", os.devnull], ".mjs": ["node", "--test"]}
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)


@dataclass
class Script:
    """The code of a page in one language."""

    language: str
    code: str = ""
    prints: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def block(language: str, holding: str) -> str:
    """Return the one block of the README in this language that holds a text."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = [body for name, _, body in FENCE.findall(text) if name == language and holding in body]
    assert len(found) == 1, f"README.md has {len(found)} blocks of {language} with {holding!r}"
    return found[0]


def script(page: str, language: str, without: Sequence[str] = ()) -> Script:
    """Return the script of a page in one language, without the sections of these titles."""
    (found,) = [one for one in scripts(ROOT / page, without) if one.language == language]
    return found


def scripts(page: Path, without: Sequence[str] = ()) -> list[Script]:
    """Return the scripts of a page, one for each language that it has code in."""
    sections = re.split(r"^## (.*)\n", page.read_text(encoding="utf-8"), flags=re.M)
    titles, bodies = ["", *sections[1::2]], sections[::2]
    assert set(without) <= set(titles), f"{page} has no section {set(without) - set(titles)}"
    text = "".join(body for title, body in zip(titles, bodies, strict=True) if title not in without)
    found: dict[str, Script] = {}
    latest: Script | None = None
    for language, title, body in FENCE.findall(text):
        if language == "text" and latest:
            latest.prints += body.splitlines()
        if language not in SUFFIXES:
            continue
        script = found.setdefault(language, Script(language))
        latest = None if title else script
        if title:
            script.files[title] = body
        else:
            script.code += body
    return list(found.values())


def empty_folder(name: str = "") -> Path:
    """Make an empty folder for code to run in, where Node finds express as it does for a user."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    express = folder / "node_modules" / "express"
    express.parent.mkdir(parents=True)
    express.symlink_to(ROOT / "node_modules" / "express5")
    return folder


def run(script: Script, folder: Path) -> list[str]:
    """Check the files, run the script, and give the lines that it prints."""
    suffix = SUFFIXES[script.language]
    for name, body in script.files.items():
        (folder / name).write_text(body, encoding="utf-8")
        check(folder / name)
    for name in script.files:
        if name.startswith("test_"):
            printed(RUNNERS[Path(name).suffix] + [name], folder)
    main = folder / f"page{suffix}"
    main.write_text(script.code, encoding="utf-8")
    if suffix == ".mts":
        compile_strictly(main.name, folder)
    return printed([sys.executable if suffix == ".py" else "node", f"page{suffix.replace('.mts', '.mjs')}"], folder)


def check(file: Path) -> None:
    """Fail if the file is no program, without running it."""
    command = {".py": [sys.executable, "-m", "py_compile"], ".mjs": ["node", "--check"]}[file.suffix]
    done = subprocess.run([*command, file.name], cwd=file.parent, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def printed(command: list[str], folder: Path) -> list[str]:
    """Run a command that must succeed, and give the lines that it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def compile_strictly(file: str, folder: Path) -> None:
    """Compile a file of TypeScript as a strict user would."""
    options = ["--ignoreConfig", "--module", "nodenext", "--strict", "--target", "es2023", "--types", "node"]
    # As NestJS has its users set it: it decorates parameters, which the later standard does not.
    options += ["--experimentalDecorators"]
    done = subprocess.run(["npx", "tsc", *options, file], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
