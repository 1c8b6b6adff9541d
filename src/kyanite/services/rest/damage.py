"""Reporting that a request has met damaged data."""

from kyanite.engine.api import Damaged
from kyanite.model import damage
from kyanite.wire.http import Request


def report(request: Request, damaged: Damaged) -> None:
    damage.reports.add(
        damaged,
        request_id=request.request_id,
        account=request.account,
        operation=request.operation,
        method=request.method,
        path=request.path,
    )
