"""What happens when a request is complete: a line in the log, a count for ``/metrics``, or nothing.

The HTTP server calls an observer after each response. Without request logs and an admin port, and while nobody watches
the requests, there is no observer, and no cost.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from kyanite.model.requests.secrets import cut_query
from kyanite.model.requests.tail import PATH_CHARACTERS_MAX, Collector, RequestLine
from kyanite.server.dispatch import Dispatcher
from kyanite.server.http.connection import OnCompleted, OnMalformed
from kyanite.server.observability.metrics import RequestMeter
from kyanite.values import Instant
from kyanite.wire.http import Request

_log = logging.getLogger("kyanite.requests")


def observer(dispatcher: Dispatcher, meter: RequestMeter | None, *, log_requests: bool) -> OnCompleted | None:
    watchers = [
        watcher
        for watcher in (_metering(dispatcher, meter), _logging(dispatcher) if log_requests else None)
        if watcher
    ]
    return all_of(watchers)


def all_of(watchers: Sequence[OnCompleted]) -> OnCompleted | None:
    if len(watchers) < 2:
        return watchers[0] if watchers else None

    def each(request: Request, status: int, seconds: float, sent_bytes: int) -> None:
        for watcher in watchers:
            watcher(request, status, seconds, sent_bytes)

    return each


def collecting(dispatcher: Dispatcher, collector: Collector, clock: Callable[[], Instant]) -> OnCompleted:
    """For those who watch. A request that began before they did is left out: nobody noted when it began."""
    began = time.perf_counter()

    def collect(request: Request, status: int, seconds: float, sent_bytes: int) -> None:
        if time.perf_counter() - seconds < began:
            return
        headers = request.headers
        collector.add(
            RequestLine(
                clock(),
                request.request_id,
                dispatcher.find(request)[0],
                request.account,
                request.operation,
                request.method,
                request.path[:PATH_CHARACTERS_MAX],
                status,
                request.error_code,
                seconds,
                request.body.length or 0,
                sent_bytes,
                request.peer,
                headers.get("user-agent", "")[:PATH_CHARACTERS_MAX],
                headers.get("x-ms-client-request-id", "")[:PATH_CHARACTERS_MAX],
            )
        )

    return collect


def _metering(dispatcher: Dispatcher, meter: RequestMeter | None) -> OnCompleted | None:
    if meter is None:
        return None

    def count(request: Request, status: int, seconds: float, _sent_bytes: int) -> None:
        meter.count(dispatcher.find(request)[0], request.operation or "unknown", status, seconds)

    return count


def log_malformed(services_by_port: Mapping[int, str]) -> OnMalformed:
    """A line for bytes that are no acceptable request: there is no operation, no account and no id to tell."""

    def log(peer: str, local_port: int, status: int, why: str) -> None:
        service = services_by_port.get(local_port, "")
        _log.info("request", extra={"service": service, "status": status, "peer": peer, "why": why})

    return log


def _logging(dispatcher: Dispatcher) -> OnCompleted:
    def log(request: Request, status: int, seconds: float, sent_bytes: int) -> None:
        headers = request.headers
        _log.log(
            logging.INFO,
            "request",
            extra={
                "request_id": request.request_id,
                "service": dispatcher.find(request)[0],
                "account": request.account,
                "operation": request.operation,
                "method": request.method,
                "path": request.path,
                "query": cut_query(request.query),
                "status": status,
                "error_code": request.error_code,
                "ms": round(seconds * 1000, 3),
                "bytes_in": request.body.length,
                "bytes_out": sent_bytes,
                "peer": request.peer,
                "user_agent": headers.get("user-agent", ""),
                "client_request_id": headers.get("x-ms-client-request-id", ""),
            },
        )

    return log
