"""What a ``kill -9`` costs.

Blobs are put until the server is killed, it is started again, and what it lists is compared with what it acknowledged.
"""

import re
from threading import Timer

from bench.load.client import drive
from bench.load.lane import Lane
from bench.load.plan import Plan
from bench.load.single_request import send_request
from bench.load.works import KIB, Content, puts
from bench.servers.peers import Server

CONTAINER = "killed"
LANES = 16
SECONDS = 1.5


def lost_percent(server: Server) -> tuple[float, str]:
    """How many of the acknowledged puts are gone, in percent and in words. The server is left running."""
    server.start()
    server.create_container(CONTAINER)
    acknowledged = _put_until_killed(server)
    server.start()
    lost = acknowledged - _listed(server)
    words = f"{server.name}: {len(lost):,} of {len(acknowledged):,} acknowledged puts were lost"
    return 100 * len(lost) / max(len(acknowledged), 1), words


def _put_until_killed(server: Server) -> set[str]:
    plan = puts(server.site, CONTAINER, Content.of(KIB), "put")
    assert isinstance(plan, Plan)
    work = plan.lane_work()
    lanes = [Lane(server.site.host, server.site.port, work(number)) for number in range(LANES)]
    timer = Timer(SECONDS, server.kill)
    timer.start()
    try:
        drive(lanes, None, 1)
    finally:
        timer.join()
    refused = [error for lane in lanes for error in lane.errors if error.startswith("HTTP")]
    if refused:
        raise RuntimeError(f"{server.name}: {refused[0]}")
    return {f"put-{lane:02}-{number:08}" for lane, one in enumerate(lanes) for number in range(one.answered)}


def _listed(server: Server) -> set[str]:
    """The names of all blobs; none where even the container is gone."""
    names: set[str] = set()
    marker = ""
    while True:
        query = f"restype=container&comp=list{f'&marker={marker}' if marker else ''}"
        try:
            page = send_request(server.site, server.site.head("GET", f"/{CONTAINER}", query), 200).decode()
        except RuntimeError as problem:
            if " 404 " in str(problem):
                return names
            raise
        names.update(re.findall("<Name>([^<]*)</Name>", page))
        found = re.search("<NextMarker>([^<]+)</NextMarker>", page)
        if found is None:
            return names
        marker = found[1]
