"""The native functions of the lab: the runs of every language, progress and interrupts."""

import os
import signal
import threading
import time

import pytest

from doorkeep import _native
from doorkeep.errors import ConfigError
from vectors import cases
from write_lab_vectors import outcome_of, plain

LONG = """
run = { duration = "365d", bins = 10 }
policy.rules = [{ name = "account", rates = "60/1m", by = ["account"] }]
attackers = [{ kind = "vertical", rate = "100/1s" }]
"""


@pytest.mark.parametrize("case", cases("lab"), ids=lambda case: case["name"])
def test_every_run_has_the_columns_of_its_vector(case: dict[str, object]) -> None:
    assert set(case) == {"name", "scenario", "outcome"}
    assert outcome_of(str(case["scenario"])) == case["outcome"]


def test_a_scenario_that_cannot_be_run_is_refused_with_its_line_and_field() -> None:
    with pytest.raises(ConfigError, match=r"^scenario line 2, attackers\[0\]\.kind: unknown attacker, use vertical"):
        _native.lab_check('policy.rules = ["preset:vault"]\nattackers = [{ kind = "wizard" }]')
    with pytest.raises(ConfigError, match=r"^scenario attackers\[0\]\.rate: must read like 10/1s"):
        _native.lab_run('{"policy": {"rules": ["preset:vault"]}, "attackers": [{"kind": "vertical", "rate": -1}]}')
    assert _native.lab_check(LONG) is None


def test_progress_is_reported_and_false_ends_the_run_with_the_results_so_far() -> None:
    seen: list[tuple[int, float]] = []

    def look(events: int, done: float) -> bool:
        seen.append((events, done))
        return len(seen) < 3

    run = _native.lab_run(LONG, look)["run"]
    assert len(seen) == 3
    assert seen == sorted(seen)
    assert plain(run["complete"]) == [0.0]
    assert plain(run["events"]) == [seen[-1][0]]


def test_an_error_of_the_progress_ends_the_run_and_is_raised() -> None:
    def look(events: int, done: float) -> None:
        raise LookupError(events)

    with pytest.raises(LookupError):
        _native.lab_run(LONG, look)


def test_an_interrupt_ends_the_run_with_the_results_so_far() -> None:
    pressed = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    pressed.start()
    run = _native.lab_run(LONG)["run"]
    pressed.join()
    assert plain(run["complete"]) == [0.0]
    assert plain(run["events"])[0] > 0


def test_other_threads_continue_during_a_run() -> None:
    ticks = 0
    over = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not over.is_set():
            ticks += 1
            time.sleep(0.001)

    beside = threading.Thread(target=tick)
    beside.start()
    ends = time.monotonic() + 0.5
    _native.lab_run(LONG, lambda events, done: time.monotonic() < ends)
    over.set()
    beside.join()
    assert ticks > 20


def test_bounds_are_columns_and_a_closed_form_is_a_number() -> None:
    columns = _native.lab_bounds("5/1m,50/1h")
    day = plain(columns["span"]).index("24h")
    assert plain(columns["admitted"])[day] == 1249.0
    assert _native.lab_bound("max_in", policy="5/1m", span=86_400) == 7204.0
    assert _native.lab_bound("admitted_at", rates="5/1m", guess=6) == 12.0
    assert _native.lab_bound("opened", guesses=1, bits=None) == 0.00892
    with pytest.raises(ConfigError, match="unknown bound, use max_in"):
        _native.lab_bound("wizard")
    with pytest.raises(ConfigError, match="span is required"):
        _native.lab_bound("max_in", policy="5/1m")
    with pytest.raises(ConfigError, match="unknown argument"):
        _native.lab_bound("opened", guesses=1, guess=1)
