"""Runs: the same seed again, the bar, and the results of a run that is stopped."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorkeep.errors import ConfigError
from doorkeep.lab import Attacker, Result, Scenario, Users, progress, run, sweep

LONG = Scenario(policy=["preset:vault"], attackers=[Attacker("vertical", rate="1000/1s")], duration="300d")


def columns(result: Result) -> str:
    return result.to_json()


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**53),
    attacker=st.sampled_from(["vertical", "spray", "stuffing", "low-and-slow", "botnet", "lockout", "own-success"]),
    users=st.sampled_from(["typo", "wrong-account", "stale-client", "forgetful", "poisson", "nat"]),
)
def test_the_same_seed_gives_the_same_result(seed: int, attacker: str, users: str) -> None:
    scenario = Scenario(
        policy=["preset:login-ip", "preset:login-account"],
        attackers=[Attacker(attacker)],  # type: ignore[arg-type]
        users=[Users(users, users=5)],  # type: ignore[arg-type]
        duration="6h",
    )
    assert columns(run(scenario, seed=seed)) == columns(run(scenario, seed=seed))


def test_another_seed_gives_another_result() -> None:
    scenario = Scenario(policy=["preset:vault"], users=[Users("typo", users=50)])
    assert columns(run(scenario, seed=1)) == columns(run(scenario)) != columns(run(scenario, seed=2))


@pytest.mark.parametrize("seed", [-1, 2**53 + 1, 0.5])
def test_a_seed_out_of_bounds_is_refused(seed: int) -> None:
    with pytest.raises(ConfigError, match="run.seed: must be a whole number from 0 to"):
        run(LONG, seed=seed)


def test_progress_is_reported_and_may_end_the_run_with_the_results_so_far() -> None:
    reports: list[tuple[int, float]] = []

    def report(events: int, done: float) -> bool:
        reports.append((events, done))
        return len(reports) < 5

    result = run(LONG, progress=report)
    assert len(reports) == 5
    assert reports == sorted(reports)
    assert 0 < reports[-1][1] < 0.5
    assert result.interrupted
    assert "interrupted: what follows is a part of the run" in str(result)
    assert "<b>Interrupted" in result._repr_html_()
    assert 0 < result.attackers["guesses"][0] < 300 * 480
    assert result.run["duration_s"][0] < 300 * 86_400


def test_an_exception_of_progress_ends_the_run() -> None:
    def fail(events: int, done: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(LONG, progress=fail)


def test_a_run_of_two_seconds_shows_a_bar_and_a_short_one_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(Scenario(policy=["preset:vault"], attackers=[Attacker("vertical")]))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    run(LONG.replace({"run.duration": "10m"}))
    assert "attempts" in capsys.readouterr().err
    run(LONG.replace({"run.duration": "10m"}), progress=False)
    assert capsys.readouterr().err == ""


def test_other_threads_continue_during_a_run() -> None:
    beats = 0
    done = threading.Event()

    def beat() -> None:
        nonlocal beats
        while not done.wait(0.005):
            beats += 1

    thread = threading.Thread(target=beat)
    thread.start()
    started = time.monotonic()
    run(LONG, progress=lambda *_: time.monotonic() - started < 1)
    done.set()
    thread.join()
    assert beats > 20


INTERRUPTED = """
from doorkeep.lab import Attacker, Scenario, run, sweep
scenario = Scenario(policy=["preset:vault"], attackers=[Attacker("vertical", rate="1000/1s")], duration="3000d")
is_interrupted = False
def report(events, done):
    global is_interrupted
    if not is_interrupted:
        print("runs", flush=True)
        is_interrupted = True
result = run(scenario, progress=report)
print(result.interrupted, result.attackers["guesses"][0] > 0, flush=True)
print("runs", flush=True)
results = sweep(scenario, "run.seed", [1, 2, 3])
print(len(results), results[-1].interrupted)
"""


def test_ctrl_c_returns_the_results_so_far() -> None:
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    out = child.stdout
    assert isinstance(out, io.TextIOBase)
    assert out.readline() == "runs\n"
    child.send_signal(signal.SIGINT)
    assert out.readline() == "True True\n"
    assert out.readline() == "runs\n"
    time.sleep(0.5)  # until the sweep is in its first run: a sweep reports nothing
    child.send_signal(signal.SIGINT)
    assert out.readline() == "1 True\n"
    assert child.wait(30) == 0
    out.close()


def test_a_sweep_is_validated_before_its_first_run() -> None:
    with pytest.raises(ConfigError, match=r"run.seed"):
        sweep(LONG, "run.seed", [1, -1])
