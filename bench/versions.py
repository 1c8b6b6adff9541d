"""``python -m bench.versions OLD NEW``: the rates of two checkouts of Kyanite, and their ratio.

A checkout is given as its Python and its source folder, ``PYTHON:FOLDER``, such as ``.venv/bin/python:src``; the
program ``kyanite`` lies beside the Python. Both servers run for the whole time and are loaded alternately, so a machine
that is slow for a while is slow for both. Exit code 1 when anything failed.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median

from bench.report.results import Result
from bench.rows import ROWS
from bench.rows.row import Row
from bench.run import Run
from bench.servers.peers import Kyanite, Server

HOT_ROWS = "put-1k/32,get-1k/32,lease-cycle/32,queue-cycle/32,table-insert/32,table-point/32"


class Version(Kyanite):
    """A server of one checkout, with its source folder before all others on the path of its Python."""

    def __init__(self, name: str, checkout: str, folder: Path) -> None:
        super().__init__(folder)
        python, _, source = checkout.rpartition(":")
        if not python or not (Path(source) / "kyanite").is_dir():
            raise SystemExit(f"{checkout} is not PYTHON:FOLDER with a folder that has the package kyanite.")
        self.name = name
        path = f"PYTHONPATH={Path(source).resolve()}"
        self.program = ("/usr/bin/env", path, Path(python).absolute().parent / "kyanite")


def main() -> int:
    options = _options()
    rows = [row for row in ROWS if _is_wanted(row, options.rows)]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, ExitStack() as running:
        servers: list[Server] = []
        for name, checkout in (("old", options.old), ("new", options.new)):
            server = Version(name, checkout, Path(folder) / name)
            running.callback(server.stop)
            server.start()
            servers.append(server)
        run = Run(servers, options.seconds, options.rounds)
        results = [run.row(row) for row in rows]
    _print(results)
    return 1 if any(result.errors for result in results) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.versions", description=__doc__)
    parser.add_argument("old", help="PYTHON:FOLDER")
    parser.add_argument("new", help="PYTHON:FOLDER")
    parser.add_argument(
        "--rows", default=HOT_ROWS, help="rows of the benchmark, as patterns separated by commas"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="how long one round of one server lasts")
    parser.add_argument("--rounds", type=int, default=5, help="how often every server is visited in a row")
    parser.add_argument(
        "--folder", type=Path, help="where the stores go (default: the folder for temporary files)"
    )
    return parser.parse_args()


def _is_wanted(row: Row, patterns: str) -> bool:
    return any(fnmatchcase(row.name, pattern) for pattern in patterns.split(","))


def _print(results: Sequence[Result]) -> None:
    """Rates are medians of all rounds; processor time is the server's own, for one operation."""
    print(f"{'':20}{'old /s':>12}{'new /s':>12}{'ratio':>8}{'old CPU us':>14}{'new CPU us':>12}{'ratio':>8}")
    for result in results:
        if result.errors:
            print(f"{result.name:20}FAILED: {result.errors[0]}")
            continue
        old, new = result.medians["old"], result.medians["new"]
        old_us, new_us = (_cpu_us(result, name) for name in ("old", "new"))
        rates = f"{old:12,.0f}{new:12,.0f}{new / old:8.3f}"
        print(f"{result.name:20}{rates}{old_us:14,.1f}{new_us:12,.1f}{new_us / old_us:8.3f}")


def _cpu_us(result: Result, name: str) -> float:
    return median(each.server_user_us + each.server_system_us for each in result.measures[name])


if __name__ == "__main__":
    sys.exit(main())
