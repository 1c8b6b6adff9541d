"""Every built-in role with every operation of every service, by tables that were written from the reference.

A letter stands for an action, and what is before the colon for the resource it is on:

    S  the service        r read, w write, k generate a user delegation key
    C  containers, Q queues, T tables, H shares
                          r read, w write, d delete, g get the ACL, s set the ACL
    B  blobs              r read, w write, a add, d delete, m move, x delete a version, y delete permanently,
                          t read tags, u write tags, f find by tags, i change immutability
    M  messages           r read, w write, a add, d delete, p process
    E  entities           r read, w write, a add, d delete, u update
    F  files              r read, w write, d delete, p modify permissions, o take ownership
    X  files, overriding their permissions
                          r read, w write

``*`` is every action. A need has alternatives, joined by ``|``, of actions that are all needed, joined by ``&``.
"""

import ast
from itertools import product
from pathlib import Path

import pytest

import kyanite
from kyanite.rules.authorization import Access, AccessedResource, RolePrincipal, authorize
from kyanite.rules.refusals import Reason, Refused
from kyanite.rules.roles import ROLES, Caller, Grant, Role
from kyanite.services.blob.service import DEFINITION as BLOB
from kyanite.services.files.service import DEFINITION as FILES
from kyanite.services.queue.service import DEFINITION as QUEUE
from kyanite.services.table.service import DEFINITION as TABLE

SERVICES = {"blob": BLOB, "queue": QUEUE, "table": TABLE, "file": FILES}

EVERY_ROLE = {
    "Storage Blob Data Owner": "blob C:* S:k B:*",
    "Storage Blob Data Contributor": "blob C:rwd S:k B:rwdma",
    "Storage Blob Data Reader": "blob C:r S:k B:r",
    "Storage Blob Delegator": "blob S:k",
    "Storage Queue Data Contributor": "queue Q:rwd M:rwdp",
    "Storage Queue Data Reader": "queue Q:r M:r",
    "Storage Queue Data Message Processor": "queue M:rp",
    "Storage Queue Data Message Sender": "queue M:a",
    "Storage Queue Delegator": "queue S:k",
    "Storage Table Data Contributor": "table T:rwd E:rwdau",
    "Storage Table Data Reader": "table T:r E:r",
    "Storage Table Delegator": "table S:k",
    "Storage File Data Privileged Contributor": "file F:rwdp X:rw",
    "Storage File Data Privileged Reader": "file F:r X:r",
    "Storage File Data SMB Share Reader": "file F:r",
    "Storage File Data SMB Share Contributor": "file F:rwd",
    "Storage File Data SMB Share Elevated Contributor": "file F:rwdp",
    "Storage File Data SMB Admin": "file F:rwdpo X:rw",
    "Storage File Delegator": "file S:k",
    "Storage Account Contributor": "any S:rwk C:* Q:* T:* H:*",
    "Owner": "any S:rwk C:* Q:* T:* H:*",
    "Contributor": "any S:rwk C:* Q:* T:* H:*",
    "Reader": "any S:r C:r Q:r T:r H:r",
}

BLOB_NEEDS = {
    "List Containers": "C:r",
    "Get Blob Service Properties": "S:r",
    "Set Blob Service Properties": "S:w",
    "Get Blob Service Stats": "S:r",
    "Get User Delegation Key": "S:k",
    "Get Account Information": "any",
    "Find Blobs by Tags": "B:f",
    "Create Container": "C:w",
    "Get Container Properties": "C:r",
    "Delete Container": "C:d",
    "Get Container Metadata": "C:r",
    "Set Container Metadata": "C:w",
    "Get Container ACL": "C:g",
    "Set Container ACL": "C:s",
    "List Blobs": "B:r",
    "Lease Container": "C:w",
    "Restore Container": "C:w",
    "Rename Container": "C:w",
    "Copy Blob From URL": "B:w|B:a",
    "Put Blob From URL": "B:w|B:a",
    "Copy Blob": "B:w|B:a",
    "Put Blob": "B:w|B:a",
    "Get Blob": "B:r",
    "Get Blob Properties": "B:r",
    "Delete Blob": "B:d",
    "Get Blob Metadata": "B:r",
    "Set Blob Metadata": "B:w",
    "Set Blob Properties": "B:w",
    "Lease Blob": "B:w",
    "Snapshot Blob": "B:w",
    "Abort Copy Blob": "B:w",
    "Set Blob Tier": "B:w",
    "Undelete Blob": "B:w",
    "Set Blob Expiry": "B:w",
    "Set Blob Immutability Policy": "B:i",
    "Delete Blob Immutability Policy": "B:i",
    "Set Blob Legal Hold": "B:i",
    "Get Blob Tags": "B:t",
    "Set Blob Tags": "B:u",
    "Query Blob Contents": "B:r",
    "Put Block From URL": "B:w|B:a",
    "Put Block": "B:w|B:a",
    "Put Block List": "B:w|B:a",
    "Get Block List": "B:r",
    "Append Block From URL": "B:w|B:a",
    "Append Block": "B:w|B:a",
    "Append Blob Seal": "B:w",
    "Put Page From URL": "B:w",
    "Put Page": "B:w",
    "Get Page Ranges": "B:r",
    "Incremental Copy Blob": "B:w",
    "Blob Batch": "any",
}
QUEUE_NEEDS = {
    "List Queues": "Q:r",
    "Get Queue Service Properties": "S:r",
    "Set Queue Service Properties": "S:w",
    "Get Queue Service Stats": "S:r",
    "Get User Delegation Key": "S:k",
    "Create Queue": "Q:w",
    "Delete Queue": "Q:d",
    "Get Queue Metadata": "Q:r",
    "Set Queue Metadata": "Q:w",
    "Get Queue ACL": "Q:g",
    "Set Queue ACL": "Q:s",
    "Peek Messages": "M:r",
    "Get Messages": "M:p|M:d&M:r",
    "Put Message": "M:a|M:w",
    "Clear Messages": "M:d",
    "Update Message": "M:w",
    "Delete Message": "M:p|M:d",
}
TABLE_NEEDS = {
    "Get Table Service Properties": "S:r",
    "Set Table Service Properties": "S:w",
    "Get Table Service Stats": "S:r",
    "Query Tables": "T:r",
    "Create Table": "T:w",
    "Get Table": "T:r",
    "Delete Table": "T:d",
    "Get Table ACL": "T:g",
    "Set Table ACL": "T:s",
    "Query Entities": "E:r",
    "Insert Entity": "E:a|E:w",
    "Update Entity": "E:u|E:w",
    "Merge Entity": "E:u|E:w",
    "Insert Or Replace Entity": "E:a&E:u|E:w",
    "Insert Or Merge Entity": "E:a&E:u|E:w",
    "Delete Entity": "E:d",
    "Entity Group Transaction": "any",
}
FILE_NEEDS = {
    "List Shares": "H:r",
    "Get File Service Properties": "S:r",
    "Set File Service Properties": "S:w",
    "Get User Delegation Key": "S:k",
    "Create Share": "H:w",
    "Get Share Properties": "H:r",
    "Delete Share": "H:d",
    "Set Share Properties": "H:w",
    "Get Share Metadata": "H:r",
    "Set Share Metadata": "H:w",
    "Get Share ACL": "H:g",
    "Set Share ACL": "H:s",
    "Get Share Stats": "H:r",
    "Lease Share": "H:w",
    "Snapshot Share": "H:w",
    "Restore Share": "H:w",
    "Create Permission": "F:p&X:w",
    "Get Permission": "F:r&X:r",
    "Create Directory": "F:w&X:w",
    "Get Directory Properties": "F:r&X:r",
    "Delete Directory": "F:d&X:w",
    "Set Directory Properties": "F:w&X:w",
    "Get Directory Metadata": "F:r&X:r",
    "Set Directory Metadata": "F:w&X:w",
    "List Directories and Files": "F:r&X:r",
    "Rename Directory": "F:w&X:w",
    "Copy File": "F:w&X:w",
    "Create File": "F:w&X:w",
    "Get File": "F:r&X:r",
    "Get File Properties": "F:r&X:r",
    "Delete File": "F:d&X:w",
    "Set File Properties": "F:w&X:w",
    "Get File Metadata": "F:r&X:r",
    "Set File Metadata": "F:w&X:w",
    "Lease File": "F:w&X:w",
    "Put Range From URL": "F:w&X:w",
    "Put Range": "F:w&X:w",
    "List Ranges": "F:r&X:r",
    "Abort Copy File": "F:w&X:w",
    "Rename File": "F:w&X:w",
    "Create Symbolic Link": "F:w&X:w",
    "Read Symbolic Link": "F:r&X:r",
    "Create Hard Link": "F:w&X:w",
    "List Handles": "F:r&X:r",
    "Force Close Handles": "F:w&X:w",
}
NEEDS = {"blob": BLOB_NEEDS, "queue": QUEUE_NEEDS, "table": TABLE_NEEDS, "file": FILE_NEEDS}
MORE_NEEDS = {("Delete Blob", "?versionid"): "B:x", ("Delete Blob", "?deletetype"): "B:y"}
"""Of rows that a header or parameter distinguishes from others of the name: by name and ``when``."""

# Since when roles are enough, where that is later than for the rest of the service.
LATER: dict[str, dict[str, tuple[str, ...]]] = {
    "blob": {
        "2025-07-05": ("Get Container ACL", "Set Container ACL"),
        "2018-11-09": ("Get User Delegation Key",),
    },
    "queue": {"2026-02-06": ("Get Queue ACL", "Set Queue ACL", "Get User Delegation Key")},
    "table": {"2026-02-06": ("Get Table ACL", "Set Table ACL")},
    "file": {
        "2024-11-04": (
            "List Shares", "Get File Service Properties", "Set File Service Properties", "Create Share",
            "Get Share Properties", "Delete Share", "Set Share Properties", "Get Share Metadata",
            "Set Share Metadata", "Get Share ACL", "Set Share ACL", "Get Share Stats", "Lease Share",
            "Snapshot Share", "Restore Share",
        ),
        "2026-02-06": ("Get User Delegation Key",),
    },
}  # fmt: skip

CASES = [
    (service, op.name, op.when, op.access)
    for service, definition in SERVICES.items()
    for op in definition.operations
]


def need_of(service: str, name: str, when: str) -> str:
    return MORE_NEEDS.get((name, when)) or NEEDS[service][name]


def has(actions: str, one: str) -> bool:
    resource, _, letter = one.partition(":")
    return any(
        each.partition(":")[0] == resource and (letter in each.partition(":")[2] or each.endswith("*"))
        for each in actions.split()
    )


def should_allow(role: str, service: str, need: str) -> bool:
    role_service, _, actions = EVERY_ROLE[role].partition(" ")
    if role_service not in {service, "any"}:
        return False
    return need == "any" or any(all(has(actions, one) for one in each.split("&")) for each in need.split("|"))


def outcome(role: Role, service: str, access: Access, version: str = "9999-12-31") -> Reason | None:
    grants = (Grant(role.actions),) if role.service in {"", service} else ()
    caller = Caller("test", "someone", "someone", "tenant")
    try:
        authorize(RolePrincipal(caller, grants, "box", version), access, AccessedResource(service))
    except Refused as refusal:
        return refusal.reason
    return None


def test_the_tables_have_every_role_and_every_operation() -> None:
    assert {role.name for role in ROLES} == set(EVERY_ROLE)
    for service, definition in SERVICES.items():
        assert {op.name for op in definition.operations} == set(NEEDS[service])


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_role_with_every_operation(role: Role) -> None:
    allowed = 0
    for service, name, when, access in CASES:
        expected = should_allow(role.name, service, need_of(service, name, when))
        assert (outcome(role, service, access) is None) is expected, (service, name, when)
        if not expected:
            assert outcome(role, service, access) is Reason.PERMISSION_MISMATCH
        allowed += expected
    assert 0 < allowed < len(CASES) or "SMB Share" in role.name


def test_every_need_is_met_by_a_role_or_by_none_of_the_data_roles() -> None:
    unmet = {
        name
        for service, name, when, _ in CASES
        if not any(should_allow(role, service, need_of(service, name, when)) for role in EVERY_ROLE)
    }
    assert unmet == set()


@pytest.mark.parametrize("service", SERVICES)
def test_operations_that_roles_open_only_lately(service: str) -> None:
    owner = next(role for role in ROLES if role.name == "Owner")
    since = {name: version for version, names in LATER[service].items() for name in names}
    for name, access in ((name, access) for s, name, _, access in CASES if s == service):
        assert access.role_since == since.get(name, ""), name
        if name in since:
            assert outcome(owner, service, access, since[name]) is None, name
            assert outcome(owner, service, access, "2018-11-08") is Reason.AUTHORIZATION_FAILURE, name


def test_every_access_names_its_role() -> None:
    """Whatever a handler needs besides, such as the tags of a source, a caller with a token needs an action for."""
    without = [
        f"{path.name}:{node.lineno}"
        for path in Path(kyanite.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Access"
        and "role" not in {keyword.arg for keyword in node.keywords}
    ]
    assert without == []


def test_roles_of_several_assignments_add_up() -> None:
    reader = next(role for role in ROLES if role.name == "Storage Blob Data Reader")
    contributor = next(role for role in ROLES if role.name == "Storage Blob Data Contributor")
    caller = Caller("test", "someone", "someone", "tenant")
    grants = (Grant(reader.actions), Grant(contributor.actions, "box"))
    put = next(access for service, name, _, access in CASES if (service, name) == ("blob", "Put Blob"))
    for container, allowed in (("box", True), ("other", False), ("", False)):
        principal = RolePrincipal(caller, grants, container, "2025-07-05")
        if allowed:
            authorize(principal, put, AccessedResource("blob"))
        else:
            with pytest.raises(Refused):
                authorize(principal, put, AccessedResource("blob"))


def test_the_secondary_takes_no_writes_of_an_owner() -> None:
    owner = next(role for role in ROLES if role.name == "Storage Blob Data Owner")
    principal = RolePrincipal(Caller("test", "a", "a", "t"), (Grant(owner.actions),), "box", "2025-07-05")
    for access, (secondary, expected) in product(
        [access for service, name, _, access in CASES if (service, name) == ("blob", "Put Blob")],
        [(False, None), (True, Reason.WRITE_ON_SECONDARY)],
    ):
        try:
            authorize(principal, access, AccessedResource("blob", secondary))
            found = None
        except Refused as refusal:
            found = refusal.reason
        assert found is expected
