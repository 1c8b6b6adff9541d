"""Every reason that the File service can meet has a row in its table."""

import re
from pathlib import Path

import pytest

import kyanite
from kyanite.rules.refusals import Reason
from kyanite.services.files.errors import REASONS
from kyanite.services.rest.context import Resource

ROOT = Path(kyanite.__file__).parent
MET = [
    *ROOT.glob("model/files/*.py"),
    ROOT / "model" / "content" / "reading.py",
    *(
        ROOT / "rules" / name
        for name in ("file_names.py", "leases.py", "metadata.py", "names.py", "permissions.py")
    ),
    *ROOT.glob("services/files/*.py"),
]
ELSEWHERE = {"BLOB_NOT_FOUND", "CONTAINER_NOT_FOUND"}
"""Caught where they are raised: a blob that cannot be copied."""


def reasons() -> set[str]:
    found = {name for path in MET for name in re.findall(r"Reason\.([A-Z_]+)", path.read_text())}
    assert len(found) > 40
    return found - ELSEWHERE


@pytest.mark.parametrize("name", sorted(reasons()))
def test_a_reason_has_a_row(name: str) -> None:
    using_leases = {"LEASE_ID_MISSING", "LEASE_ID_MISMATCH", "LEASE_LOST", "LEASE_NOT_PRESENT"}
    for resource in (Resource.SERVICE, Resource.CONTAINER, Resource.OBJECT):
        if resource is not Resource.SERVICE or name not in using_leases:
            assert Reason[name] in REASONS[resource], resource
