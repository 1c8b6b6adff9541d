"""What clients may do with the containers whose names begin with ``$``."""

import pytest

from kyanite.rules import system_containers
from kyanite.rules.names import SPECIAL_CONTAINERS
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.blob.service import DEFINITION

WRITES = sorted({op.name for op in DEFINITION.operations if op.access.writes})


def may(container: str, operation: str) -> bool:
    try:
        system_containers.check_write(container, operation)
    except Refused as refusal:
        return refusal.reason is not Reason.AUTHORIZATION_FAILURE
    return True


@pytest.mark.parametrize(
    ("container", "allowed"),
    [
        ("box", set(WRITES)),
        ("$root", set(WRITES)),
        ("$web", set(WRITES)),
        ("$logs", {"Delete Blob"}),
        ("$blobchangefeed", {"Delete Blob", "Delete Container"}),
    ],
)
def test_operations_that_write(container: str, allowed: set[str]) -> None:
    assert {operation for operation in WRITES if may(container, operation)} == allowed


def test_the_operations_in_the_table_exist() -> None:
    for allowed in system_containers.SERVER_WRITTEN.values():
        assert allowed <= set(WRITES)


@pytest.mark.parametrize("special", sorted(SPECIAL_CONTAINERS))
def test_names_that_no_rename_may_have(special: str) -> None:
    for pair in ((special, "box"), ("box", special)):
        with pytest.raises(Refused) as refusal:
            system_containers.check_rename(*pair)
        assert refusal.value.reason is Reason.INVALID_RESOURCE_NAME
    system_containers.check_rename("box", "crate")


def test_what_lists_show() -> None:
    assert {"$logs", "$blobchangefeed"} == system_containers.UNLISTED
    assert {"$blobchangefeed"} == system_containers.NEVER_LISTED
