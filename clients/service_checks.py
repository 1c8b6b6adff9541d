"""Runs the checks of a tool, service by service."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from clients.report import Report
from clients.workspace import Workspace

Tool = TypeVar("Tool")


def run_checks(
    tool: Tool,
    workspace: Workspace,
    report: Report,
    checks: Mapping[str, Sequence[Callable[[Tool, Report], None]]],
) -> None:
    """Run the checks of every service that is offered, and report the others as missing."""
    for service, of_service in checks.items():
        if not workspace.offers(service):
            report.not_there(service)
            continue
        for check in of_service:
            check(tool, report)
