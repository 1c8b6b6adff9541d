"""AzCopy, service by service."""

from clients import azcopy_blobs, azcopy_shares
from clients.azcopy import AzCopy
from clients.report import Report
from clients.service_checks import run_checks
from clients.workspace import Workspace

_CHECKS = {
    "blob": (
        azcopy_blobs.up_and_down,
        azcopy_blobs.in_step,
        azcopy_blobs.between_containers,
        azcopy_blobs.choices,
        azcopy_blobs.resumption,
    ),
    "file": (azcopy_shares.shares, azcopy_shares.properties, azcopy_shares.links),
}


def suite(workspace: Workspace, report: Report) -> None:
    run_checks(AzCopy(workspace), workspace, report, _CHECKS)
