"""What is kept of runs: a JSON line for each, with the machine and the commit it was made on.

Every run is added to a file of the checkout that git ignores. Runs that the README shows are copied to one that is
committed. No line names a host, a user or a path.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from bench.report.results import Measure, Result

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "bench" / "history.jsonl"
LOCAL = ROOT / ".bench-history.jsonl"
DIGITS = 5
"""So many digits of a figure are kept."""


class Machine(Struct, frozen=True):
    """What figures depend on."""

    processor: str
    cores: int
    kernel: str
    python: str


class Figures(Struct, frozen=True, omit_defaults=True):
    """One server in one row: a value for each round, and medians of the rest. Times are for one operation."""

    rounds: tuple[float, ...]
    server_us: float | None = None
    """Processor time of all its processes, in their own code and in the kernel."""
    kernel_us: float | None = None
    """The kernel's part of it."""
    client_us: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    headroom: float | None = None

    @property
    def median(self) -> float:
        return median(self.rounds)

    @property
    def spread(self) -> float:
        """Half of the distance between the lowest and the highest, as a part of the median."""
        return (max(self.rounds) - min(self.rounds)) / 2 / self.median if self.median else 0.0


class RowRecord(Struct, frozen=True, omit_defaults=True):
    """One row of a run. ``verdict`` is pass, miss, FAILED, or nothing where there is no bar to judge by."""

    name: str
    title: str
    unit: str
    servers: dict[str, Figures]
    clients: int | None = None
    client: str = ""
    bars: tuple[str, ...] = ()
    verdict: str = ""

    def ratio(self, peer: str) -> float | None:
        """Kyanite's median over that of the peer; None where one of them is missing, or less is better."""
        ours, theirs = self.servers.get("kyanite"), self.servers.get(peer)
        if self.clients is None:
            return None
        return ours.median / theirs.median if ours and theirs and theirs.median else None


class Stage(Struct, frozen=True):
    """A server with so many blobs. ``peak_mib`` is the highest RSS of any one process since the previous stage."""

    server: str
    blobs: int
    puts_per_second: float
    gets_per_second: float
    peak_mib: float
    pss_mib: float
    disk_mib: float
    restart_seconds: float
    errors: tuple[str, ...]


class RunRecord(Struct, frozen=True, omit_defaults=True):
    """One run."""

    at: str
    commit: str
    form: str
    """Interpreted or compiled."""
    machine: Machine
    versions: dict[str, str]
    """Of the other servers and of the client."""
    seconds: float
    rounds: int
    rows: tuple[RowRecord, ...]
    note: str = ""
    growth: tuple[Stage, ...] = ()
    """Of a run that filled stores instead."""


def row_record(result: Result) -> RowRecord:
    return RowRecord(
        name=result.name,
        title=result.title,
        unit=result.unit,
        servers={
            name: _figures(rounds, result.measures.get(name, ())) for name, rounds in result.values.items()
        },
        clients=result.lanes,
        client=result.client,
        bars=tuple(str(bar) for bar in result.bars),
        verdict=result.verdict,
    )


def _figures(rounds: Sequence[float], measures: Sequence[Measure]) -> Figures:
    values = tuple(_short(value) for value in rounds)
    if not measures:
        return Figures(values)
    return Figures(
        rounds=values,
        server_us=_short(median(one.server_user_us + one.server_system_us for one in measures)),
        kernel_us=_short(median(one.server_system_us for one in measures)),
        client_us=_short(median(one.client_us for one in measures)),
        p50_ms=_short(median(one.p50_ms for one in measures)),
        p99_ms=_short(median(one.p99_ms for one in measures)),
        headroom=_short(median(one.headroom for one in measures)),
    )


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def load(path: Path) -> list[RunRecord]:
    """All runs of a file, the oldest first."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=RunRecord) for line in lines]


def add(path: Path, run: RunRecord) -> None:
    with path.open("ab") as file:
        file.write(msgspec.json.encode(run) + b"\n")


def publish(rows: Iterable[str]) -> RunRecord:
    """Copy the last run of this checkout, which must have all these rows, to the file that is committed."""
    runs = [run for run in load(LOCAL) if run.rows]
    if not runs:
        raise SystemExit("There is no run to publish: make bench makes one.")
    run = completed(runs)
    missing = set(rows) - {row.name for row in run.rows if row.verdict != "FAILED"}
    if missing:
        raise SystemExit(f"The last run lacks {len(missing)} rows or failed in them: {min(missing)} …")
    if run not in load(PUBLISHED):
        add(PUBLISHED, run)
    return run


def completed(runs: Sequence[RunRecord]) -> RunRecord:
    """The last run, with the earlier ones that it continues: of the same commit and machine, and as long.

    A peer that ends in one row fails in all that follow. They can be measured again on their own.
    """
    whole = last = runs[-1]
    notes = [last.note]
    for run in reversed(runs[:-1]):
        if _kind(run) != _kind(last):
            break
        newer = {row.name: row for row in whole.rows if row.verdict != "FAILED"}
        rows = [newer.pop(row.name, row) for row in run.rows]
        whole = msgspec.structs.replace(
            run, rows=(*rows, *newer.values()), versions=run.versions | whole.versions
        )
        notes.insert(0, run.note)
    if len(notes) > 1:
        notes.append("Rows that failed were measured again.")
    return msgspec.structs.replace(whole, note=" ".join(filter(None, notes)))


def _kind(run: RunRecord) -> tuple[object, ...]:
    return run.commit, run.form, run.machine, run.seconds, run.rounds


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")


def this_machine(python: str) -> Machine:
    """The processor's name is that of /proc/cpuinfo, which not every processor has there."""
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    processor = found[1].strip() if found else platform.machine()
    kernel = platform.release().partition("-")[0]
    return Machine(processor=processor, cores=os.cpu_count() or 1, kernel=kernel, python=python)


def this_commit() -> str:
    """The commit of the checkout, with a plus if its sources were changed since."""
    commit = _output("git", "rev-parse", "--short=10", "HEAD")
    return f"{commit}+" if _output("git", "status", "--porcelain", "src") else commit


def form_of(version: str) -> str:
    """By what ``kyanite --version`` prints."""
    return "compiled" if re.search(r"\bcompiled\b", version) else "interpreted"


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
