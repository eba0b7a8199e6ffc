"""Every sentence of the README and the guides that promises something names the tests that fail if it becomes false.

`promises.json` lists the sentences. A sentence with a word such as "never" or "exactly" must be listed, as a promise or
as one of the sentences that promise nothing about doorkeep, such as advice. Knows nothing of what is promised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LISTED = json.loads((Path(__file__).parent / "promises.json").read_text())
PROMISES: list[dict[str, Any]] = LISTED["promises"]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guides").glob("*.md"))]

WORDS = "never|always|exact|exactly|at most|cannot|nothing|nobody|whatever|the same bytes"
STRONG = re.compile(rf"\b({WORDS})\b", re.IGNORECASE)
DEFINED = {".py": "def {}(", ".rs": "fn {}(", ".mjs": "{}", ".json": '"name":"{}"'}


def plain(text: str) -> str:
    """Text without the marks of its formatting, on one line."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(text.replace("`", "").replace("*", "").split())


def sentences(page: Path) -> Iterator[str]:
    """The sentences of a page, its code and its tables aside."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ *[|#].*$|^    .*$", "\n", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[*-]|\d\.) )", text):
        yield from re.split(r"(?<=[.:!?]) (?=[A-Z(`\d])", plain(paragraph))


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise["says"][:60])
def test_a_promise_is_on_its_page_and_its_tests_exist(promise: dict[str, Any]) -> None:
    assert plain(promise["says"]) in plain((ROOT / promise["page"]).read_text())
    assert promise["tests"]
    for named in promise["tests"]:
        path, _, name = named.partition("::")
        written = re.sub(r"\s+", " ", (ROOT / path).read_text())
        assert DEFINED[Path(path).suffix].format(name) in written.replace('"name": "', '"name":"'), named


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_sentence_that_sounds_like_a_promise_is_listed(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    listed = [plain(promise["says"]) for promise in PROMISES if promise["page"] == name]
    listed += map(plain, LISTED["no_promise"].get(name, []))
    unlisted = [
        sentence
        for sentence in sentences(page)
        if STRONG.search(sentence) and not any(one in sentence or sentence in one for one in listed)
    ]
    assert not unlisted, f"{name}: list in tests/promises/promises.json:\n" + "\n".join(unlisted)
