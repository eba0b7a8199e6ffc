"""What `import doorkeep` imports, in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

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


def test_the_examples_of_the_package_run() -> None:
    import doctest

    import doorkeep
    from doorkeep import _keys

    for module in (doorkeep, _keys):
        results = doctest.testmod(module)
        assert results.failed == 0
        assert results.attempted >= 3
