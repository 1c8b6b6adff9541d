"""AzCopy, service by service."""

from clients import azcopy_blobs, azcopy_shares
from clients.azcopy import AzCopy
from clients.report import Report
from clients.workspace import Workspace

_CHECKS = (
    ("blob", azcopy_blobs.up_and_down),
    ("blob", azcopy_blobs.in_step),
    ("blob", azcopy_blobs.between_containers),
    ("blob", azcopy_blobs.choices),
    ("blob", azcopy_blobs.resumption),
    ("file", azcopy_shares.shares),
    ("file", azcopy_shares.properties),
    ("file", azcopy_shares.links),
)


def suite(workspace: Workspace, report: Report) -> None:
    azcopy = AzCopy(workspace)
    for service in {service for service, _ in _CHECKS if not workspace.offers(service)}:
        report.not_there(service)
    for service, checks in _CHECKS:
        if workspace.offers(service):
            checks(azcopy, report)
