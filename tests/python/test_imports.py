"""What `import doorkeep` imports, in a fresh interpreter."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SHOW = "import sys; import {}; print(*[name.split('.')[0] for name in sys.modules])"


def modules(name: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SHOW.format(name)], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["doorkeep", "doorkeep.aio", "doorkeep.errors"])
def test_importing_the_package_imports_no_framework(name: str) -> None:
    frameworks = {"fastapi", "starlette", "pydantic", "django", "rest_framework", "numpy", "pytest", "asyncio"}
    frameworks |= {"prometheus_client", "opentelemetry"}
    assert not modules(name) & frameworks


def test_importing_the_package_imports_no_slow_module_of_the_standard_library() -> None:
    assert not modules("doorkeep") & {"typing", "inspect", "re", "logging", "dataclasses", "contextlib", "warnings"}


def test_every_public_item_has_a_docstring() -> None:
    import doorkeep
    from doorkeep import aio, errors

    for module in (doorkeep, aio, errors):
        assert module.__doc__
        for name in module.__all__:
            item = getattr(module, name)
            assert item.__doc__, f"{module.__name__}.{name}"
            for method in (part for part in dir(item) if isinstance(item, type) and not part.startswith("_")):
                if getattr(item, method).__doc__ is None and issubclass(item, BaseException | int):
                    continue
                assert getattr(item, method).__doc__, f"{module.__name__}.{name}.{method}"


def test_no_docstring_begins_with_a_word_that_only_this_project_would_use() -> None:
    import doorkeep
    from doorkeep import _native

    def written() -> Iterator[str | None]:
        for file in Path(doorkeep.__file__).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield ast.get_docstring(node)
        for item in vars(_native).values():
            yield from (getattr(part, "__doc__", None) for part in (item, *getattr(item, "__dict__", {}).values()))

    # To give back is what this package calls it.
    odd = re.compile(r"(Says?|Tells?|Holds?|Judges?|Mends?|Gives?(?!.* back))\b")
    found = [text.splitlines()[0] for text in written() if text]
    assert len(found) > 500
    assert [line for line in found if odd.match(line)] == []


def test_the_examples_of_the_package_run() -> None:
    import doctest

    import doorkeep
    from doorkeep import _keys

    for module in (doorkeep, _keys):
        results = doctest.testmod(module)
        assert results.failed == 0
        assert results.attempted >= 3
