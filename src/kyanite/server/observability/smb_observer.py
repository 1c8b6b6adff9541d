"""What happens when a request of SMB is complete: a line in the log, a count for ``/metrics``, or nothing."""

import logging

from kyanite.server.observability.metrics import RequestMeter
from kyanite.services.smb.environment import CompletedRequest, OnCompleted
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status

_NAMES = {command.value: command.name for command in Command}
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
                    "account": request.account,
                    "operation": operation,
                    "status": status,
                    "ms": round(request.seconds * 1000, 3),
                    "bytes_in": request.received_bytes,
                    "peer": request.client_address,
                },
            )

    return observe
