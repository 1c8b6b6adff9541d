"""SMB rows: what Samba's smbclient does in each, and how fast it has to be beside Debian's smbd.

The rows of small files work in a directory for each client, those of large files with one file for each.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.load.works import KIB, MIB
from bench.report.bars import AtLeast

PLAIN, SIGNED, ENCRYPTED = (f"--client-protection={kind}" for kind in ("off", "sign", "encrypt"))
LOCAL_FILES = {"large": 256 * MIB, "middling": 32 * MIB}
"""What clients put: the bytes of each file."""
LOCAL_SERIES = {"small": (1000, KIB), "few": (250, KIB), "listed": (10_000, 0)}
"""Files that clients put together: their number, and the bytes of each."""
MANY_CLIENTS = 16
LISTINGS = 5
RECEIVED = "received"
"""The client's folder for small files."""

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
    name: str, label: str, title: str, clients: int, write: float | None, read: float | None, protection: str
) -> list[SmbRow]:
    units = clients * LOCAL_FILES[name] / MIB
    common = {"clients": clients, "units": units, "unit": " MiB/s", "protection": protection}
    writing, reading = _write(clients, name), _read(clients)
    return [
        SmbRow(
            name=f"smb-write-{label}/{clients}",
            title=f"write {title}",
            steps=(writing,),
            bars=_bars(write),
            **common,  # type: ignore[arg-type]
        ),
        SmbRow(
            name=f"smb-read-{label}/{clients}",
            title=f"read {title}",
            steps=(writing, reading),
            bars=_bars(read),
            **common,  # type: ignore[arg-type]
        ),
    ]


def _small_rows(clients: int, series: str) -> list[SmbRow]:
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
            units=clients * LOCAL_SERIES[series][0],
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


def _list_row() -> SmbRow:
    return SmbRow(
        name="smb-list-10000/1",
        title="list a directory of 10,000",
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


_PLAIN_ROWS = _large_rows("large", "256m", "256 MiB", 1, 0.8, 0.8, PLAIN)
_SMALL_ROWS = _small_rows(1, "small")

SMB_ROWS: tuple[SmbRow, ...] = (
    *_PLAIN_ROWS,
    *_flush_rows(_PLAIN_ROWS[:1]),
    *_large_rows("large", "256m-signed", "256 MiB, signed", 1, None, None, SIGNED),
    *_large_rows("large", "256m-encrypted", "256 MiB, encrypted", 1, 1.0, 1.0, ENCRYPTED),
    *_large_rows("middling", "32m", "32 MiB each", MANY_CLIENTS, 1.0, 1.0, PLAIN),
    *_SMALL_ROWS,
    *_flush_rows(_SMALL_ROWS[:1]),
    *_small_rows(MANY_CLIENTS, "few"),
    _list_row(),
)
