"""What happens when a request of SMB is complete: a line in the log, a count for ``/metrics``, or nothing."""

import logging
from collections.abc import Callable

from kyanite.model.requests.tail import Collector, RequestLine
from kyanite.server.observability.metrics import RequestMeter
from kyanite.services.smb.environment import CompletedRequest, OnCompleted
from kyanite.values import Instant
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status

_NAMES = {command.value: command.name for command in Command}
_NO_ERRORS = frozenset(
    (
        Status.SUCCESS,
        Status.PENDING,
        Status.MORE_PROCESSING_REQUIRED,
        Status.NO_MORE_FILES,
        Status.BUFFER_OVERFLOW,
        Status.END_OF_FILE,
        Status.NOTIFY_CLEANUP,
        Status.NOTIFY_ENUM_DIR,
    )
)
"""Statuses with which a request has done what it was to do."""
_log = logging.getLogger("kyanite.requests")


def smb_observer(meter: RequestMeter | None, *, log_requests: bool) -> OnCompleted | None:
    if meter is None and not log_requests:
        return None

    def observe(request: CompletedRequest) -> None:
        operation, status = _NAMES.get(request.command, "unknown"), Status(request.status).name
        if meter is not None:
            meter.count("smb", operation, status, request.seconds)
        if log_requests:
            _log.info(
                "request",
                extra={
                    "service": "smb",
                    "request_id": request.refusal_id,
                    "account": request.account,
                    "operation": operation,
                    "path": f"/{request.share}" if request.share else "",
                    "status": status,
                    "error_code": "" if request.status in _NO_ERRORS else status,
                    "ms": round(request.seconds * 1000, 3),
                    "bytes_in": request.received_bytes,
                    "peer": request.client_address,
                },
            )

    return observe


def smb_collecting(
    collector: Collector, clock: Callable[[], Instant], always: OnCompleted | None
) -> OnCompleted:
    """For those who watch, besides what is always done."""

    def collect(request: CompletedRequest) -> None:
        if always is not None:
            always(request)
        status = Status(request.status).name
        collector.add(
            RequestLine(
                clock(),
                request.refusal_id,
                "smb",
                request.account,
                _NAMES.get(request.command, "unknown"),
                "SMB",
                f"/{request.share}" if request.share else "",
                status,
                "" if request.status in _NO_ERRORS else status,
                request.seconds,
                request.received_bytes,
                0,
                request.client_address,
            )
        )

    return collect
