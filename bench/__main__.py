"""``python -m bench``: choose rows and peers, run them, print tables. Exit code 1 when anything failed."""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from bench import growth, smb
from bench.gauges import GAUGES
from bench.load.client import load, processes_for
from bench.load.responder import responder
from bench.load.works import get_blob, over_and_over
from bench.report import tables as report
from bench.report.results import Result
from bench.rows import ROWS
from bench.rows.smb import SMB_ROWS
from bench.run import Run, read_gauge, say
from bench.servers import installs
from bench.servers.peers import KINDS, STORES, Server


def main() -> int:
    if sys.platform != "linux":
        sys.exit("The benchmark needs Linux.")
    options = _options()
    signal.signal(signal.SIGTERM, _stop)
    peers, missing = _available(options.peers.split(","), profiled=options.profile)
    with _folder(options.folder) as folder:
        code = _growth(options, peers, folder) if options.growth else _tables(options, peers, folder)
        if not options.growth and "kyanite" in peers:
            code |= _smb_table(options, missing, folder)
    for reason in missing:
        print(reason)
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--rows", default="*", help="rows to run, as patterns separated by commas: 'put-*,idle'"
    )
    parser.add_argument("--peers", help="servers to run, separated by commas (default: all)")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long one round of one server lasts")
    parser.add_argument("--rounds", type=int, default=3, help="how often every server is visited in a row")
    parser.add_argument("--quick", action="store_true", help="one round of one second")
    parser.add_argument("--growth", nargs="?", type=int, const=growth.SIZES[-1], metavar="BLOBS")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown, for the README")
    parser.add_argument(
        "--profile", action="store_true", help="sample Kyanite with py-spy in the first round"
    )
    parser.add_argument(
        "--folder", type=Path, help="where the stores go; must be on a real disk (default: .bench)"
    )
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 1.0
    if options.peers is None:
        options.peers = "kyanite" if options.growth else "kyanite,azurite,nginx,receiver"
    if unknown := set(options.peers.split(",")) - set(KINDS):
        parser.error(f"there is no peer {unknown.pop()}")
    return options


def _stop(number: int, frame: FrameType | None) -> None:
    """A SIGTERM unwinds the run, so that the servers are stopped and their folders removed."""
    sys.exit(1)


def _available(peers: Sequence[str], *, profiled: bool) -> tuple[list[str], list[str]]:
    """Fetch what is missing, before any clock runs.

    A peer that cannot be had is left out, and that is said.
    """
    found: list[str] = []
    missing: list[str] = []
    for peer in peers:
        try:
            if peer == "azurite":
                installs.azurite()
                installs.node()
            if peer == "nginx":
                installs.nginx()
        except (installs.UnavailableError, OSError) as problem:
            missing.append(f"Without {peer}: {problem}")
            say(missing[-1])
            continue
        found.append(peer)
    if profiled:
        installs.py_spy()
    return found, missing


@contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    parent = parent or installs.HOME
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=parent, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def _started(peers: Sequence[str], folder: Path) -> Iterator[list[Server]]:
    with ExitStack() as servers_to_stop:
        servers = []
        for peer in peers:
            server = KINDS[peer](folder / peer)
            servers_to_stop.callback(server.stop)
            server.start()
            servers.append(server)
        yield servers


def _tables(options: argparse.Namespace, peers: Sequence[str], folder: Path) -> int:
    patterns = options.rows.split(",")
    rows = [row for row in ROWS if _chosen(row.name, patterns)]
    chosen_gauges = [one for one in GAUGES if _chosen(one.name, patterns)]
    if not rows and not chosen_gauges:
        return 0
    ceiling = _client_ceiling(options.seconds)
    stores = [peer for peer in peers if peer in STORES]
    results = [read_gauge(one, stores, options.rounds, folder) for one in chosen_gauges]
    if rows:
        with _started(peers, folder) as servers:
            run = Run(servers, options.seconds, options.rounds, profiled=options.profile)
            results[:0] = [run.row(row) for row in rows]
    _print(results, ceiling, markdown=options.markdown)
    return 1 if any(result.errors for result in results) else 0


def _smb_table(options: argparse.Namespace, missing: list[str], folder: Path) -> int:
    """The rows of SMB, whose peer is another one, are a table of their own."""
    rows = [row for row in SMB_ROWS if _chosen(row.name, options.rows.split(","))]
    if not rows:
        return 0
    try:
        smb.check_installed()
    except installs.UnavailableError as problem:
        missing.append(f"Without the rows of SMB: {problem}")
        return 0
    results = smb.run_rows(rows, options.rounds, folder)
    layout = report.as_markdown if options.markdown else report.as_text
    print(f"\n{layout(smb.table(results))}")
    _print_problems(results)
    return 1 if any(result.errors for result in results) else 0


def _growth(options: argparse.Namespace, peers: Sequence[str], folder: Path) -> int:
    stages: list[growth.Stage] = []
    for peer in peers:
        if peer in STORES:
            with _started([peer], folder) as (server,):
                stages += growth.grow(server, options.seconds, options.growth)
    table = growth.table(stages)
    print(report.as_markdown(table) if options.markdown else report.as_text(table))
    for stage in stages:
        for problem in stage.errors[:3]:
            print(f"FAILED {stage.server} at {stage.blobs:,}: {problem}")
    return 1 if any(stage.errors for stage in stages) else 0


def _chosen(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _client_ceiling(seconds: float) -> str:
    """What the client reaches against a server that does nothing: the end of what it can show."""
    lanes = 32
    with responder() as site:
        tally = load(site, over_and_over([get_blob(site, "any", "blob")]), lanes=lanes, seconds=seconds)
    spent = 1e6 * tally.client_cpu_seconds / tally.operations
    return (
        f"Load client: {tally.rate:,.0f} gets/s of 1 KiB against a server that does nothing, {lanes} clients in "
        f"{processes_for(lanes)} processes, {spent:.1f} µs of processor time each; {os.cpu_count()} processors."
    )


def _print(results: Sequence[Result], ceiling: str, *, markdown: bool) -> None:
    layout = report.as_markdown if markdown else report.as_text
    print(layout(report.summary(results)))
    print(f"\n{ceiling}\n")
    if not markdown:
        print(report.as_text(report.details(results)))
    _print_problems(results)


def _print_problems(results: Sequence[Result]) -> None:
    for result in results:
        for note in result.notes:
            print(f"\n{result.name}: {note}")
        for problem in sorted(set(result.errors))[:5]:
            print(f"\nFAILED {result.name}: {problem}")


if __name__ == "__main__":
    sys.exit(main())
