"""Several interpreters in one process, as in mod_wsgi with several sites: only one of them can use doorkeep."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

# mod_wsgi makes `legacy` interpreters, which share the GIL and may load any module.
BEGIN = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters
    def create(): return _interpreters.create("legacy")
else:
    import _xxsubinterpreters as _interpreters
    def create(): return _interpreters.create(isolated=False)

def run(interpreter, code):
    # Raises up to 3.12, returns what was raised from 3.13 on.
    raised = _interpreters.run_string(interpreter, f"import sys; sys.path[:] = {sys.path!r}\\n{code}")
    assert raised is None, raised
"""
REFUSED = """
try:
    import doorkeep
except ImportError as error:
    print(type(error).__name__, error, flush=True)
else:
    print("imported", flush=True)
"""
USED = """
import doorkeep
limiter = doorkeep.AttemptLimiter(threshold=1, lockout_window="15m")
limiter.attempt("ann")
print(limiter.attempt("ann") is doorkeep.Outcome.DENIED, flush=True)
"""
SAID = (
    "ImportError doorkeep is in use by another interpreter of this process: under mod_wsgi, run each site in a daemon "
    "process of its own, with `WSGIApplicationGroup %{GLOBAL}` or `application-group=%{GLOBAL}`"
)


@pytest.fixture
def printed() -> Callable[[str], list[str]]:
    """Return a function that runs code in its own process, and returns the lines that it prints."""

    def run(code: str) -> list[str]:
        done = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


def test_a_second_interpreter_is_refused_each_time_with_the_remedy(printed: Callable[[str], list[str]]) -> None:
    twice = f"second = create()\nrun(second, {REFUSED!r})\nrun(second, {REFUSED!r})\n"
    assert printed(f"import doorkeep\n{twice}run(create(), {REFUSED!r})") == [SAID] * 3


def test_the_first_interpreter_still_works_after_a_second_was_refused(printed: Callable[[str], list[str]]) -> None:
    assert printed(f"{USED}run(create(), {REFUSED!r})\n{USED}") == ["True", SAID, "True"]


def test_the_first_interpreter_need_not_be_the_main_one(printed: Callable[[str], list[str]]) -> None:
    assert printed(f"run(create(), {USED!r})\n{REFUSED}") == ["True", SAID]


def test_the_same_interpreter_may_import_it_again(printed: Callable[[str], list[str]]) -> None:
    forget = "for name in [name for name in sys.modules if name.startswith('doorkeep')]: del sys.modules[name]\n"
    assert printed(f"{REFUSED}{forget}{REFUSED}") == ["imported"] * 2
