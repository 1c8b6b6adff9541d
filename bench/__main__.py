"""``python -m bench``: choose rows and peers, run them, print tables, keep the figures.

Exit code 1 when anything failed.
"""

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from types import FrameType

from bench import growth, smb
from bench.gauges import GAUGES
from bench.load import wrk
from bench.load.client import load, processes_for
from bench.load.responder import responder
from bench.load.works import get_blob, over_and_over
from bench.report import history, tables
from bench.report.history import RowRecord, RunRecord, Stage
from bench.report.results import Result
from bench.rows import ROWS, all_rows
from bench.rows import smb as smb_table
from bench.rows.row import FULL, QUICK
from bench.run import Run, read_gauge, say
from bench.servers import installs
from bench.servers.peers import KINDS, STORES, Kyanite, Server

QUICK_SECONDS = 0.3


def main() -> int:
    if sys.platform != "linux":
        sys.exit("The benchmark needs Linux.")
    options = _options()
    options.commit = history.this_commit()  # Of what is measured, whatever is committed meanwhile.
    if options.chart or options.publish:
        return _redraw(publish=options.publish)
    signal.signal(signal.SIGTERM, _stop)
    if options.installed:
        Kyanite.program = (installs.kyanite(),)
    peers, missing = _available(options.peers.split(","), profiled=options.profile)
    with _folder(options.folder) as folder:
        code = (
            _growth(options, peers, folder) if options.growth else _measure(options, peers, missing, folder)
        )
    for reason in missing:
        print(reason)
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--rows", default="*", help="rows to run, as patterns separated by commas: 'put-*,idle'"
    )
    parser.add_argument("--peers", help="servers to run, separated by commas (default: all)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long one round of one server lasts")
    parser.add_argument("--rounds", type=int, default=3, help="how often every server is visited in a row")
    parser.add_argument(
        "--quick", action="store_true", help=f"one round of {QUICK_SECONDS} seconds, less stored"
    )
    parser.add_argument(
        "--installed", action="store_true", help="measure what pip install . makes instead of the sources"
    )
    parser.add_argument("--growth", nargs="?", type=int, const=growth.SIZES[-1], metavar="BLOBS")
    parser.add_argument("--note", default="", help="a sentence to be kept with the figures")
    parser.add_argument("--publish", action="store_true", help="put the last run into the README")
    parser.add_argument(
        "--chart", action="store_true", help="draw the chart and write the README again, without measuring"
    )
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    parser.add_argument(
        "--profile", action="store_true", help="sample Kyanite with py-spy in the first round"
    )
    parser.add_argument(
        "--folder", type=Path, help="where the stores go; must be on a real disk (default: .bench)"
    )
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, QUICK_SECONDS
    if options.peers is None:
        options.peers = "kyanite" if options.growth else ",".join(KINDS)
    if unknown := set(options.peers.split(",")) - set(KINDS):
        parser.error(f"there is no peer {unknown.pop()}")
    return options


def _redraw(*, publish: bool) -> int:
    from bench.report import readme  # Needs the plotting library, which measuring does not.

    if publish:
        history.publish(row.name for row in ROWS)
    readme.redraw()
    return 0


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
    if not wrk.is_installed():
        missing.append("Without wrk: every row was driven by our own client.")
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


def _measure(options: argparse.Namespace, peers: Sequence[str], missing: list[str], folder: Path) -> int:
    patterns = options.rows.split(",")
    every = all_rows(QUICK if options.quick else FULL)
    rows = [row for row in every if _chosen(row.name, patterns)]
    stores = [peer for peer in peers if peer in STORES]
    results: list[Result] = []
    if rows:
        with _started(peers, folder) as servers:
            run = Run(servers, options.seconds, options.rounds, profiled=options.profile)
            results += [run.row(row) for row in rows]
    chosen_gauges = [
        one for one in GAUGES if _chosen(one.name, patterns) and not (options.quick and one.slow)
    ]
    results += [read_gauge(one, stores, options.rounds, folder) for one in chosen_gauges]
    smb_results = _smb_results(options, missing, folder) if "kyanite" in peers else []
    if results or smb_results:
        _report(options, peers, results, smb_results)
    return 1 if any(result.errors for result in (*results, *smb_results)) else 0


def _smb_results(options: argparse.Namespace, missing: list[str], folder: Path) -> list[Result]:
    """The rows of SMB, whose peer is another one."""
    local = smb_table.QUICK if options.quick else smb_table.FULL
    rows = [row for row in smb_table.smb_rows(local) if _chosen(row.name, options.rows.split(","))]
    if not rows:
        return []
    try:
        smb.check_installed()
    except installs.UnavailableError as problem:
        missing.append(f"Without the rows of SMB: {problem}")
        return []
    return smb.run_rows(rows, local, options.rounds, folder)


def _report(
    options: argparse.Namespace,
    peers: Sequence[str],
    results: Sequence[Result],
    smb_results: Sequence[Result],
) -> None:
    """Print the tables, and keep the figures."""
    record = _record(options, peers, [history.row_record(result) for result in (*results, *smb_results)])
    layout = tables.as_markdown if options.markdown else tables.as_text
    own = record.rows[: len(results)]
    print(f"{tables.heading(record)}\n")
    if own:
        print(layout(tables.summary(own)))
        print(f"\n{_client_ceiling()}\n")
        if not options.markdown:
            print(tables.as_text(tables.details(own)))
    if smb_results:
        print(f"\n{layout(smb.table(smb_results))}")
    _print_problems((*results, *smb_results))
    if not options.profile:
        history.add(history.LOCAL, record)


def _record(
    options: argparse.Namespace,
    peers: Sequence[str],
    rows: Sequence[RowRecord],
    stages: Sequence[Stage] = (),
) -> RunRecord:
    return RunRecord(
        at=history.now(),
        commit=options.commit,
        form=_form(),
        machine=history.this_machine(platform.python_version()),
        versions=_versions(peers),
        seconds=options.seconds,
        rounds=options.rounds,
        rows=tuple(rows),
        note=options.note,
        growth=tuple(stages),
    )


def _form() -> str:
    printed = subprocess.run([*Kyanite.program, "--version"], capture_output=True, text=True, check=True)
    return history.form_of(printed.stdout)


def _versions(peers: Sequence[str]) -> dict[str, str]:
    versions: dict[str, str] = {}
    if "azurite" in peers:
        versions |= {"Azurite": installs.AZURITE_VERSION, "Node": installs.NODE_VERSION}
    if "nginx" in peers:
        versions["nginx"] = installs.version_of(installs.nginx(), "-v")
    if wrk.is_installed():
        versions["wrk"] = installs.version_of(wrk.NAME, "-v")
    return versions


def _growth(options: argparse.Namespace, peers: Sequence[str], folder: Path) -> int:
    stages: list[Stage] = []
    for peer in peers:
        if peer in STORES:
            with _started([peer], folder) as (server,):
                stages += growth.grow(server, options.seconds, options.growth)
    history.add(history.LOCAL, _record(options, peers, [], stages))
    table = growth.table(stages)
    print(tables.as_markdown(table) if options.markdown else tables.as_text(table))
    for stage in stages:
        for problem in stage.errors[:3]:
            print(f"FAILED {stage.server} at {stage.blobs:,}: {problem}")
    return 1 if any(stage.errors for stage in stages) else 0


def _chosen(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _client_ceiling() -> str:
    """What our own client reaches against a server that does nothing: the end of what it can show."""
    lanes = 32
    with responder() as site:
        tally = load(site, over_and_over([get_blob(site, "any", "blob")]), lanes=lanes, seconds=1.0)
    spent = 1e6 * tally.client_cpu_seconds / tally.operations
    return (
        f"Our own client: {tally.rate:,.0f} gets/s of 1 KiB against a server that does nothing, {lanes} clients in "
        f"{processes_for(lanes)} processes, {spent:.1f} µs of processor time each; {os.cpu_count()} processors."
    )


def _print_problems(results: Sequence[Result]) -> None:
    for result in results:
        for note in result.notes:
            print(f"\n{result.name}: {note}")
        for problem in sorted(set(result.errors))[:5]:
            print(f"\nFAILED {result.name}: {problem}")


if __name__ == "__main__":
    sys.exit(main())
