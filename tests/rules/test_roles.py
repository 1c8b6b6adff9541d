"""The built-in roles: their names and ids, whom an assignment is to, and what it grants where."""

import pytest

from kyanite.rules.roles import (
    ROLES,
    Assignment,
    Caller,
    Grant,
    Role,
    granted_in,
    grants_of,
    ids_of,
    is_guid,
    is_principal,
    role_of,
    suffices,
)

OID = "0e9d8c7b-6a59-4837-9261-5f4e3d2c1b0a"
APP = "4b1d5cf0-0000-4000-8000-000000000001"
GROUP = "9aaf5bd5-0000-4000-8000-00000000000f"
CALLER = Caller(
    "entra",
    OID,
    OID,
    "6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e",
    APP,
    frozenset({GROUP, "/admins"}),
    {"roles": frozenset({"Admin", "Guest"}), "email": frozenset({"a@b.example"})},
)


def named(name: str) -> Role:
    found = role_of(name)
    assert found is not None
    return found


READER, SENDER = named("Storage Blob Data Reader"), named("Storage Queue Data Message Sender")


def test_names_and_ids_are_synonyms() -> None:
    for role in ROLES:
        assert is_guid(role.id)
        assert (
            role_of(role.name)
            is role_of(role.name.upper())
            is role_of(role.id)
            is role_of(role.id.upper())
            is role
        )
    assert len({role.name for role in ROLES}) == len({role.id for role in ROLES}) == len(ROLES)
    assert role_of("Storage Blob Data") is None


@pytest.mark.parametrize(
    ("principal", "is_one"),
    [
        (OID, True),
        (OID.upper(), True),
        (APP, True),
        (GROUP, True),
        ("/admins", True),
        ("/Admins", False),
        ("*", True),
        ("roles=Admin", True),
        ("roles=Guest", True),
        ("roles=admin", False),
        ("roles=King", False),
        ("email=a@b.example", True),
        ("a@b.example", False),
        ("nickname=x", False),
        ("6f3c1d2e-0f7a-4b86-9d57-1f2a3b4c5d6e", False),
        ("", False),
    ],
)
def test_who_is_a_principal(principal: str, is_one: bool) -> None:
    assert is_principal(principal, CALLER, ids_of(CALLER)) is is_one


def test_a_caller_without_an_id_is_no_principal_by_that() -> None:
    caller = Caller("entra", "", OID, OID)
    assert not is_principal("", caller, ids_of(caller))


@pytest.mark.parametrize(
    ("given", "account", "service", "container", "may_read"),
    [
        (Assignment(OID, READER), "lake", "blob", "photos", True),
        (Assignment(OID, READER), "lake", "queue", "photos", False),
        (Assignment(OID, READER, "lake"), "lake", "blob", "", True),
        (Assignment(OID, READER, "lake"), "lake2", "blob", "", False),
        (Assignment(OID, READER, "lake", "photos"), "lake", "blob", "photos", True),
        (Assignment(OID, READER, "lake", "photos"), "lake", "blob", "photos2", False),
        (Assignment(OID, READER, "lake", "photos"), "lake", "blob", "", False),
        (Assignment(OID, READER, issuer="entra"), "lake", "blob", "photos", True),
        (Assignment(OID, READER, issuer="dex"), "lake", "blob", "photos", False),
        (Assignment(APP + "0", READER), "lake", "blob", "photos", False),
    ],
)
def test_the_scope_of_an_assignment(
    given: Assignment, account: str, service: str, container: str, may_read: bool
) -> None:
    grants = grants_of([given], CALLER, account, service)
    assert suffices(granted_in(grants, container), "blobs/read") is may_read


def test_assignments_add_up() -> None:
    contributor = named("Storage Blob Data Contributor")
    grants = grants_of(
        [Assignment("*", READER), Assignment(OID, contributor, "lake", "photos")], CALLER, "lake", "blob"
    )
    assert not suffices(granted_in(grants, "films"), "blobs/write")
    assert suffices(granted_in(grants, "photos"), "blobs/write")
    assert suffices(granted_in(grants, "films"), "blobs/read")


def test_names_of_tables_compare_without_case() -> None:
    grants = (Grant(frozenset({"entities/read"}), "People"),)
    assert suffices(granted_in(grants, "pEOPLE"), "entities/read")


@pytest.mark.parametrize(
    ("actions", "need", "is_enough"),
    [
        ({"blobs/write"}, "blobs/write|blobs/add", True),
        ({"blobs/add"}, "blobs/write|blobs/add", True),
        ({"blobs/read"}, "blobs/write|blobs/add", False),
        ({"messages/delete"}, "messages/process|messages/delete&messages/read", False),
        ({"messages/delete", "messages/read"}, "messages/process|messages/delete&messages/read", True),
        ({"messages/process"}, "messages/process|messages/delete&messages/read", True),
        ({"blobs/*"}, "blobs/tags/read&blobs/write", True),
        ({"containers/*"}, "blobs/read", False),
        ({"containers/*"}, "containers/getAcl", True),
        (set[str](), "blobs/read", False),
    ],
)
def test_what_a_need_takes(actions: set[str], need: str, is_enough: bool) -> None:
    assert suffices(frozenset(actions), need) is is_enough
