"""Runs django-axes' own tests with our handler in the place of its cache handler. README.md here says how.

Fails when anything but the differences below fails, and when one of them is none any more. Nothing of django-axes is
kept here: its folder is put on the path, the handler takes its place at run time, and each test begins with a limiter
of its own.
"""

from __future__ import annotations

import os
import sys
import types
import unittest
from pathlib import Path
from typing import Any, ClassVar

# What asks a handler. Those of its database handler are left out: they look at rows.
LABELS = [
    "test_handlers.AxesCacheHandlerTestCase",
    "test_handlers.ResetAttemptsCacheHandlerTestCase",
    "test_handlers.AxesProxyHandlerTestCase",
    "test_login.CacheLoginTestCase",
    "test_backends",
    "test_decorators",
    "test_middleware",
    "test_signals",
]

# Tests that must fail, and why.
_WORDS = "it looks at the words of a line in the other handler's log"
_CACHE = "it looks into the cache, where nothing is kept"
DIFFERENCES = {
    "AxesCacheHandlerTestCase.test_empty_request": _WORDS,
    "AxesCacheHandlerTestCase.test_whitelist": _WORDS,
    "AxesCacheHandlerTestCase.test_user_login_failed_only_user_failures_with_none_username": _WORDS,
    "AxesCacheHandlerTestCase.test_user_login_failed_with_none_username": _CACHE,
    "CacheLoginTestCase.test_lockout_by_only_user_failures": _CACHE,
    "CacheLoginTestCase.test_reset_on_success_false": _CACHE,
    "CacheLoginTestCase.test_reset_on_success_true": _CACHE,
    "CacheLoginTestCase.test_login_during_lockout_does_reset_cool_off_time": "hammering does not extend a lockout",
}


def main() -> int:
    given = os.environ.get("DOORKEEP_FOREIGN_AXES")
    if not given:
        print("skipped: DOORKEEP_FOREIGN_AXES names no unpacked django-axes")
        return 0
    folder = Path(given).resolve()
    if not (folder / "tests" / "test_handlers.py").is_file():
        print(f"DOORKEEP_FOREIGN_AXES holds no tests of django-axes: {folder}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(folder))
    return 0 if judged(run()) else 1


def run() -> unittest.TestResult:
    install_settings()
    import django

    django.setup()
    from axes.handlers import cache
    from django.test.runner import DiscoverRunner

    from doorkeep.django import conf
    from doorkeep.django.axes import DoorkeepHandler

    cache.AxesCacheHandler = DoorkeepHandler

    class Result(unittest.TextTestResult):
        passed: ClassVar[set[str]] = set()

        def startTest(self, test: unittest.TestCase) -> None:
            conf.forget()
            super().startTest(test)

        def addSuccess(self, test: unittest.TestCase) -> None:
            self.passed.add(short(test))
            super().addSuccess(test)

    class Runner(DiscoverRunner):
        def get_resultclass(self) -> Any:
            return Result

        def run_suite(self, suite: Any, **kwargs: Any) -> Any:
            self.result = super().run_suite(suite, **kwargs)
            return self.result

    runner = Runner(verbosity=1, interactive=False)
    runner.run_tests([f"tests.{label}" for label in LABELS])
    return runner.result  # type: ignore[no-any-return]


def install_settings() -> None:
    # Its settings with our application; the reference to its handler is what a site would change.
    ours = types.ModuleType("doorkeep_axes_settings")
    theirs = __import__("tests.settings", fromlist=["*"])
    vars(ours).update({name: value for name, value in vars(theirs).items() if name.isupper()})
    vars(ours).update(
        INSTALLED_APPS=[*theirs.INSTALLED_APPS, "doorkeep.django"],
        AXES_HANDLER="doorkeep.django.axes.DoorkeepHandler",
        LOGGING_CONFIG=None,
        DOORKEEP={},
    )
    sys.modules[ours.__name__] = ours
    os.environ["DJANGO_SETTINGS_MODULE"] = ours.__name__


def judged(result: Any) -> bool:
    failed = {short(test) for test, _ in [*result.failures, *result.errors]}
    unexpected, mended = failed - DIFFERENCES.keys(), DIFFERENCES.keys() & result.passed
    print(f"{len(result.passed)} passed, {len(failed) - len(unexpected)} differ as they must, {len(unexpected)} failed")
    for name in sorted(failed - unexpected):
        print(f"  differs: {name}: {DIFFERENCES[name]}")
    for name in sorted(unexpected):
        print(f"  failed: {name}")
    for name in sorted(mended):
        print(f"  differs no more: {name}")
    return not unexpected and not mended


def short(test: Any) -> str:
    return ".".join(str(test.id()).split(".")[-2:])


if __name__ == "__main__":
    sys.exit(main())
