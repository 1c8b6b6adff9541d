"""Does a server stay as fast and as small when there is a lot in it? Fill it, and look at several sizes.

At every size: the rate of 1 KiB puts of new blobs and of gets, both scattered over all the names there are,
the most memory that each process has used while the store grew to that size, and how long a restart takes until the
first answer.
"""

from collections.abc import Sequence
from itertools import count

from bench.load.client import LaneWork, load
from bench.load.lane import Request, Work
from bench.load.works import MIB, get_blob, put_blob
from bench.report.history import Stage
from bench.report.tables import Columns, figure
from bench.rows.blobs import SMALL
from bench.run import say
from bench.servers import installs, processes
from bench.servers.peers import Server

SIZES = (1_000, 100_000, 1_000_000)
LANES = 32
CONTAINER = "growth"
MAX_PEAK_MIB = 150.0
MAX_RESTART_SECONDS = 1.0
MAX_LOSS = 0.20
AZURITE_LIMIT = 100_000
"""More than this takes Azurite too long to wait for."""

_HEADINGS = (
    "server",
    "blobs",
    "puts /s",
    "gets /s",
    "peak MiB of a process",
    "PSS MiB of all",
    "on disk MiB",
    "restart s",
    "",
)


def grow(server: Server, seconds: float, largest: int) -> list[Stage]:
    """Take the server through all sizes up to the largest. It must be running and is left running."""
    limit = min(largest, AZURITE_LIMIT) if server.name == "azurite" else largest
    server.create_container(CONTAINER)
    stages: list[Stage] = []
    stored = 0
    for size in sorted({size for size in SIZES if size <= limit // 2} | {limit}):
        say(f"growth: {server.name} to {size:,} blobs")
        stage = _stage(server, seconds, stored, size)
        say(
            f"  {stage.puts_per_second:,.0f} puts/s, {stage.gets_per_second:,.0f} gets/s, {stage.peak_mib:.0f} MiB"
        )
        stages.append(stage)
        stored = size
    return stages


def table(stages: Sequence[Stage]) -> Columns:
    return [_HEADINGS, *(_line(stage, stages) for stage in stages)]


def verdict(stage: Stage, stages: Sequence[Stage]) -> str:
    """Held against the bars, and against the same server when it was smallest."""
    if stage.errors:
        return "FAILED"
    if stage.server != "kyanite":
        return ""
    first = next(other for other in stages if other.server == stage.server)
    kept = 1 - MAX_LOSS
    misses = [
        word
        for word, missed in (
            ("puts", stage.puts_per_second < kept * first.puts_per_second),
            ("gets", stage.gets_per_second < kept * first.gets_per_second),
            ("memory", stage.peak_mib > MAX_PEAK_MIB),
            ("restart", stage.restart_seconds > MAX_RESTART_SECONDS),
        )
        if missed
    ]
    return f"miss: {', '.join(misses)}" if misses else "pass"


def _stage(server: Server, seconds: float, stored: int, size: int) -> Stage:
    filled = load(server.site, _fill(server, stored, size), lanes=LANES, seconds=None)
    put = load(server.site, _puts(server, size), lanes=LANES, seconds=seconds)
    got = load(server.site, _gets(server, size), lanes=LANES, seconds=seconds)
    memory = processes.memory(server.pids)
    server.stop()
    return Stage(
        server=server.name,
        blobs=size,
        puts_per_second=put.rate,
        gets_per_second=got.rate,
        peak_mib=max(one.peak_kib for one in memory) / 1024,
        pss_mib=sum(one.pss_kib for one in memory) / 1024,
        disk_mib=installs.size_of(server.folder) / MIB,
        restart_seconds=server.start(),
        errors=(*filled.errors, *put.errors, *got.errors),
    )


def _fill(server: Server, start: int, end: int) -> LaneWork:
    def work(lane: int) -> Work:
        request = put_blob(server.site, CONTAINER, "@", SMALL)
        before, after = _around_name(request)
        for number in range(start + lane, end, LANES):
            yield Request(before + _scattered(number) + after, request.expected)

    return work


def _puts(server: Server, size: int) -> LaneWork:
    """New blobs, under names that no other stage uses and no get requests for."""

    def work(lane: int) -> Work:
        request = put_blob(server.site, CONTAINER, f"@-{size}", SMALL)
        before, after = _around_name(request)
        for number in count(lane, LANES):
            yield Request(before + _scattered(number) + after, request.expected)

    return work


def _gets(server: Server, size: int) -> LaneWork:
    def work(lane: int) -> Work:
        request = get_blob(server.site, CONTAINER, "@")
        before, after = _around_name(request)
        for number in count(lane, LANES):
            yield Request(before + _scattered(number * 7_919 % size) + after, request.expected)

    return work


def _around_name(request: Request) -> tuple[bytes, bytes]:
    before, _, after = request.data.partition(b"@")
    return before, after


def _scattered(number: int) -> bytes:
    """A name for each number; neighbouring numbers lie far apart in the order of names."""
    return b"%08x" % (number * 2_654_435_761 % 2**32)


def _line(stage: Stage, stages: Sequence[Stage]) -> list[str]:
    return [
        stage.server,
        f"{stage.blobs:,}",
        figure(stage.puts_per_second),
        figure(stage.gets_per_second),
        figure(stage.peak_mib),
        figure(stage.pss_mib),
        figure(stage.disk_mib),
        figure(stage.restart_seconds),
        verdict(stage, stages),
    ]
