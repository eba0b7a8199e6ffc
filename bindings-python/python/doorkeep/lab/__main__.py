"""The lab on the command line: ``python -m doorkeep.lab``.

Validates only its own arguments. Invariant: an error is one line on stderr, with exit code 2. Tested in
`tests/python/test_lab_command.py`.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from doorkeep.errors import ConfigError
from doorkeep.lab import bounds
from doorkeep.lab.scenario import Scenario

if TYPE_CHECKING:
    from doorkeep.lab.result import Result

PROGRAM = "python -m doorkeep.lab"
INTERRUPTED = 130

EXAMPLES = """\
examples:
  %(prog)s bounds "5/1m,50/1h" --strikes 5/15m
  %(prog)s run botnet.toml --seed 7 --plot botnet.png
  %(prog)s run botnet.toml --csv series > series.csv
  %(prog)s compare today.toml tomorrow.toml
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for an error, 130 for a run that was interrupted."""
    args = _parser().parse_args(arguments)
    try:
        code: int = args.command(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed it; the flush at interpreter exit must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ConfigError, ImportError) as error:
        return _refuse(str(error))
    return code


def _refuse(message: str) -> int:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Try an attack on a policy before it is shipped.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a scenario file and report what came of it")
    run.add_argument("scenario", help="a scenario file (TOML, or JSON that begins with a brace)")
    _common(run)
    form = run.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all tables as JSON, with null for nothing to tell")
    form.add_argument(
        "--csv",
        nargs="?",
        const="attackers",
        choices=("run", "attackers", "users", "series", "admissions"),
        metavar="TABLE",
        help="print one table as CSV: run, attackers (default), users, series, admissions",
    )
    run.set_defaults(command=_run)

    compare = commands.add_parser("compare", help="run scenario files and report them beside each other")
    compare.add_argument("scenarios", nargs="+", metavar="scenario", help="scenario files, at least two")
    _common(compare)
    compare.set_defaults(command=_compare)

    most = commands.add_parser(
        "bounds",
        help="show the most that policies admit, computed without a run",
        description="Show the most that policies admit to one key, and what that opens.",
    )
    most.add_argument("policies", nargs="*", metavar="POLICY", help='rates such as "5/1m,50/1h"')
    most.add_argument(
        "--strikes", action="append", default=[], metavar="N/WINDOW", help="strikes: N, then locked for WINDOW"
    )
    most.add_argument(
        "--fixed-window", action="append", default=[], metavar="N/WINDOW", help="a fixed window of N attempts"
    )
    most.set_defaults(command=_bounds)
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, help="instead of the seed of the file; the same seed gives the same result")
    parser.add_argument("--plot", metavar="FILE", help="draw a figure: .png, .svg or .pdf")
    parser.add_argument("--no-progress", action="store_true", help="show no bar on runs over two seconds")


def _run(args: argparse.Namespace) -> int:
    result = _results(args, [args.scenario])[0]
    if args.json:
        print(result.to_json())
    elif args.csv:
        table = result.tables[args.csv].to_lists()
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    else:
        print(result)
    _plot(args, [result], None)
    return INTERRUPTED if result.interrupted else 0


def _compare(args: argparse.Namespace) -> int:
    from doorkeep.lab.result import compare

    if len(args.scenarios) < 2:
        raise ConfigError("compare takes at least two scenario files")
    results = _results(args, args.scenarios)
    labels = args.scenarios[: len(results)]
    print(compare(*results, labels=labels))
    _plot(args, results, labels)
    return INTERRUPTED if results[-1].interrupted else 0


def _bounds(args: argparse.Namespace) -> int:
    from doorkeep.lab.text import shown, text

    policies = [*args.policies, *(f"s{each}" for each in args.strikes), *(f"w{each}" for each in args.fixed_window)]
    if not policies:
        raise ConfigError('bounds takes at least one policy, such as "5/1m,50/1h" or --strikes 5/15m')
    tables: list[dict[str, list[Any]]] = [bounds.table(policy) for policy in policies]
    for policy, table in zip(policies, tables, strict=True):
        rows = [
            [span, shown("", most), shown("", quiet), f"{100 * bounds.opened(int(most)):.2f} %"]
            for span, most, quiet in zip(table["span"], table["admitted"], table["unnoticed"], strict=True)
        ]
        print(text([[policy, "admitted", "never denied", "opens"], *rows]), end="\n\n")
    print(
        "admitted: the most guesses on one key, by somebody who takes every one\n"
        "never denied: the most by somebody who is never denied\n"
        "opens: the share of accounts that so many guesses on each open, passwords chosen as at RockYou,\n"
        "  of whose list the first 5,000 are known here"
    )
    return 0


def _results(args: argparse.Namespace, paths: Sequence[str]) -> list[Result]:
    """Read every file before the first run, so that a mistake in the last file is reported immediately."""
    from pathlib import Path

    from doorkeep.lab.running import run

    if args.plot:
        from doorkeep.lab import plots  # noqa: F401 -- its absence is told before a long run, not after
    results = []
    for scenario in [Scenario.from_toml(Path(path)) for path in paths]:
        results.append(run(scenario, seed=args.seed, progress=False if args.no_progress else None))
        if results[-1].interrupted:
            break
    return results


def _plot(args: argparse.Namespace, results: Sequence[Result], labels: Sequence[str] | None) -> None:
    if args.plot is None:
        return
    from doorkeep.lab import plots

    try:
        plots.save(plots.report(*results, labels=labels), args.plot)
    except ValueError as error:
        raise ConfigError(f"{args.plot}: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
