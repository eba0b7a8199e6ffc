"""P6, P7, P8 and the server's half of P10: decisions over Redis, beside what the server alone can do.

One server, and one long-lived process for each language, which make decisions in turn with the yardstick; nothing else
runs meanwhile. A language whose runner does not start is left out, and says so.
"""

import json
import statistics
import subprocess
import sys
from pathlib import Path

from rounds import ratio, tell, turns
from server import Server, running
from yardstick import Yardstick

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNNERS = {
    "Rust": [str(ROOT / "target/bench/release/doorkeep-bench-redis")],
    "Python": [str(ROOT / "build/bench/python/bin/python"), str(HERE / "runner.py")],
    "Node": ["node", str(HERE / "runner.mjs")],
}
ROUNDS = 5
MILLISECONDS = 700


class Runner:
    """A process that makes decisions when asked."""

    def __init__(self, command: list[str], url: str) -> None:
        self.process = subprocess.Popen([*command, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rate(self, subject: str, shape: str, in_flight: int, milliseconds: int = MILLISECONDS) -> float:
        """Give the decisions a second. Raises OSError when the process is gone."""
        pipes = self.process.stdin, self.process.stdout
        assert all(pipes)
        print(subject, shape, in_flight, milliseconds, file=pipes[0], flush=True)
        told = pipes[1].readline()
        if not told:
            raise BrokenPipeError("the runner ended")
        return float(told)


def main() -> None:
    with running() as server:
        runners = {}
        try:
            for language, command in RUNNERS.items():
                runner = Runner(command, server.url)
                try:
                    runner.rate("doorkeep", "pair", 1, 50)
                    runners[language] = runner
                except OSError:
                    print(f"{language} over Redis is left out: its runner did not start", file=sys.stderr)
            if runners:
                measure(server, runners)
        finally:
            for runner in runners.values():
                runner.process.kill()
                runner.process.wait()


def measure(server: Server, runners: dict[str, Runner]) -> None:
    yardstick = Yardstick(server, monitored(server, next(iter(runners.values()))), shape("pair")["keys"])
    against_the_server(yardstick, runners)
    against_peers(runners)
    on_the_server(server, next(iter(runners.values())))


def monitored(server: Server, runner: Runner) -> str:
    """Give one call as the server saw it."""
    with server.connection() as connection:
        assert connection.ask("MONITOR") == "OK"
        runner.rate("doorkeep", "pair", 1, 1)
        while "EVALSHA" not in (seen := connection.line()):
            pass
    return seen


def against_the_server(yardstick: Yardstick, runners: dict[str, Runner]) -> None:
    """P6: what the way through each language costs."""
    goals = {
        256: (("-c", "50", "-P", "16", "-n", "40000"), {"Rust": 0.9, "Python": 0.75, "Node": 0.75}),
        1: (("-c", "1", "-n", "4000"), {"Rust": 0.85, "Python": 0.6, "Node": 0.6}),
    }
    for in_flight, (load, targets) in goals.items():
        ours = [lambda runner=runner, n=in_flight: runner.rate("doorkeep", "pair", n) for runner in runners.values()]
        floor, *told = turns(lambda load=load: yardstick.rate(*load), *ours, rounds=ROUNDS)
        for language, rates in zip(runners, told, strict=True):
            what = f"{language} over Redis, {in_flight} in flight, vs redis-benchmark {' '.join(load[:-2])}"
            beside = f"{thousands(rates)}, redis-benchmark {thousands(floor)}"
            tell("P6", what, targets[language], ratio(rates, floor), "higher", beside)


def against_peers(runners: dict[str, Runner]) -> None:
    """P7: one key and one rate, which is all that the peers are asked."""
    goals = {"Python": ("limits", "limits.aio", 4.0), "Node": ("rate-limiter-flexible", "rate-limiter-flexible", 1.0)}
    for language, (subject, name, target) in goals.items():
        if not (runner := runners.get(language)):
            continue
        for in_flight in (64, 256):
            ours, theirs = turns(
                lambda runner=runner, n=in_flight: runner.rate("doorkeep", "one", n),
                lambda runner=runner, n=in_flight, who=subject: runner.rate(who, "one", n),
                rounds=ROUNDS,
            )
            what = f"{language} over Redis, {in_flight} in flight, vs {name}"
            beside = f"{thousands(ours)}, {name} {thousands(theirs)}"
            tell("P7", what, target, ratio(ours, theirs), "higher", beside)


def on_the_server(server: Server, runner: Runner) -> None:
    """P8 and P10: the server's own time for a decision, and how many trips it takes."""
    trips = []

    def cost(name: str) -> float:
        runner.rate("doorkeep", name, 64, 50)
        server.ask("CONFIG", "RESETSTAT")
        made = runner.rate("doorkeep", name, 64) * MILLISECONDS / 1000
        calls, each = server.script_cost()
        trips.append(calls / made)
        return each

    shapes = ("one", "three", "pair", "spent")
    one, three, pair, spent = turns(*(lambda name=name: cost(name) for name in shapes), rounds=ROUNDS)
    beside = f"{microseconds(three)}, {microseconds(one)}; {statistics.median(trips):.1f} trips a decision"
    tell("P8", "three keys and five rates vs one key and one, on the server", 2.5, ratio(three, one), "lower", beside)
    beside = f"denied {microseconds(spent)}, admitted {microseconds(pair)}"
    tell("P10", "Redis: denied vs admitted, two keys of two rates", 1, ratio(spent, pair), "lower", beside)


def shape(name: str) -> dict:
    """Give what a shape asks."""
    return json.loads((HERE / "shapes.json").read_text(encoding="utf-8"))[name]


def thousands(rates: list[float]) -> str:
    """Give a rate as text."""
    return f"{statistics.median(rates) / 1000:.1f} k/s"


def microseconds(times: list[float]) -> str:
    """Give a time as text."""
    return f"{statistics.median(times):.1f} us"


if __name__ == "__main__":
    main()
