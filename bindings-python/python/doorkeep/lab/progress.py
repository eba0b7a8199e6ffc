"""A bar for runs that take longer than two seconds.

Knows nothing of scenarios. Invariant: a short run shows nothing, and a bar that was shown is always closed. Tested in
`tests/python/test_lab_running.py`.
"""

from __future__ import annotations

import time
import warnings
from types import TracebackType
from typing import Any

__all__ = ["Bar"]

SHOWN_AFTER = 2.0


class Bar:
    """Shows the share of a run that is done, by tqdm or its notebook form; nothing if tqdm is not installed."""

    def __init__(self, *, after: float | None = None) -> None:
        self._started = time.monotonic()
        self._after = SHOWN_AFTER if after is None else after
        self._bar: Any = None

    def __enter__(self) -> Bar:
        return self

    def __call__(self, events: int, done: float) -> None:
        """Update the number of attempts and the share of the run that is done."""
        is_new = self._bar is None
        if is_new:
            waited = time.monotonic() - self._started
            if waited < self._after:
                return
            self._bar = _bar(waited)
        if self._bar is False:
            return
        self._bar.set_postfix_str(f"{events:,} attempts", refresh=False)
        self._bar.update(round(100 * done, 1) - self._bar.n)
        if is_new:
            self._bar.refresh()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.close()


def _bar(waited: float) -> Any:
    with warnings.catch_warnings():
        # In a notebook without ipywidgets, tqdm suggests installing them and shows the bar as text.
        warnings.simplefilter("ignore")
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return False
    form = "{desc} {percentage:3.0f}% |{bar}| {elapsed}<{remaining} {postfix}"
    # A file contains every update of the bar, so there are at most two per second.
    bar = tqdm(total=100, desc="lab", bar_format=form, leave=False, mininterval=0.5, miniters=0)
    bar.start_t -= waited
    return bar
