"""Laws that the model and the corpus obey: python tests/model/laws.py

Knows nothing of single answers. Each law is stated where it is checked and fails with the history that breaks it.
"""

import copy
import json
import random
import sys
from math import ceil

import check
import rates
import replay
from durations import SECOND
from errors import MAX_NOW
from fixed_window import FixedWindow
from gcra import Windows, wait
from limiter import Limiter, rule
from single import AttemptLimiter

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND


def waits_of_the_corpus_are_exact():
    """A call denied with a wait is admitted then, and is denied one microsecond before, if nothing else came."""
    checked = 0
    for path in sorted(check.VECTORS.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            if "steps" not in case:
                continue
            steps = replay.start(case["limiter"])
            for step in case["steps"]:
                replay.run_step(steps, step)
                told = step["expect"].get("retry_after_us")
                counts = step["op"] in ("allow", "attempt", "consume") and step.get("cost", 1) > 0
                if not counts or not told or step["now"] + told > MAX_NOW:
                    continue
                for early, admitted in ((1, False), (0, True)):
                    later = copy.deepcopy(steps)
                    again = replay.run_step(later, {**step, "now": step["now"] + told - early})
                    assert (again["outcome"] != "denied") == admitted, (path.name, case["name"], step, again)
                checked += 1
    assert checked > 100
    return checked


def admitted(decide, end):
    """How many attempts a greedy caller gets in [0, end), coming again exactly when told to."""
    now, count = 0, 0
    while now < end:
        decision = decide(now)
        count += decision.allowed
        now += decision.retry_after
    return count


def greedy(text, end):
    limiter = Limiter()
    keys = [rule("r", rates=text).key("k")]
    return admitted(lambda now: limiter.allow(keys, 1, now), end)


def closed_forms_are_reached():
    """A greedy caller gets exactly what max_in says, and what is known from outside."""
    for text, end, most in (
        ("7/1m", 1_000 * MINUTE, 7_006),
        ("5/1m", DAY, 7_204),
        ("50/1h", DAY, 1_249),
        ("5/1m,50/1h", 10 * MINUTE, 54),
        ("5/1m,50/1h", HOUR, 99),
        ("5/1m,50/1h", DAY, 1_249),
        ("20/1m,200/1h,1000/1d", DAY, 1_999),
        ("20/1m,200/1h", DAY, 4_999),
    ):
        assert greedy(text, end) == most == rates.max_in(rates.parse(text), end), text
    window = FixedWindow(100, MINUTE)
    assert admitted(lambda now: window.consume("k", now), DAY) == 144_000
    strikes = AttemptLimiter(5, 15 * MINUTE, 10)
    assert admitted(lambda now: strikes.attempt("k", now), DAY) == 480
    return 10


def max_in_is_never_exceeded():
    """From a full window at most ceil(D * count / period) + count - 1 attempts pass in any half-open span of D."""
    for seed in range(200):
        rng = random.Random(seed)
        count, period = rng.randrange(1, 9), rng.randrange(1, 60)
        limiter, now, passed = Limiter(), 0, []
        keys = [rule("r", rates=f"{count}/{period}us").key("k")]
        for _ in range(120):
            now += rng.choice([0, 0, 0, 1, rng.randrange(0, period + 1)])
            if limiter.allow(keys, 1, now).allowed:
                passed.append(now)
        for span in range(1, 2 * period):
            most = ceil(span * count / period) + count - 1
            for start in passed:
                assert sum(start <= time < start + span for time in passed) <= most, (count, period, start, span)
    return 200


def a_give_back_never_mints():
    """While time goes on, a history with attempts given back is never richer than the same history without them."""
    compared = 0
    for seed in range(20_000):
        compared += compare_with_and_without(random.Random(seed))
    assert compared > 10_000
    return compared


def compare_with_and_without(rng):
    """Whether the two histories could be compared to their end: equal verdicts on all that both of them ask."""
    rate = rates.Rate(rng.choice([1, 2, 3, 5, 7]), rng.choice([1, 3, 7, 10, 60]))
    place = ("r", rate, "k")
    rich, poor = Windows(9), Windows(9)
    now, extra, common = 1_000, [], []
    for _ in range(rng.randrange(3, 14)):
        now += rng.choice([0, 0, 1, 2, rng.randrange(0, rate.period + 1)])
        cost, act = rng.choice([1, 1, 2]), rng.random()
        verdicts = [wait(windows.view(place, now)[0], now, cost, rate) is None for windows in (rich, poor)]
        if act < 0.3:
            if verdicts[0]:
                extra.append(rich.commit(place, now, cost))
        elif act < 0.55:
            if extra:
                rich.give_back(extra.pop(rng.randrange(len(extra))), now)
        elif act < 0.6:
            rich.forget(place)
            poor.forget(place)
        elif act < 0.75 and common:
            for windows, charge in zip((rich, poor), common.pop(rng.randrange(len(common))), strict=True):
                windows.give_back(charge, now)
        elif verdicts[0] != verdicts[1]:
            assert verdicts[1], "an attempt passes only because another one was given back"
            return False
        elif verdicts[0]:
            common.append([windows.commit(place, now, cost) for windows in (rich, poor)])
        assert rich.view(place, now)[0] >= poor.view(place, now)[0], (rate, now)
    return True


def main():
    for law in (
        waits_of_the_corpus_are_exact,
        closed_forms_are_reached,
        max_in_is_never_exceeded,
        a_give_back_never_mints,
    ):
        print(f"{law.__name__}: {law()}")


if __name__ == "__main__":
    sys.exit(main())
