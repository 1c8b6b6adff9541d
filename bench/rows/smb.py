"""SMB rows: what Samba's smbclient does in each, and how fast it has to be beside Debian's smbd.

The rows of small files work in a directory for each client, those of large files with one file for each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from bench.load.works import KIB, MIB
from bench.report.bars import AtLeast

PLAIN, SIGNED, ENCRYPTED = (f"--client-protection={kind}" for kind in ("off", "sign", "encrypt"))
MANY_CLIENTS = 16
LISTINGS = 5
RECEIVED = "received"
"""The client's folder for small files."""


class Local(NamedTuple):
    """What clients put."""

    files: Mapping[str, int]
    """The bytes of each file."""
    series: Mapping[str, tuple[int, int]]
    """Files that are put together: their number, and the bytes of each."""


FULL = Local(
    {"large": 256 * MIB, "middling": 32 * MIB},
    {"small": (1000, KIB), "few": (250, KIB), "listed": (10_000, 0)},
)
QUICK = Local(
    {"large": 64 * MIB, "middling": 16 * MIB}, {"small": (200, KIB), "few": (100, KIB), "listed": (2_000, 0)}
)

Sessions = list[list[str]]
"""The commands of each client; the clients run at the same time."""
Step = Callable[[str], Sessions]
"""Is given the directory of the round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmbRow:
    """One measurement."""

    name: str
    title: str
    clients: int
    steps: tuple[Step, ...]
    """What is done in the directory of a round. The clock runs during the last one only."""
    units: float
    """What all clients do together in the last step."""
    unit: str
    protection: str = PLAIN
    durability: str = "strict"
    """Of Kyanite."""
    keeps: bool = False
    """All steps but the last are done once, in a directory that serves all rounds."""
    bars: tuple[AtLeast, ...] = ()


def _write(clients: int, name: str) -> Step:
    return lambda directory: [[f"cd {directory}", f"put {name} file{number}"] for number in range(clients)]


def _read(clients: int) -> Step:
    return lambda directory: [[f"cd {directory}", f"get file{number} /dev/null"] for number in range(clients)]


def _make_directories(clients: int) -> Step:
    return lambda directory: [[f"mkdir {directory}/{number}" for number in range(clients)]]


def _in_directories(clients: int, *commands: str) -> Step:
    return lambda directory: [[f"cd {directory}/{number}", "prompt", *commands] for number in range(clients)]


def _large_rows(
    local: Local,
    name: str,
    clients: int,
    write: float | None,
    read: float | None,
    protection: str = PLAIN,
    kind: str = "",
) -> list[SmbRow]:
    size = local.files[name] // MIB
    label = f"{size}m{f'-{kind}' if kind else ''}/{clients}"
    title = f"{size} MiB{f', {kind}' if kind else ''}{' each' if clients > 1 else ''}"
    writing, reading = _write(clients, name), _read(clients)

    def row(verb: str, bar: float | None, *steps: Step) -> SmbRow:
        return SmbRow(
            name=f"smb-{verb}-{label}",
            title=f"{verb} {title}",
            clients=clients,
            steps=steps,
            units=clients * size,
            unit=" MiB/s",
            protection=protection,
            bars=_bars(bar),
        )

    return [row("write", write, writing), row("read", read, writing, reading)]


def _small_rows(local: Local, clients: int, series: str) -> list[SmbRow]:
    make, put = _make_directories(clients), _in_directories(clients, f"mput {series}*")
    works = {
        "put": (make, put),
        "get": (make, put, _in_directories(clients, f"lcd {RECEIVED}", f"mget {series}*")),
        "delete": (make, put, _in_directories(clients, f"del {series}*")),
    }
    return [
        SmbRow(
            name=f"smb-{verb}-1k/{clients}",
            title=f"{verb} files of 1 KiB",
            clients=clients,
            steps=steps,
            units=clients * local.series[series][0],
            unit="/s",
            bars=_bars(1.0),
        )
        for verb, steps in works.items()
    ]


def _flush_rows(rows: Sequence[SmbRow]) -> list[SmbRow]:
    """The same, but what is written need not be on disk before a response, as with other servers."""
    return [
        replace(
            row,
            name=row.name.replace("/", "-flush/"),
            title=f"{row.title}, durable at FLUSH",
            durability="flush",
            bars=_bars(1.0),
        )
        for row in rows
    ]


def _list_row(local: Local) -> SmbRow:
    count = local.series["listed"][0]
    return SmbRow(
        name=f"smb-list-{count}/1",
        title=f"list a directory of {count:,}",
        clients=1,
        steps=(
            _make_directories(1),
            _in_directories(1, "mput listed*"),
            _in_directories(1, *["ls"] * LISTINGS),
        ),
        units=LISTINGS,
        unit="/s",
        keeps=True,
        bars=_bars(1.0),
    )


def _bars(times: float | None) -> tuple[AtLeast, ...]:
    return (AtLeast(times, "smbd"),) if times is not None else ()


def smb_rows(local: Local) -> tuple[SmbRow, ...]:
    plain_rows = _large_rows(local, "large", 1, 0.8, 0.8)
    small_rows = _small_rows(local, 1, "small")
    return (
        *plain_rows,
        *_flush_rows(plain_rows[:1]),
        *_large_rows(local, "large", 1, None, None, SIGNED, "signed"),
        *_large_rows(local, "large", 1, 1.0, 1.0, ENCRYPTED, "encrypted"),
        *_large_rows(local, "middling", MANY_CLIENTS, 1.0, 1.0),
        *small_rows,
        *_flush_rows(small_rows[:1]),
        *_small_rows(local, MANY_CLIENTS, "few"),
        _list_row(local),
    )


SMB_ROWS = smb_rows(FULL)
