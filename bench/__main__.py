"""The command line: `python -m bench list` and `python -m bench run NAME...`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.catalog import CATALOG, markdown_list
from bench.figures import Table
from bench.harness import DEFAULT, FULL, QUICK, Experiment, run_experiments, select
from placewire.model.errors import Unusable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors are one line on stderr and exit code 2."""
    chosen = make_parser().parse_args(arguments)
    try:
        if chosen.command == "list":
            print(markdown_list(), flush=True)
            return 0
        run_experiments(
            select(CATALOG, chosen.names),
            data=chosen.data,
            size=chosen.size,
            json_file=chosen.json,
            show=print_table,
        )
    except Unusable as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run benchmarks.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="list the experiments by package")
    run = commands.add_parser("run", help="run experiments and print their tables")
    run.add_argument(
        "names", nargs="+", metavar="NAME", help="experiments, or `all`; see `python -m bench list`"
    )
    size = run.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", dest="size", action="store_const", const=QUICK, help="small sizes, in seconds"
    )
    size.add_argument(
        "--full", dest="size", action="store_const", const=FULL, help="large sizes, in hours"
    )
    run.add_argument(
        "--data", type=Path, metavar="DIR", help="directory of real data sets (default: generated)"
    )
    run.add_argument("--json", type=Path, metavar="FILE", help="write all rows to a JSON file")
    run.set_defaults(size=DEFAULT)
    return parser


def print_table(experiment: Experiment, table: Table) -> None:
    """Print a table under its name."""
    print(f"## {table.name}\n\n{table.markdown()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
