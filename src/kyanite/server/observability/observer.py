"""What happens when a request is complete: a line in the log, a count for ``/metrics``, or nothing.

The HTTP server calls an observer after each response. Without request logs and an admin port there is no observer, and
no cost.
"""

import logging

from kyanite.server.dispatch import Dispatcher
from kyanite.server.http.connection import OnCompleted
from kyanite.server.observability.logs import cut_query
from kyanite.server.observability.metrics import RequestMeter
from kyanite.wire.http import Request

_log = logging.getLogger("kyanite.requests")


def observer(dispatcher: Dispatcher, meter: RequestMeter | None, *, log_requests: bool) -> OnCompleted | None:
    watchers = [
        watcher
        for watcher in (_metering(dispatcher, meter), _logging(dispatcher) if log_requests else None)
        if watcher
    ]
    if len(watchers) < 2:
        return watchers[0] if watchers else None

    def both(request: Request, status: int, seconds: float, sent_bytes: int) -> None:
        for watcher in watchers:
            watcher(request, status, seconds, sent_bytes)

    return both


def _metering(dispatcher: Dispatcher, meter: RequestMeter | None) -> OnCompleted | None:
    if meter is None:
        return None

    def count(request: Request, status: int, seconds: float, _sent_bytes: int) -> None:
        meter.count(dispatcher.find(request)[0], request.operation or "unknown", status, seconds)

    return count


def _logging(dispatcher: Dispatcher) -> OnCompleted:
    def log(request: Request, status: int, seconds: float, sent_bytes: int) -> None:
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
                "ms": round(seconds * 1000, 3),
                "bytes_in": request.body.length,
                "bytes_out": sent_bytes,
                "peer": request.peer,
            },
        )

    return log
