"""The SMB rows: Samba's smbclient on Kyanite and on Debian's smbd, alternately.

A round is the time of whole sessions, less that of sessions that do nothing. smbd syncs nothing; Kyanite responds to a
write when it is on disk.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.smb.programs import MissingProgramError, program

from bench.load.works import MIB
from bench.report.results import Result
from bench.report.tables import Columns, figure
from bench.rows.smb import RECEIVED, Local, SmbRow
from bench.run import say
from bench.servers import smb_peers
from bench.servers.installs import UnavailableError
from bench.servers.smb_peers import SmbPeer

_HEADINGS = (
    "work",
    "clients",
    "Kyanite",
    "smbd",
    "× smbd",
    "Kyanite from–to",
    "smbd from–to",
    "bar",
    "verdict",
)


def check_installed() -> None:
    """Raises UnavailableError if Samba is not on this machine; the benchmark installs nothing there."""
    try:
        for name in ("smbd", "smbpasswd", "smbclient"):
            program(name)
    except MissingProgramError as problem:
        raise UnavailableError(str(problem)) from None


def run_rows(rows: Sequence[SmbRow], local: Local, rounds: int, parent: Path) -> list[Result]:
    folder = parent / "smb"
    folder.mkdir()
    with ExitStack() as started:
        smbd = started.enter_context(smb_peers.smbd(folder))
        ours = {
            durability: started.enter_context(smb_peers.kyanite(folder, durability))
            for durability in dict.fromkeys(row.durability for row in rows)
        }
        for peer in (smbd, *ours.values()):
            make_local_files(local, peer.folder)
        return [measured(row, [ours[row.durability], smbd], rounds) for row in rows]


def make_local_files(local: Local, folder: Path) -> None:
    """What the clients of a server put."""
    (folder / RECEIVED).mkdir()
    piece = os.urandom(MIB)
    for name, size in local.files.items():
        with (folder / name).open("wb") as file:
            for _ in range(size // MIB):
                file.write(piece)
    for series, (count, size) in local.series.items():
        for number in range(count):
            (folder / f"{series}{number:05}").write_bytes(piece[:size])


def measured(row: SmbRow, peers: Sequence[SmbPeer], rounds: int) -> Result:
    """All rounds of a row. A server that fails ends the row, not the run."""
    result = Result(row.name, row.title, row.unit, row.bars, row.clients)
    say(row.name)
    try:
        idle = {peer.name: peer.idle_seconds(row.clients, row.protection) for peer in peers}
        for number in range(rounds):
            for peer in peers if number % 2 == 0 else reversed(peers):
                took = _round(row, peer, number) - idle[peer.name]
                if took <= 0:
                    raise RuntimeError(f"{peer.name} took no longer than sessions that do nothing")
                result.add(peer.name, row.units / took)
                say(f"  {peer.name:8} {result.values[peer.name][-1]:12,.1f}{row.unit}")
    except (OSError, RuntimeError) as problem:
        result.errors.append(str(problem))
    return result


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
