"""Logs and metrics of SMB requests."""

import logging

import pytest

from kyanite.server.observability.metrics import RequestMeter, labels
from kyanite.server.observability.smb_observer import smb_observer
from kyanite.services.smb.environment import CompletedRequest
from kyanite.wire.smb2.header import Command
from kyanite.wire.smb2.status import Status

REQUEST = CompletedRequest(Command.CREATE, Status.OBJECT_NAME_NOT_FOUND, "acme", "192.0.2.7", 0.0015, 120)


def test_neither_logs_nor_metrics() -> None:
    assert smb_observer(None, log_requests=False) is None


def test_requests_are_counted() -> None:
    meter = RequestMeter()
    observe = smb_observer(meter, log_requests=False)
    assert observe is not None
    observe(REQUEST)
    observe(REQUEST)
    observe(REQUEST._replace(command=99, status=Status.INVALID_PARAMETER))
    assert meter.samples()["kyanite_requests_total"] == {
        labels(service="smb", operation="CREATE", status="OBJECT_NAME_NOT_FOUND"): 2,
        labels(service="smb", operation="unknown", status="INVALID_PARAMETER"): 1,
    }


def test_requests_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    observe = smb_observer(None, log_requests=True)
    assert observe is not None
    with caplog.at_level(logging.INFO, "kyanite.requests"):
        observe(REQUEST)
    (record,) = caplog.records
    assert {name: record.__dict__[name] for name in ("service", "account", "operation", "status", "ms")} == {
        "service": "smb",
        "account": "acme",
        "operation": "CREATE",
        "status": "OBJECT_NAME_NOT_FOUND",
        "ms": 1.5,
    }
