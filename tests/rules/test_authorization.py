"""The tables of the reference, unabridged: what each operation needs, and how each lack is refused."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.edm import SasKeyRange
from kyanite.rules import authorization
from kyanite.rules.authorization import (
    ACCOUNT_KEY,
    Access,
    AccessedResource,
    AccountSasPrincipal,
    AnonymousPrincipal,
    Principal,
    ServiceSasPrincipal,
    authorize,
    may_overwrite,
    may_read_uncommitted,
    refusal_without_credentials,
    shared_keys,
)
from kyanite.rules.refusals import AuthenticationProblem, Reason, Refused

BLOB = {
    "List Containers": Access("s l"),
    "Get Blob Service Properties": Access("s r"),
    "Set Blob Service Properties": Access("s w"),
    "Get Blob Service Stats": Access("s r"),
    "Get Account Information": Access("* *", "*"),
    "Create Container": Access("c cw"),
    "Get Container Properties": Access("c r", public="container"),
    "Get Container Metadata": Access("c r", public="container"),
    "Set Container Metadata": Access("c w"),
    "Get Container ACL": Access(),
    "Set Container ACL": Access(),
    "Lease Container": Access("c w"),
    "Break Container Lease": Access("c wd"),
    "Delete Container": Access("c d"),
    "List Blobs": Access("c l", "l", "container"),
    "Put Blob": Access("o cw", "cw"),
    "Copy Blob": Access("o cw", "cw"),
    "Snapshot Blob": Access("o cw", "cw"),
    "Put Block": Access("o w", "w"),
    "Put Block List": Access("o w", "w"),
    "Put Page": Access("o w", "w"),
    "Set Blob Properties": Access("o w", "w"),
    "Set Blob Metadata": Access("o w", "w"),
    "Append Block": Access("o aw", "aw"),
    "Get Blob": Access("o r", "r", "blob"),
    "Get Blob Properties": Access("o r", "r", "blob"),
    "Get Blob Metadata": Access("o r", "r", "blob"),
    "Get Block List": Access("o r", "r", "blob"),
    "Get Page Ranges": Access("o r", "r", "blob"),
    "Delete Blob": Access("o d", "d"),
    "Delete Blob Version": Access("o x", "x"),
    "Delete Blob Permanently": Access("o y", "y"),
    "Lease Blob": Access("o w", "w"),
    "Break Blob Lease": Access("o wd", "wd"),
    "Get Blob Tags": Access("o t", "t"),
    "Set Blob Tags": Access("o t", "t"),
    "Find Blobs by Tags": Access("o f", "f"),
}
QUEUE = {
    "List Queues": Access("s l"),
    "Get Queue Service Properties": Access("s r"),
    "Set Queue Service Properties": Access("s w"),
    "Get Queue Service Stats": Access("s r"),
    "Create Queue": Access("c cw"),
    "Get Queue Metadata": Access("c r", "r"),
    "Set Queue Metadata": Access("c w"),
    "Delete Queue": Access("c d"),
    "Set Queue ACL": Access(),
    "Put Message": Access("o a", "a"),
    "Get Messages": Access("o p", "p"),
    "Peek Messages": Access("o r", "r"),
    "Delete Message": Access("o p", "p"),
    "Clear Messages": Access("o d"),
    "Update Message": Access("o u", "u"),
}
TABLE = {
    "Query Tables": Access("c l"),
    "Get Table Service Properties": Access("s r"),
    "Set Table Service Properties": Access("s w"),
    "Get Table Service Stats": Access("s r"),
    "Create Table": Access("c cw"),
    "Delete Table": Access("c d"),
    "Set Table ACL": Access(),
    "Query Entities": Access("o r", "r"),
    "Insert Entity": Access("o a", "a"),
    "Insert Or Merge Entity": Access("o a&u", "a&u"),
    "Insert Or Replace Entity": Access("o a&u", "a&u"),
    "Update Entity": Access("o u", "u"),
    "Merge Entity": Access("o u", "u"),
    "Delete Entity": Access("o d", "d"),
}
FILE = {
    "List Shares": Access("s l"),
    "Get File Service Properties": Access("s r"),
    "Set File Service Properties": Access("s w"),
    "Get Share Stats": Access("c r"),
    "Create Share": Access("c cw"),
    "Snapshot Share": Access("c cw"),
    "Get Share Properties": Access("c r"),
    "Set Share Metadata": Access("c w"),
    "Delete Share": Access("c d"),
    "Get Share ACL": Access(),
    "List Directories and Files": Access("c l", "l"),
    "Create File": Access("o cw", "cw"),
    "Put Range": Access("o w", "w"),
    "Set File Properties": Access("o w", "w"),
    "Copy File": Access("o w", "w"),
    "Get File": Access("o r", "r"),
    "List Ranges": Access("o r", "r"),
    "Delete File": Access("o d", "d"),
    "Abort Copy File": Access("o w", "w"),
}
SERVICES = {"blob": BLOB, "queue": QUEUE, "table": TABLE, "file": FILE}
OPERATIONS = [
    (service, name, access) for service, operations in SERVICES.items() for name, access in operations.items()
]
LETTERS = {"blob": "b", "queue": "q", "table": "t", "file": "f"}
CONTAINER_KIND = {"blob": "c", "queue": "", "table": "", "file": "s"}
OBJECT_KIND = {"blob": "b", "queue": "", "table": "", "file": "f"}
EVERY_PERMISSION = "rwdylacuptfix"

# Written out from the reference, operation by operation: type, then the sets of letters of which one suffices.
NEEDS = {
    "List Containers": "s l", "Get Blob Service Properties": "s r", "Set Blob Service Properties": "s w",
    "Get Blob Service Stats": "s r", "Create Container": "c c|w", "Get Container Properties": "c r",
    "Get Container Metadata": "c r", "Set Container Metadata": "c w", "Lease Container": "c w",
    "Break Container Lease": "c w|d", "Delete Container": "c d", "List Blobs": "c l", "Put Blob": "o c|w",
    "Copy Blob": "o c|w", "Snapshot Blob": "o c|w", "Put Block": "o w", "Put Block List": "o w",
    "Put Page": "o w", "Set Blob Properties": "o w", "Set Blob Metadata": "o w", "Append Block": "o a|w",
    "Get Blob": "o r", "Get Blob Properties": "o r", "Get Blob Metadata": "o r", "Get Block List": "o r",
    "Get Page Ranges": "o r", "Delete Blob": "o d", "Delete Blob Version": "o x",
    "Delete Blob Permanently": "o y", "Lease Blob": "o w", "Break Blob Lease": "o w|d", "Get Blob Tags": "o t",
    "Set Blob Tags": "o t", "Find Blobs by Tags": "o f",
    "List Queues": "s l", "Get Queue Service Properties": "s r", "Set Queue Service Properties": "s w",
    "Get Queue Service Stats": "s r", "Create Queue": "c c|w", "Get Queue Metadata": "c r",
    "Set Queue Metadata": "c w", "Delete Queue": "c d", "Put Message": "o a", "Get Messages": "o p",
    "Peek Messages": "o r", "Delete Message": "o p", "Clear Messages": "o d", "Update Message": "o u",
    "Query Tables": "c l", "Get Table Service Properties": "s r", "Set Table Service Properties": "s w",
    "Get Table Service Stats": "s r", "Create Table": "c c|w", "Delete Table": "c d", "Query Entities": "o r",
    "Insert Entity": "o a", "Insert Or Merge Entity": "o au", "Insert Or Replace Entity": "o au",
    "Update Entity": "o u", "Merge Entity": "o u", "Delete Entity": "o d",
    "List Shares": "s l", "Get File Service Properties": "s r", "Set File Service Properties": "s w",
    "Get Share Stats": "c r", "Create Share": "c c|w", "Snapshot Share": "c c|w", "Get Share Properties": "c r",
    "Set Share Metadata": "c w", "Delete Share": "c d", "List Directories and Files": "c l",
    "Create File": "o c|w", "Put Range": "o w", "Set File Properties": "o w", "Copy File": "o w",
    "Get File": "o r", "List Ranges": "o r", "Delete File": "o d", "Abort Copy File": "o w",
}  # fmt: skip
KEY_ONLY = {"Get Container ACL", "Set Container ACL", "Set Queue ACL", "Set Table ACL", "Get Share ACL"}
ANY_TOKEN = {"Get Account Information"}
NEVER_BY_SERVICE_SAS = KEY_ONLY | {
    "List Containers", "Get Blob Service Properties", "Set Blob Service Properties", "Get Blob Service Stats",
    "Create Container", "Get Container Properties", "Get Container Metadata", "Set Container Metadata",
    "Lease Container", "Break Container Lease", "Delete Container",
    "List Queues", "Get Queue Service Properties", "Set Queue Service Properties", "Get Queue Service Stats",
    "Create Queue", "Set Queue Metadata", "Delete Queue", "Clear Messages",
    "Query Tables", "Get Table Service Properties", "Set Table Service Properties", "Get Table Service Stats",
    "Create Table", "Delete Table",
    "List Shares", "Get File Service Properties", "Set File Service Properties", "Get Share Stats",
    "Create Share", "Snapshot Share", "Get Share Properties", "Set Share Metadata", "Delete Share",
}  # fmt: skip
PUBLIC_BLOB = {"Get Blob", "Get Blob Properties", "Get Blob Metadata", "Get Block List", "Get Page Ranges"}
PUBLIC_CONTAINER = {"Get Container Properties", "Get Container Metadata", "List Blobs"}


def refusal(
    principal: Principal, access: Access, service: str = "blob", *, secondary: bool = False
) -> Reason | None:
    try:
        authorize(principal, access, AccessedResource(service, secondary))
    except Refused as refused:
        return refused.reason
    return None


def suffices(letters: str, need: str) -> bool:
    return any(set(alternative) <= set(letters) for alternative in need.split("|"))


def some_permissions() -> list[str]:
    single = list(EVERY_PERMISSION)
    pairs = ["".join(pair) for pair in combinations(EVERY_PERMISSION, 2)]
    without_one = [EVERY_PERMISSION.replace(letter, "") for letter in EVERY_PERMISSION]
    return ["", *single, *pairs, *without_one, EVERY_PERMISSION]


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
def test_an_account_sas(service: str, name: str, access: Access) -> None:
    letter = LETTERS[service]
    for granted in some_permissions():
        for types in ("s", "c", "o", "sco"):
            principal = AccountSasPrincipal(letter, types, granted)
            assert refusal(principal, access, service) is expected_of_account_sas(name, types, granted)


def expected_of_account_sas(name: str, types: str, granted: str) -> Reason | None:
    if name in KEY_ONLY:
        return Reason.AUTHORIZATION_FAILURE
    if name in ANY_TOKEN:
        return None
    needed_type, need = NEEDS[name].split()
    if needed_type not in types:
        return Reason.RESOURCE_TYPE_MISMATCH
    return None if suffices(granted, need) else Reason.PERMISSION_MISMATCH


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
def test_an_account_sas_for_other_services(service: str, name: str, access: Access) -> None:
    others = "bqtf".replace(LETTERS[service], "")
    expected = Reason.AUTHORIZATION_FAILURE if name in KEY_ONLY else Reason.SERVICE_MISMATCH
    assert refusal(AccountSasPrincipal(others, "sco", EVERY_PERMISSION), access, service) is expected


def test_data_lake_is_opened_by_the_letter_of_blobs() -> None:
    assert refusal(AccountSasPrincipal("b", "o", "r"), Access("o r"), "dfs") is None
    assert refusal(AccountSasPrincipal("qtf", "o", "r"), Access("o r"), "dfs") is Reason.SERVICE_MISMATCH


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
def test_a_service_sas_on_a_container(service: str, name: str, access: Access) -> None:
    for granted in some_permissions():
        principal = ServiceSasPrincipal(CONTAINER_KIND[service], granted)
        assert refusal(principal, access, service) is expected_of_service_sas(name, granted)


def expected_of_service_sas(name: str, granted: str) -> Reason | None:
    if name in NEVER_BY_SERVICE_SAS:
        return Reason.AUTHORIZATION_FAILURE
    if name in ANY_TOKEN:
        return None
    return None if suffices(granted, NEEDS[name].split()[1]) else Reason.PERMISSION_MISMATCH


@pytest.mark.parametrize("kind", ["b", "bs", "bv", "d", "f"])
@pytest.mark.parametrize("name", ["List Blobs", "List Directories and Files"])
def test_what_is_inside_a_container_does_not_open_the_container(kind: str, name: str) -> None:
    access = {**BLOB, **FILE}[name]
    with pytest.raises(Refused) as caught:
        authorize(ServiceSasPrincipal(kind, "rl"), access, AccessedResource("blob"))
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED
    assert caught.value.detail == AuthenticationProblem(
        "The specified signed resource is not allowed for this resource level"
    )


@pytest.mark.parametrize("kind", ["b", "bs", "bv", "c", "d"])
def test_every_kind_opens_what_is_inside(kind: str) -> None:
    assert refusal(ServiceSasPrincipal(kind, "r"), BLOB["Get Blob"]) is None


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
def test_the_key_opens_everything(service: str, name: str, access: Access) -> None:
    assert refusal(ACCOUNT_KEY, access) is None


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
@pytest.mark.parametrize("level", ["", "blob", "container"])
def test_anonymous_access(service: str, name: str, access: Access, level: str) -> None:
    allowed = (name in PUBLIC_BLOB and level != "") or (name in PUBLIC_CONTAINER and level == "container")
    expected = None if allowed else Reason.NO_AUTHENTICATION_INFORMATION
    assert refusal(AnonymousPrincipal(level), access) is expected


def test_an_anonymous_refusal_may_be_another() -> None:
    assert (
        refusal(AnonymousPrincipal("", Reason.RESOURCE_NOT_FOUND), BLOB["Get Blob"])
        is Reason.RESOURCE_NOT_FOUND
    )


@pytest.mark.parametrize(
    ("service", "version", "reason"),
    [
        ("blob", "2019-07-07", Reason.RESOURCE_NOT_FOUND),
        ("blob", "2019-12-12", Reason.NO_AUTHENTICATION_INFORMATION),
        ("blob", "2026-10-06", Reason.NO_AUTHENTICATION_INFORMATION),
        ("blob", "", Reason.RESOURCE_NOT_FOUND),
        ("queue", "2019-07-07", Reason.RESOURCE_NOT_FOUND),
        ("queue", "2019-12-12", Reason.NO_AUTHENTICATION_INFORMATION),
        ("table", "2019-12-12", Reason.RESOURCE_NOT_FOUND),
        ("table", "2020-12-06", Reason.NO_AUTHENTICATION_INFORMATION),
        ("file", "2021-12-02", Reason.RESOURCE_NOT_FOUND),
        ("file", "2022-11-02", Reason.NO_AUTHENTICATION_INFORMATION),
        ("dfs", "2017-07-29", Reason.RESOURCE_NOT_FOUND),
        ("dfs", "2017-11-09", Reason.NO_AUTHENTICATION_INFORMATION),
    ],
)
def test_how_a_request_without_credentials_is_refused(service: str, version: str, reason: Reason) -> None:
    assert refusal_without_credentials(service, version) is reason


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        (ACCOUNT_KEY, True),
        (AccountSasPrincipal("b", "o", "c"), False),
        (AccountSasPrincipal("b", "o", "rac"), False),
        (AccountSasPrincipal("b", "o", "w"), True),
        (AccountSasPrincipal("b", "o", "cw"), True),
        (ServiceSasPrincipal("b", "c"), False),
        (ServiceSasPrincipal("c", "racd"), False),
        (ServiceSasPrincipal("b", "w"), True),
        (AnonymousPrincipal("container"), False),
    ],
)
def test_create_alone_does_not_overwrite(principal: Principal, expected: bool) -> None:
    assert may_overwrite(principal) == expected


# The read-only secondary.

PRINCIPALS: list[Principal] = [
    ACCOUNT_KEY,
    AccountSasPrincipal("b", "o", "rw"),
    ServiceSasPrincipal("b", "rw"),
    AnonymousPrincipal("container"),
]
READ = Access("o r", "r", "blob")
WRITE = Access("o w", "w", writes=True)


@pytest.mark.parametrize("principal", PRINCIPALS)
def test_the_secondary_is_read_only(principal: Principal) -> None:
    assert refusal(principal, READ, secondary=True) is None
    expected = Reason.WRITE_ON_SECONDARY
    if isinstance(principal, AnonymousPrincipal):
        expected = Reason.NO_AUTHENTICATION_INFORMATION
    assert refusal(principal, WRITE, secondary=True) is expected


def test_a_lack_of_permission_comes_before_the_secondary() -> None:
    assert refusal(ServiceSasPrincipal("b", "r"), WRITE, secondary=True) is Reason.PERMISSION_MISMATCH


# The entities that a token is for.

SHARED = SasKeyRange("b", "1", "b", "5")


@pytest.mark.parametrize(
    ("principal", "entity", "expected"),
    [
        (ServiceSasPrincipal("", "r", SHARED), ("b", "3"), None),
        (ServiceSasPrincipal("", "r", SHARED), ("b", "1"), None),
        (ServiceSasPrincipal("", "r", SHARED), ("b", "6"), Reason.AUTHORIZATION_FAILURE),
        (ServiceSasPrincipal("", "r", SHARED), ("a", "3"), Reason.AUTHORIZATION_FAILURE),
        (ServiceSasPrincipal("", "r", SHARED), None, None),
        (ServiceSasPrincipal("", "a", SHARED), ("a", "3"), Reason.PERMISSION_MISMATCH),
        (ServiceSasPrincipal("", "r"), ("a", "3"), None),
        (AccountSasPrincipal("t", "o", "r"), ("a", "3"), None),
        (ACCOUNT_KEY, ("a", "3"), None),
    ],
)
def test_a_range_of_entities(
    principal: Principal, entity: tuple[str, str] | None, expected: Reason | None
) -> None:
    resource = AccessedResource("table", entity=entity)
    if expected is None:
        authorize(principal, TABLE["Query Entities"], resource)
        return
    with pytest.raises(Refused) as caught:
        authorize(principal, TABLE["Query Entities"], resource)
    assert caught.value.reason is expected


def test_only_a_service_sas_is_limited_to_entities() -> None:
    assert shared_keys(ServiceSasPrincipal("", "r", SHARED)) is SHARED
    assert [shared_keys(principal) for principal in PRINCIPALS] == [None] * 4


# Whatever the principal, more letters never allow less.


@given(
    st.sampled_from(OPERATIONS),
    st.sets(st.sampled_from(EVERY_PERMISSION)),
    st.sampled_from(EVERY_PERMISSION),
)
def test_more_letters_never_allow_less(
    operation: tuple[str, str, Access], letters: set[str], more: str
) -> None:
    service, _, access = operation
    few, many = "".join(sorted(letters)), "".join(sorted({*letters, more}))
    before = refusal(AccountSasPrincipal(LETTERS[service], "sco", few), access, service)
    after = refusal(AccountSasPrincipal(LETTERS[service], "sco", many), access, service)
    assert before is not None or after is None
    before = refusal(ServiceSasPrincipal(OBJECT_KIND[service], few), access)
    after = refusal(ServiceSasPrincipal(OBJECT_KIND[service], many), access)
    assert before is not None or after is None


def test_the_tables_speak_of_the_same_operations() -> None:
    names = {name for _, name, _ in OPERATIONS}
    assert names == set(NEEDS) | KEY_ONLY | ANY_TOKEN
    assert names >= NEVER_BY_SERVICE_SAS | PUBLIC_BLOB | PUBLIC_CONTAINER
    assert authorization.ANY == "*"


def test_who_may_list_blocks_that_are_not_committed() -> None:
    principals = (ACCOUNT_KEY, AccountSasPrincipal("b", "o", "r"), ServiceSasPrincipal("b", "r"))
    assert all(may_read_uncommitted(principal) for principal in principals)
    assert not may_read_uncommitted(AnonymousPrincipal("container"))
