"""strikes: the table of one strike rule, threshold N and lockout window W.

Knows nothing of gcra, of rules' names or of clocks. Invariant: an entry dies at last + W, counting or locked, and a
live lockout is never dropped. An entry that died keeps its place until room is needed or its key comes again.
"""

from dataclasses import dataclass, field


@dataclass
class Entry:
    last: int
    ids: list = field(default_factory=list)
    engager: object = None
    activity: int = 0

    @property
    def locked(self):
        return self.engager is not None


@dataclass(frozen=True)
class View:
    """A key as judged at some moment: alive or not, healed if the clock went far back."""

    entry: Entry | None
    last: int = 0
    healed: bool = False


class Strikes:
    def __init__(self, threshold, window, capacity):
        self.threshold = threshold
        self.window = window
        self.capacity = capacity
        self.entries = {}
        self.calls = 0
        self.evicted = 0

    def expired(self, entry, now):
        return entry.last + self.window <= now

    def view(self, key, now):
        entry = self.entries.get(key)
        if entry is None or self.expired(entry, now):
            return View(None)
        if entry.last > now + self.window:
            return View(entry, now, healed=True)
        return View(entry, entry.last)

    def wait(self, key, now):
        """None when an attempt on a key that is locked or not would be counted, else the time to the end of it."""
        view = self.view(key, now)
        if view.entry is None or not view.entry.locked:
            return None
        return view.last + self.window - now

    def saturated(self, named, now):
        """None when the new keys among `named` have room, else the time until enough lockouts of others have ended."""
        absent = [key for key in named if key not in self.entries]
        lacking = len(self.entries) + len(absent) - self.capacity
        others = [entry for key, entry in self.entries.items() if key not in named]
        ends = sorted(entry.last + self.window for entry in others if entry.locked and not self.expired(entry, now))
        lacking -= len(others) - len(ends)
        return ends[lacking - 1] - now if lacking > 0 else None

    def remaining(self, key, now):
        view = self.view(key, now)
        if view.entry is None:
            return self.threshold
        return 0 if view.entry.locked else self.threshold - len(view.entry.ids)

    def reset_after(self, key, now):
        view = self.view(key, now)
        return 0 if view.entry is None else view.last + self.window - now

    def holds(self, key, attempt, now):
        view = self.view(key, now)
        return view.entry is not None and attempt in view.entry.ids

    def heal(self, key, now):
        view = self.view(key, now)
        if view.healed:
            view.entry.last = view.last

    def commit(self, key, attempt, now):
        """Count `attempt`, which was tested; whether it engaged a lockout."""
        entry = self.view(key, now).entry
        if entry is None:
            entry = self.entries[key] = Entry(now)
        entry.last = max(entry.last, now)
        entry.ids.append(attempt)
        self.touch(entry)
        if len(entry.ids) == self.threshold:
            entry.engager = attempt
        return entry.locked

    def touch(self, entry):
        self.calls += 1
        entry.activity = self.calls

    def cancel(self, key, attempt, now):
        if not self.holds(key, attempt, now):
            return "nothing"
        entry = self.entries[key]
        entry.ids.remove(attempt)
        lifted = entry.engager == attempt
        if lifted:
            entry.engager = None
            self.touch(entry)
        if not entry.ids:
            del self.entries[key]
        return "lifted" if lifted else "given_back"

    def refund(self, key, now):
        entry = self.view(key, now).entry
        if entry is None or entry.locked:
            return
        entry.ids.pop(0)
        if not entry.ids:
            del self.entries[key]

    def forget(self, key):
        self.entries.pop(key, None)

    def make_room(self, named, now):
        """Drop other entries until the new keys among `named` fit in, which `saturated` has found possible."""
        while len(self.entries) + sum(key not in self.entries for key in named) > self.capacity:
            self.drop_one(named, now)

    def drop_one(self, named, now):
        """The least recently active counting key if it expired, else a lockout that ended, else that counting key."""
        others = {key: entry for key, entry in self.entries.items() if key not in named}
        counting = [key for key, entry in others.items() if not entry.locked]
        ended = [key for key, entry in others.items() if entry.locked and self.expired(entry, now)]
        oldest = min(counting, key=lambda key: others[key].activity, default=None)
        if oldest is not None and self.expired(others[oldest], now):
            del self.entries[oldest]
        elif ended:
            del self.entries[min(ended, key=lambda key: (others[key].last, others[key].activity))]
        else:
            self.evicted += 1
            del self.entries[oldest]
