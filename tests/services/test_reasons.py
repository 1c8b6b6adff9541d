"""Every error that a service can meet has a row in its tables, for every kind of resource; and no row is idle."""

from pathlib import Path

import pytest

import kyanite
from kyanite.rules.refusals import Reason
from kyanite.services.blob.service import DEFINITION as BLOB
from kyanite.services.files.service import DEFINITION as FILES
from kyanite.services.queue.service import DEFINITION as QUEUE
from kyanite.services.rest import errors as common
from kyanite.services.rest.context import Resource
from kyanite.services.rest.definition import ServiceDefinition
from kyanite.services.smb.statuses import STATUSES
from kyanite.services.table.service import DEFINITION as TABLE
from kyanite.wire.smb2.status import Status
from tests.services.reachable_errors import reachable_errors

ROOT = Path(kyanite.__file__).parent
SMB = ROOT / "services" / "smb"
SERVICES = {"blob": BLOB, "files": FILES, "queue": QUEUE, "table": TABLE}
LEASE_USES = set(common.lease_uses("Blob", "blob"))
"""A container, blob, share or file is leased, never a service."""

SMB_ONLY = {
    Reason.ACCESS_DENIED,
    Reason.BAD_IMPERSONATION_LEVEL,
    Reason.FILE_IS_A_DIRECTORY,
    Reason.HANDLE_CLOSED,
    Reason.CREATE_GUID_IN_USE,
    Reason.LEASE_KEY_IN_USE,
    Reason.LEASE_KEY_NOT_FOUND,
    Reason.INVALID_LOCK_RANGE,
    Reason.INVALID_PARAMETER,
    Reason.NOT_A_DIRECTORY,
    Reason.NOT_SUPPORTED,
    Reason.PATH_OUTSIDE_SHARE,
    Reason.PRIVILEGE_NOT_HELD,
    Reason.SNAPSHOT_IS_READ_ONLY,
    Reason.LOCK_NOT_GRANTED,
    Reason.HANDLE_LIMIT_REACHED,
    Reason.LOCK_LIMIT_REACHED,
}
"""Requests over REST open no handles and take no locks."""

OPERATOR_ONLY = {Reason.PROTECTION_CANNOT_CHANGE}
"""Clients cannot change what is refused for these reasons."""

NEVER_OVER_SMB = {
    # An SMB client names no lease, and takes none of this kind;
    *common.LEASE_ACTIONS,
    Reason.LEASE_ID_MISMATCH,
    Reason.LEASE_LOST,
    Reason.LEASE_NOT_PRESENT,
    # it cannot connect to shares with links, owners and modes;
    Reason.SHARE_PROTOCOL_MISMATCH,
    # opening checks what REST checks in its own transaction;
    Reason.PATH_TYPE_MISMATCH,
    Reason.PERMISSION_MISMATCH,
    # no client names a descriptor by its key, and no name of a share is wrong, only missing.
    Reason.PERMISSION_NOT_FOUND,
    Reason.NAME_LENGTH_OUT_OF_RANGE,
    # A WRITE makes a file longer, and COPYCHUNK has a status of its own for what the source does not have.
    Reason.INVALID_RANGE,
}

CAUGHT = {
    "blob": {
        # model/copy_sources.py catches what is wrong with a file that is the source of a copy,
        Reason.DELETE_PENDING,
        Reason.FILE_LOCK_CONFLICT,
        Reason.PARENT_NOT_FOUND,
        Reason.PATH_NOT_FOUND,
        Reason.PATH_TYPE_MISMATCH,
        Reason.SHARE_NOT_FOUND,
        Reason.SHARE_SNAPSHOT_NOT_FOUND,
        Reason.SHARING_VIOLATION,
        # and services/blob/source.py what is wrong with its path.
        Reason.INVALID_PATH_NAME,
    },
    "files": {
        # model/files/copy.py catches what is wrong with a blob that is the source of a copy.
        Reason.BLOB_ARCHIVED,
        Reason.BLOB_BEING_REHYDRATED,
        Reason.BLOB_NOT_FOUND,
        Reason.CONTAINER_NOT_FOUND,
    },
    "queue": set[Reason](),
    "table": set[Reason](),
}


def met_reasons(service: str) -> set[Reason]:
    return {error for error in reachable_errors(service) if isinstance(error, Reason)} - SMB_ONLY


def kinds_of(definition: ServiceDefinition) -> set[Resource]:
    return {Resource.SERVICE} | {op.resource for op in definition.operations}


@pytest.mark.parametrize("service", SERVICES)
def test_every_reason_has_a_row(service: str) -> None:
    met = met_reasons(service) - CAUGHT[service]
    assert len(met) >= 20
    for kind in kinds_of(SERVICES[service]):
        expected = met - LEASE_USES if kind is Resource.SERVICE else met
        missing = expected - set(SERVICES[service].reasons[kind])
        assert not {reason: reachable_errors(service)[reason] for reason in missing}, kind


@pytest.mark.parametrize("service", SERVICES)
def test_every_row_can_be_met_or_is_shared(service: str) -> None:
    shared = set(common.REASONS) | set(common.LEASE_ACTIONS)
    for kind, rows in SERVICES[service].reasons.items():
        assert set(rows) - shared <= met_reasons(service) - CAUGHT[service], kind


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_caught_can_be_raised(service: str) -> None:
    assert CAUGHT[service] <= met_reasons(service)


@pytest.mark.parametrize("service", SERVICES)
def test_every_code_has_a_row(service: str) -> None:
    met = {error for error in reachable_errors(service) if isinstance(error, str)}
    assert len(met) >= 15
    assert not {code: reachable_errors(service)[code] for code in met - set(SERVICES[service].codes)}


def test_every_reason_is_met_by_a_service() -> None:
    met = set[Reason]().union(*(met_reasons(service) for service in SERVICES))
    assert met == set(Reason) - SMB_ONLY - OPERATOR_ONLY


def test_what_only_smb_meets_is_raised_and_has_no_row() -> None:
    sources = [*(ROOT / "model" / "files").rglob("*.py"), *(ROOT / "rules").glob("*.py"), *SMB.glob("*.py")]
    text = "".join(path.read_text() for path in sources)
    assert [reason for reason in SMB_ONLY if f"Refused(Reason.{reason.name})" not in text] == []
    rows = {reason for service in SERVICES.values() for table in service.reasons.values() for reason in table}
    assert not rows & SMB_ONLY


def test_every_reason_that_smb_meets_has_a_status() -> None:
    met = {error for error in reachable_errors("smb") if isinstance(error, Reason)}
    assert len(met) >= 20
    missing = met - NEVER_OVER_SMB - set(STATUSES)
    assert not {reason: reachable_errors("smb")[reason] for reason in missing}
    assert not NEVER_OVER_SMB & set(STATUSES)


def test_every_code_that_smb_meets_is_a_status() -> None:
    met = {error for error in reachable_errors("smb") if isinstance(error, str)}
    assert met - set(Status.__members__) == set()


def test_every_shared_row_is_met_by_several_services() -> None:
    counts = {
        reason: sum(reason in met_reasons(service) for service in SERVICES) for reason in common.REASONS
    }
    assert {reason for reason, count in counts.items() if count < 2} == set()
