"""The Azure CLI, service by service."""

from clients import az_blobs, az_files, az_messages
from clients.az import Az
from clients.report import Report
from clients.service_checks import run_checks
from clients.workspace import Workspace

_CHECKS = {
    "blob": (az_blobs.containers, az_blobs.blobs, az_blobs.copies, az_blobs.trees),
    "queue": (az_messages.queues,),
    "table": (az_messages.tables,),
    "file": (az_files.shares, az_files.files, az_files.links),
}


def suite(workspace: Workspace, report: Report) -> None:
    run_checks(Az(workspace), workspace, report, _CHECKS)
