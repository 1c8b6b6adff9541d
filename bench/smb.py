"""``python -m bench.smb``: Samba's smbclient on Kyanite and on Debian's smbd, alternately. Exit code 1 on errors.

A round is the time of whole sessions, less that of sessions that do nothing. smbd syncs nothing; Kyanite responds to a
write when it is on disk.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median

from bench import installs, smb_peers
from bench.report import Columns, as_markdown, as_text, figure
from bench.results import Result
from bench.run import say
from bench.smb_peers import SmbPeer
from bench.smb_rows import LOCAL_FILES, LOCAL_SERIES, RECEIVED, SMB_ROWS, SmbRow
from bench.works import MIB

_HEADINGS = ("work", "clients", "Kyanite", "smbd", "× smbd", "lowest–highest", "", "bar", "verdict")
_IDLE_ROUNDS = 3


def main() -> int:
    options = _options()
    rows = [row for row in SMB_ROWS if any(fnmatchcase(row.name, one) for one in options.rows.split(","))]
    installs.HOME.mkdir(parents=True, exist_ok=True)
    parent = options.folder or installs.HOME
    with (
        tempfile.TemporaryDirectory(prefix="smb-", dir=parent, ignore_cleanup_errors=True) as folder,
        ExitStack() as started,
    ):
        peers = [
            started.enter_context(smb_peers.kyanite(Path(folder))),
            started.enter_context(smb_peers.smbd(Path(folder))),
        ]
        for peer in peers:
            make_local_files(peer.folder)
        results = [measured(row, peers, options.rounds) for row in rows]
    layout = as_markdown if options.markdown else as_text
    print(layout(table(results)))
    for result in results:
        for problem in result.errors[:3]:
            print(f"FAILED {result.name}: {problem}")
    return 1 if any(result.errors for result in results) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.smb", description=__doc__)
    parser.add_argument("--rows", default="*", help="rows to run, as patterns separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="how often every server is visited in a row")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--folder", type=Path, help="where the stores go (default: .bench)")
    return parser.parse_args()


def make_local_files(folder: Path) -> None:
    """What the clients of a server put."""
    (folder / RECEIVED).mkdir()
    piece = os.urandom(MIB)
    for name, size in LOCAL_FILES.items():
        with (folder / name).open("wb") as file:
            for _ in range(size // MIB):
                file.write(piece)
    for series, (count, size) in LOCAL_SERIES.items():
        for number in range(count):
            (folder / f"{series}{number:05}").write_bytes(piece[:size])


def measured(row: SmbRow, peers: Sequence[SmbPeer], rounds: int) -> Result:
    """All rounds of a row. A server that fails ends the row, not the run."""
    result = Result(row.name, row.title, row.unit, row.bars, row.clients)
    say(row.name)
    try:
        idle = {peer.name: _idle_seconds(row, peer) for peer in peers}
        for number in range(rounds):
            for peer in peers if number % 2 == 0 else reversed(peers):
                took = _round(row, peer, number) - idle[peer.name]
                result.add(peer.name, row.units / max(took, 0.001))
                say(f"  {peer.name:8} {result.values[peer.name][-1]:12,.1f}{row.unit}")
    except (OSError, RuntimeError) as problem:
        result.errors.append(str(problem))
    return result


def _idle_seconds(row: SmbRow, peer: SmbPeer) -> float:
    """How long as many sessions take that do nothing."""
    times = [peer.seconds([[]] * row.clients, [row.protection]) for _ in range(_IDLE_ROUNDS)]
    return median(times)


def _round(row: SmbRow, peer: SmbPeer, number: int) -> float:
    """The seconds of the last step. What the round has put is deleted afterwards, unless it serves the next ones."""
    name = row.name.replace("/", "-")
    directory = name if row.keeps else f"{name}-{number}"
    if number == 0 or not row.keeps:
        for commands in ([[f"mkdir {directory}"]], *(step(directory) for step in row.steps[:-1])):
            peer.seconds(commands)
    os.sync()
    took = peer.seconds(row.steps[-1](directory), [row.protection])
    if not row.keeps:
        peer.seconds([[f"deltree {directory}"]])
    return took


def table(results: Sequence[Result]) -> Columns:
    return [_HEADINGS, *(_line(result) for result in results)]


def _line(result: Result) -> list[str]:
    medians = result.medians
    ours, theirs = medians.get("kyanite"), medians.get("smbd")
    spreads = [
        f"{figure(min(values))}–{figure(max(values))}"
        for values in (result.values.get(name, [0.0]) for name in ("kyanite", "smbd"))
    ]
    return [
        result.title,
        str(result.lanes or ""),
        figure(ours, result.unit) if ours is not None else "",
        figure(theirs, result.unit) if theirs is not None else "",
        f"{figure(ours / theirs)}×" if ours is not None and theirs else "",
        *spreads,
        ", ".join(str(bar) for bar in result.bars),
        result.verdict,
    ]


if __name__ == "__main__":
    sys.exit(main())
