"""Every hostile load of ``bench/hostile`` beside a polite client: it is served meanwhile, no request fails, and the
memory of the workers stays bounded.

The short test counts answers, which do not depend on how fast the machine is. The long one prints how long the polite
client waits (``docs/decisions/0008`` has the table); it is not measured beside other tests, so it judges nothing.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.hostile.load import SHORT, Load, Sizes
from bench.load.client import drive
from bench.load.lane import Work
from bench.servers.peers import Kyanite

from bench import polite
from tests.profiles import examples

POLITE_REQUESTS = 100
BODY_MEMORY_MIB = 48
SLACK_MIB = 100
"""What a worker may need besides, most of it for lists that are being written."""


class SmallServer(Kyanite):
    options = ("--workers", "2", "--body-memory-mib", str(BODY_MEMORY_MIB))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kyanite]:
    started = SmallServer(tmp_path_factory.mktemp("hostile") / "store")
    try:
        started.start()
        polite.prepare(started.sites, SHORT)
        polite.fill(started.sites, SHORT, polite.LOADS)
        yield started
    finally:
        started.stop()
    log = started.folder.with_suffix(".log").read_text()
    assert '"level": "error"' not in log
    assert "process killed" not in log


def some_of(work: Work, count: int) -> Work:
    """The logon of a client, if it has one, and so many requests."""
    answer = None
    for _ in range(count):
        answer = yield next(work) if answer is None else work.send(answer)


def resident_mib(server: Kyanite) -> float:
    """Of the largest process."""
    sizes = []
    for pid in server.pids:
        status = Path(f"/proc/{pid}/status").read_text()
        sizes += [int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")]
    return max(sizes) / 1024


def named(kind: Load) -> str:
    return f"{kind.lanes} × {kind.name}"


@pytest.mark.parametrize("kind", polite.LOADS, ids=named)
def test_a_polite_client_is_served_beside_hostile_ones(server: Kyanite, kind: Load) -> None:
    before = resident_mib(server)
    rates = []
    with polite.under(server.sites, SHORT, kind, seconds=0.5) as crews:
        for protocol in polite.protocols_of(kind):
            one = polite.POLITE[protocol]
            assert one.work is not None
            site = server.sites[one.service]
            work = some_of(one.work(server.sites, SHORT, 0), POLITE_REQUESTS)
            tally = drive([one.lane(site.host, site.port, work)], None, 1)
            assert tally.errors == []
            assert tally.operations == POLITE_REQUESTS
            rates.append(tally.rate)
        growth = resident_mib(server) - before
        others = crews[0].result() if crews else None
    print(f"{named(kind)}: {growth:.0f} MiB")
    assert growth <= BODY_MEMORY_MIB + SLACK_MIB
    if others is not None:
        assert others.errors == []
        assert others.operations >= kind.lanes
        assert rates[0] >= kind.expects * others.rate / kind.lanes


@pytest.mark.skipif(examples(1) == 1, reason="it takes minutes: make test-long")
@pytest.mark.timeout(3600)
def test_figures(tmp_path: Path) -> None:
    sizes = Sizes()
    with polite.prepared(tmp_path, sizes, polite.LOADS) as measured:
        print(polite.HEADINGS)
        found = []
        for each in polite.figures(measured.sites, sizes, polite.LOADS, 5.0):
            print(polite.line(each), flush=True)
            found.append(each)
    assert not [each for each in found if each.errors]
