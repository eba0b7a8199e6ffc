"""The code on the pages of the documentation runs as it stands, and prints what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import ROOT, Script, empty_folder, run, scripts

PAGES = sorted([*(ROOT / "docs" / "guides").glob("*.md"), *(ROOT / "docs" / "migrate").glob("*.md")])
SCRIPTS = [
    pytest.param(page, script, id=f"{page.stem}-{script.language}") for page in PAGES for script in scripts(page)
]


@pytest.mark.parametrize(("page", "script"), SCRIPTS)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page: Path, script: Script) -> None:
    assert run(script, empty_folder(f"{page.stem}-{script.language}")) == script.prints
