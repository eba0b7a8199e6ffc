"""gcra: one rate as a pure step, and the bounded table of its windows.

Knows nothing of strikes, rules' checks or clocks. Invariant: a window holds the exact moment at which it is full
again (TAT), and an entry whose TAT has come is as good as absent, although it keeps its place until room is needed.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

NEVER = float("inf")


def load(window, now, rate):
    """TAT as judged at `now`, and whether it was healed because the clock went far back."""
    if window is None or window.tat <= now:
        return Fraction(now), False
    if floor(window.tat) > now + 2 * rate.period:
        return Fraction(now + rate.period), True
    return window.tat, False


def wait(tat, now, cost, rate):
    """None when `cost` may be counted, else the time to wait."""
    if cost > rate.count:
        return NEVER
    new = tat + cost * rate.interval
    if ceil(new) <= now + rate.period:
        return None
    return ceil(new) - rate.period - now


def remaining(tat, now, rate):
    """The largest r in 0..count with ceil(tat + r * T) <= now + period, or 0."""
    return max(0, min(rate.count, floor((now + rate.period - tat) / rate.interval)))


def reset_after(tat, now):
    return ceil(tat) - now


@dataclass
class Window:
    tat: Fraction
    born: int
    serial: int


@dataclass(frozen=True)
class Charge:
    """What one counted attempt remembers of one window, so that it can be given back."""

    place: tuple
    cost: int
    taken_at: int
    before: Fraction | None
    born: int
    serial: int


class Windows:
    """All windows of a limiter, keyed by place = (rule name, rate, key digest)."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.entries = {}
        self.ids = 0
        self.evicted = 0

    def new_id(self):
        self.ids += 1
        return self.ids

    def get(self, place):
        return self.entries.get(place)

    def view(self, place, now):
        return load(self.get(place), now, place[1])

    def heal(self, place, now):
        tat, healed = self.view(place, now)
        if healed:
            window = self.get(place)
            # A birth: the heal took away more than any charge from before it, so none of them is given back.
            window.tat = tat
            window.born = window.serial = self.new_id()

    def commit(self, place, now, cost):
        tat, _ = self.view(place, now)
        serial = self.new_id()
        window = self.get(place)
        before = None
        if window is None or window.tat <= now:
            window = Window(tat, born=serial, serial=serial)
            self.entries[place] = window
        else:
            before = window.tat
        window.tat = tat + cost * place[1].interval
        window.serial = serial
        return Charge(place, cost, now, before, window.born, serial)

    def give_back(self, charge, now):
        window = self.get(charge.place)
        if window is None or window.tat <= now or window.born != charge.born:
            return
        if window.serial != charge.serial:
            elapsed = max(0, now - charge.taken_at)
            window.tat -= max(0, charge.cost * charge.place[1].interval - elapsed)
        elif charge.before is None:
            window.tat = Fraction(now)
        else:
            window.tat = charge.before
        window.serial = self.new_id()
        if window.tat <= now:
            del self.entries[charge.place]

    def forget(self, place):
        self.entries.pop(place, None)

    def make_room(self, named, now):
        """Drop other windows until those of `named` that are not held fit in."""
        while len(self.entries) + sum(place not in self.entries for place in named) > self.capacity:
            self.drop_one(named, now)

    def drop_one(self, named, now):
        others = [place for place in self.entries if place not in named]
        expired = [place for place in others if self.get(place).tat <= now]
        if expired:
            del self.entries[min(expired, key=self.fullest_first)]
            return
        sizes = {}
        for rule, rate, _ in self.entries:
            sizes[rule, rate] = sizes.get((rule, rate), 0) + 1
        largest = max(sizes[place[:2]] for place in others)
        candidates = [place for place in others if sizes[place[:2]] == largest]
        del self.entries[min(candidates, key=self.fullest_first)]
        self.evicted += 1

    def fullest_first(self, place):
        """Nearest to full first, then the oldest."""
        window = self.get(place)
        return window.tat, window.born
