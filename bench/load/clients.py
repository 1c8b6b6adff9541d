"""Which client makes the load: wrk for a plan, if it is installed, and our own for the rest."""

from bench.load import client, wrk
from bench.load.client import LaneWork, Tally
from bench.load.plan import Plan
from bench.load.site import Site


def load(
    site: Site, work: LaneWork | Plan, *, lanes: int, seconds: float, requests_per_operation: int = 1
) -> Tally:
    if isinstance(work, Plan) and wrk.is_installed():
        return wrk.load(
            site, work, lanes=lanes, seconds=seconds, requests_per_operation=requests_per_operation
        )
    return by_sockets(site, work, lanes=lanes, seconds=seconds, requests_per_operation=requests_per_operation)


def by_sockets(
    site: Site, work: LaneWork | Plan, *, lanes: int, seconds: float, requests_per_operation: int = 1
) -> Tally:
    """By our own client, which checks the status of every answer."""
    lane_work = work.lane_work() if isinstance(work, Plan) else work
    return client.load(
        site, lane_work, lanes=lanes, seconds=seconds, requests_per_operation=requests_per_operation
    )
