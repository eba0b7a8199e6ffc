"""Writes THIRD-PARTY-NOTICES: the licences of what is compiled into the wheel and into the npm package.

Asks cargo for the crates and reads the licences that came with their sources; `licences` here has those of crates that
come without. With --check it writes nothing, and fails when the file is not what it would write. Knows no licence by
heart. Invariant: a crate without the text of a licence is an error.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTICES = ROOT / "THIRD-PARTY-NOTICES"
LICENCES = ROOT / "packaging" / "licences"
PACKAGES = {"doorkeep-python": "Python", "doorkeep-node": "Node"}
# One for each system; what differs between machines of one system is no crate.
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"]
# Where a crate leaves the choice, the first of these that it offers.
CHOSEN = ["MIT", "BSL-1.0", "ISC", "Zlib", "Apache-2.0"]
# How files that hold the text of a licence are named.
NAMED = {
    "Apache-2.0": "apache",
    "BSL-1.0": "boost",
    "ISC": "isc",
    "MIT": "mit",
    "Unlicense": "unlicense",
    "Zlib": "zlib",
}
HEAD = """\
THIRD-PARTY NOTICES

The Python wheel of doorkeep and its npm package hold compiled code of the crates below and of Rust's standard library
(std). Not every crate is in every binary: some are for one system only. Where a licence could be chosen, the one named
here was. The texts follow in the order of the list; a text that several crates share stands once.

Written by packaging/notices.py. After a change of Cargo.lock: make notices

"""

Crate = tuple[str, str]  # name and version


def cargo(*arguments: str) -> str:
    """Return what a command of cargo prints."""
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked() -> dict[Crate, tuple[str, set[str]]]:
    """Return the crates of others that are linked: what each says of its licence, and the packages that it is in."""
    found: dict[Crate, tuple[str, set[str]]] = {}
    targets = [word for target in TARGETS for word in ("--target", target)]
    for package, language in PACKAGES.items():
        printed = cargo(
            *("tree", "-p", package, "-e", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe"),
            *("--format", "{p}|{l}", *targets),
        )
        for line in filter(None, printed.splitlines()):
            crate, _, licence = line.partition("|")
            # A crate of this workspace has its folder behind its version.
            if "(" not in crate:
                name, version = crate.split(" v")
                found.setdefault((name, version), (licence, set()))[1].add(language)
    return found


def folders() -> dict[Crate, Path]:
    """Return where the sources of the crates lie."""
    packages = [
        package
        for target in TARGETS
        for package in json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))["packages"]
    ]
    return {(package["name"], package["version"]): Path(package["manifest_path"]).parent for package in packages}


def choice(licence: str) -> tuple[str, list[str]]:
    """Return the licence that applies, and those that the crate offers beside it."""
    offered = licence.replace("/", " OR ").split(" OR ")
    if " AND " in licence or len(offered) == 1:
        return licence, []
    chosen = next(name for name in CHOSEN if name in offered)
    return chosen, [name for name in offered if name != chosen]


def texts(crate: Crate, folder: Path, left: list[str]) -> Iterator[str]:
    """Yield the texts that come with a crate, but for those of the licences that were left."""
    files = sorted(file for file in folder.iterdir() if re.match(r"licen[cs]e|copying|notice", file.name, re.I))
    kept = [file for file in files if not any(NAMED[name] in file.name.lower() for name in left)]
    own = LICENCES / crate[0]
    if not kept and not own.exists():
        raise SystemExit(f"{crate[0]} comes without a licence: put that of its project into {own.relative_to(ROOT)}")
    for file in kept or [own]:
        yield "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").strip().splitlines())


def notices() -> str:
    """Return the whole file."""
    sources = folders()
    head, shared = HEAD, dict[str, list[str]]()
    for crate, (licence, languages) in sorted(linked().items()):
        chosen, left = choice(licence)
        head += f"  {' '.join(crate):<36} {chosen:<36} {', '.join(sorted(languages))}\n"
        for text in texts(crate, sources[crate], left):
            shared.setdefault(text, []).append(" ".join(crate))
    head += f"  {'std':<36} {'MIT':<36} {', '.join(sorted(PACKAGES.values()))}\n"
    shared.setdefault((LICENCES / "std").read_text(encoding="utf-8").strip(), []).append("std")
    line = "=" * 80
    return head + "".join(f"\n{line}\n{', '.join(crates)}\n{line}\n\n{text}\n" for text, crates in shared.items())


def main() -> None:
    """Write the file, or compare it."""
    if "--check" not in sys.argv:
        NOTICES.write_text(notices(), encoding="utf-8")
    elif not NOTICES.exists() or NOTICES.read_text(encoding="utf-8") != notices():
        raise SystemExit("THIRD-PARTY-NOTICES is not what Cargo.lock asks for: run `make notices`, and commit it")


if __name__ == "__main__":
    main()
