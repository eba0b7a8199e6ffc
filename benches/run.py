"""Measures everything and prints the one table. Names of parts as arguments measure only those.

Knows where the parts lie and nothing of what they measure; what they compare with was installed into build/bench
before. A part that fails leaves its rows out, says so, and makes the command fail; a missed goal does not.
"""

import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import table

BENCHES = Path(__file__).parent
ROOT = BENCHES.parent
BUILT = ROOT / "build/bench"
PYTHON = str(BUILT / "python/bin/python")
NODE = ["node", "--expose-gc"]
LONGEST = 240


def parts() -> dict[str, list[list[str]]]:
    """Give the commands of each part."""
    python, node = BENCHES / "python", BENCHES / "node"
    wheel, tarball = next(BUILT.glob("wheel/*.whl")), next(BUILT.glob("npm/*.tgz"))
    found = {
        "rust": [[str(ROOT / "target/bench/release/doorkeep-benches")]],
        "python": [[PYTHON, str(python / "memory.py")], [PYTHON, str(python / "weight.py"), str(wheel)]],
        "node": [[*NODE, str(node / "memory.mjs")], [*NODE, str(node / "weight.mjs"), str(tarball)]],
    }
    if shutil.which("redis-benchmark"):
        found["redis"] = [[sys.executable, str(BENCHES / "redis/run.py")]]
    else:
        print("without redis-benchmark nothing over Redis is measured", file=sys.stderr)
    return found


def main(wanted: list[str]) -> int:
    """Run the parts; give the exit status."""
    load, start = os.getloadavg()[0], time.monotonic()
    rows, failed = [], []
    environment = os.environ | {"PYTHONPATH": str(BENCHES)}
    for name, commands in parts().items():
        if wanted and name not in wanted:
            continue
        print(f"measuring {name} ...", file=sys.stderr)
        for command in commands:
            try:
                done = subprocess.run(
                    command, env=environment, stdout=subprocess.PIPE, check=True, text=True, timeout=LONGEST
                )
            except (OSError, subprocess.SubprocessError) as error:
                failed.append(f"{name}: {error}")
                continue
            where = "Rust: " if name == "rust" else ""
            rows += [row for line in done.stdout.splitlines() if (row := table.read(line, where))]
    print(table.show(rows))
    node = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    seconds = time.monotonic() - start
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the start, {seconds:.0f} s, "
        f"Python {platform.python_version()}, Node {node}.",
        "Ratios are medians over the rounds of one run (Rust: of the best rounds). The last column wanders.",
        sep="\n",
    )
    for complaint in failed:
        print(f"failed: {complaint}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
