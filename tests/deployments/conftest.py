"""Starts the programs of the pages and the examples, each once for every deployment that a test file is about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# For the code on the pages, which the tests of the pages extract.
sys.path.insert(0, str(HERE.parent / "readme"))

pytest.register_assert_rewrite("expecting")

from service import Service, serving  # noqa: E402


@pytest.fixture(scope="module")
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """Give a program that runs: the parameter is the program and its deployment."""
    with serving(*request.param) as made:
        yield made
