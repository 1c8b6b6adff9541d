"""The Azure CLI, service by service."""

from clients import az_blobs, az_files, az_messages
from clients.az import Az
from clients.report import Report
from clients.workspace import Workspace

_CHECKS = (
    ("blob", az_blobs.containers),
    ("blob", az_blobs.blobs),
    ("blob", az_blobs.copies),
    ("blob", az_blobs.trees),
    ("queue", az_messages.queues),
    ("table", az_messages.tables),
    ("file", az_files.shares),
    ("file", az_files.files),
    ("file", az_files.links),
)


def suite(workspace: Workspace, report: Report) -> None:
    az = Az(workspace)
    for service in {service for service, _ in _CHECKS if not workspace.offers(service)}:
        report.not_there(service)
    for service, checks in _CHECKS:
        if workspace.offers(service):
            checks(az, report)
