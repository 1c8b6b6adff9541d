"""The load client: many lanes in a few processes, each an ``epoll`` loop over raw sockets.

It must be much faster than what it measures. It builds nothing it can build before, follows answers only to
their end, and reads its own processor time, so that every figure comes with what the client spent on it.
"""

import gc
import os
import pickle
import select
import signal
import traceback
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter, process_time

from bench.load.lane import Lane, Work
from bench.load.site import Site

LaneWork = Callable[[int], Work]
"""Makes the work of the lane with that number."""

NAME = "sockets"
MAX_SILENCE_SECONDS = 120.0
"""How long all lanes may wait without an answer before they count as errors."""

_TO_RECEIVE = select.EPOLLIN
_TO_SEND = select.EPOLLIN | select.EPOLLOUT


@dataclass(slots=True)
class Tally:
    """What was done. The time runs from the first request to the last answer.

    ``latencies`` has that of every request, or as many quantiles of them.
    """

    operations: float = 0.0
    seconds: float = 0.0
    client_cpu_seconds: float = 0.0
    latencies: "array[float]" = field(default_factory=lambda: array("d"))
    errors: list[str] = field(default_factory=list)
    client: str = NAME

    @property
    def rate(self) -> float:
        return self.operations / self.seconds if self.seconds else 0.0

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def add(self, other: "Tally") -> None:
        """Take in what another process did at the same time."""
        self.operations += other.operations
        self.seconds = max(self.seconds, other.seconds)
        self.client_cpu_seconds += other.client_cpu_seconds
        self.latencies.extend(other.latencies)
        self.errors.extend(other.errors)


def processes_for(lanes: int) -> int:
    """How many processes share that many lanes: never more than there are processors, and never idle ones."""
    return max(1, min(os.cpu_count() or 1, 4, lanes // 4))


def load(
    site: Site, lane_work: LaneWork, *, lanes: int, seconds: float | None, requests_per_operation: int = 1
) -> Tally:
    """Keep all lanes busy for that long (None: until their work is over), and let each finish what it began."""
    count = processes_for(lanes)
    crews = [Crew(site, lane_work, range(index, lanes, count)) for index in range(count)]
    total = Tally()
    try:
        for crew in crews:
            crew.wait_until_connected()
        for crew in crews:
            crew.go(seconds, requests_per_operation)
        for crew in crews:
            total.add(crew.result())
    finally:
        for crew in crews:
            crew.end()
    return total


class Crew:
    """One forked process and its lanes.

    A fork, because works are closures over whatever a row has prepared.
    """

    def __init__(
        self, site: Site, lane_work: LaneWork, numbers: Sequence[int], lane: type[Lane] = Lane
    ) -> None:
        order_read, order_write = os.pipe()
        news_read, news_write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(order_write)
            os.close(news_read)
            _serve(site, lane_work, numbers, order_read, news_write, lane)
        os.close(order_read)
        os.close(news_write)
        self._orders = os.fdopen(order_write, "wb", 0)
        self._news = os.fdopen(news_read, "rb")

    def wait_until_connected(self) -> None:
        if (news := pickle.load(self._news)) is not None:
            raise RuntimeError(f"the load client could not start: {news}")

    def go(self, seconds: float | None, requests_per_operation: int) -> None:
        self._orders.write(pickle.dumps((seconds, requests_per_operation)))

    def result(self) -> Tally:
        news = pickle.load(self._news)
        if not isinstance(news, Tally):
            raise RuntimeError(f"the load client failed: {news}")
        return news

    def end(self) -> None:
        self._orders.close()
        self._news.close()
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _serve(
    site: Site, lane_work: LaneWork, numbers: Sequence[int], orders: int, news: int, lane: type[Lane]
) -> None:
    """The program of a forked process: connect, report that, wait for the order, drive, report, and end."""
    result: object = None
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        lanes = [lane(site.host, site.port, lane_work(number)) for number in numbers]
        gc.collect()
        gc.freeze()
        gc.disable()
        _report(news, None)
        if order := os.read(orders, 4096):
            seconds, requests_per_operation = pickle.loads(order)
            result = drive(lanes, seconds, requests_per_operation)
    except BaseException:
        result = traceback.format_exc()
    _report(news, result)
    os._exit(0)


def _report(news: int, result: object) -> None:
    left = memoryview(pickle.dumps(result))
    while left:
        left = left[os.write(news, left) :]


def drive(lanes: Sequence[Lane], seconds: float | None, requests_per_operation: int) -> Tally:
    """Run these lanes in this process until the time is over and every lane has its last answer."""
    poller = select.epoll()
    busy = {lane.socket.fileno(): lane for lane in lanes}
    cpu_at_start, began_at = process_time(), perf_counter()
    ends_at = began_at + seconds if seconds is not None else float("inf")
    for number, lane in busy.items():
        lane.begin()
        poller.register(number, _TO_SEND if lane.outgoing else _TO_RECEIVE)
    while busy:
        events = poller.poll(MAX_SILENCE_SECONDS)
        for number, event in events:
            lane = busy[number]
            try:
                goes_on = _attend(lane, event, poller, ends_at, requests_per_operation)
            except OSError as problem:
                lane.errors.append(str(problem))
                goes_on = False
            if not goes_on:
                poller.unregister(number)
                del busy[number]
        if not events:
            for lane in busy.values():
                lane.errors.append("no answer in time")
            break
    return _tally(lanes, began_at, process_time() - cpu_at_start, requests_per_operation)


def _attend(
    lane: Lane, event: int, poller: select.epoll, ends_at: float, requests_per_operation: int
) -> bool:
    """Handle an event of a lane's socket; False when the lane is done."""
    if event & select.EPOLLOUT:
        lane.push()
        if not lane.outgoing:
            poller.modify(lane.socket.fileno(), _TO_RECEIVE)
        return True
    if not lane.receive():
        return True
    more = lane.finish()
    if not more or (lane.answered_at >= ends_at and lane.answered % requests_per_operation == 0):
        return False
    lane.begin()
    if lane.outgoing:
        poller.modify(lane.socket.fileno(), _TO_SEND)
    return True


def _tally(lanes: Sequence[Lane], began_at: float, cpu_seconds: float, requests_per_operation: int) -> Tally:
    seconds = max(lane.answered_at for lane in lanes) - began_at
    tally = Tally(seconds=max(seconds, 0.0), client_cpu_seconds=cpu_seconds)
    for lane in lanes:
        tally.operations += lane.answered / requests_per_operation
        tally.latencies.extend(lane.latencies)
        tally.errors.extend(lane.errors)
        lane.socket.close()
    return tally
