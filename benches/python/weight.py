"""P9: what the package weighs, in time to import and in bytes to download."""

import statistics
import subprocess
import sys
from pathlib import Path

from rounds import ratio, tell, turns

MEGABYTE = 1e6
CLOCKED = "from time import perf_counter_ns as t; a = t(); import {}; print(t() - a)"


def importing(module: str) -> float:
    """Give the nanoseconds that a fresh interpreter takes to import a module, its own start not included."""
    done = subprocess.run([sys.executable, "-c", CLOCKED.format(module)], capture_output=True, check=True, text=True)
    return float(done.stdout)


def main(wheel: Path) -> None:
    ours, theirs = turns(lambda: importing("doorkeep"), lambda: importing("limits"), rounds=15)
    beside = f"{statistics.median(ours) / 1e6:.1f} ms, limits {statistics.median(theirs) / 1e6:.1f} ms"
    tell("P9", "Python: import doorkeep vs import limits", 0.5, ratio(ours, theirs), detail=beside)
    size = wheel.stat().st_size
    tell("P9", "Python: the wheel", 4, size / MEGABYTE, detail=f"{size:,} bytes", unit="MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
