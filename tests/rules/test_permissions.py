"""The tables of the reference, unabridged: what each operation needs, and how each lack is refused."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.rules import permissions
from kyanite.rules.permissions import (
    OWNER,
    Access,
    AccountGrant,
    Agreement,
    Anonymous,
    Grant,
    ServiceGrant,
    agree,
    check,
    check_in_force,
    check_protocol,
    check_source,
    may_overwrite,
    refusal_without_credentials,
)
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant, instant_from_datetime

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


def refusal(grant: Grant, access: Access) -> Reason | None:
    try:
        check(grant, access)
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
            grant = AccountGrant(service, letter, types, granted)
            assert refusal(grant, access) is expected_of_account_sas(name, types, granted)


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
    assert refusal(AccountGrant(service, others, "sco", EVERY_PERMISSION), access) is expected


def test_data_lake_is_opened_by_the_letter_of_blobs() -> None:
    assert refusal(AccountGrant("dfs", "b", "o", "r"), Access("o r")) is None
    assert refusal(AccountGrant("dfs", "qtf", "o", "r"), Access("o r")) is Reason.SERVICE_MISMATCH


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
def test_a_service_sas_on_a_container(service: str, name: str, access: Access) -> None:
    for granted in some_permissions():
        grant = ServiceGrant(CONTAINER_KIND[service], granted)
        assert refusal(grant, access) is expected_of_service_sas(name, granted)


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
        check(ServiceGrant(kind, "rl"), access)
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED
    assert "resource level" in caught.value.detail["AuthenticationErrorDetail"]


@pytest.mark.parametrize("kind", ["b", "bs", "bv", "c", "d"])
def test_every_kind_opens_what_is_inside(kind: str) -> None:
    assert refusal(ServiceGrant(kind, "r"), BLOB["Get Blob"]) is None


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
def test_the_key_opens_everything(service: str, name: str, access: Access) -> None:
    assert refusal(OWNER, access) is None


@pytest.mark.parametrize(("service", "name", "access"), OPERATIONS)
@pytest.mark.parametrize("level", ["", "blob", "container"])
def test_anonymous_access(service: str, name: str, access: Access, level: str) -> None:
    allowed = (name in PUBLIC_BLOB and level != "") or (name in PUBLIC_CONTAINER and level == "container")
    expected = None if allowed else Reason.NO_AUTHENTICATION_INFORMATION
    assert refusal(Anonymous(level), access) is expected


def test_an_anonymous_refusal_may_be_another() -> None:
    assert refusal(Anonymous("", Reason.RESOURCE_NOT_FOUND), BLOB["Get Blob"]) is Reason.RESOURCE_NOT_FOUND


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
    ("grant", "expected"),
    [
        (OWNER, True),
        (AccountGrant("blob", "b", "o", "c"), False),
        (AccountGrant("blob", "b", "o", "rac"), False),
        (AccountGrant("blob", "b", "o", "w"), True),
        (AccountGrant("blob", "b", "o", "cw"), True),
        (ServiceGrant("b", "c"), False),
        (ServiceGrant("c", "racd"), False),
        (ServiceGrant("b", "w"), True),
        (Anonymous("container"), False),
    ],
)
def test_create_alone_does_not_overwrite(grant: Grant, expected: bool) -> None:
    assert may_overwrite(grant) == expected


# When, from where and how a token may be used.

NOW_MOMENT = datetime(2024, 5, 1, 12, tzinfo=UTC)
NOW = instant_from_datetime(NOW_MOMENT)
TICK = 1


def shifted(**delta: int) -> Instant:
    return instant_from_datetime(NOW_MOMENT + timedelta(**delta))


@pytest.mark.parametrize(
    ("starts_at", "expires_at", "in_force"),
    [
        (None, shifted(hours=1), True),
        (NOW, shifted(hours=1), True),
        (shifted(hours=-1), Instant(NOW + TICK), True),
        (Instant(NOW + TICK), shifted(hours=1), False),
        (None, NOW, False),
        (None, shifted(days=-1), False),
        (shifted(hours=1), shifted(hours=-1), False),
    ],
)
def test_times(starts_at: Instant | None, expires_at: Instant, in_force: bool) -> None:
    if in_force:
        check_in_force(starts_at, expires_at, NOW)
        return
    with pytest.raises(Refused) as caught:
        check_in_force(starts_at, expires_at, NOW)
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED


def test_the_sentence_about_times() -> None:
    with pytest.raises(Refused) as caught:
        check_in_force(shifted(hours=-2), shifted(hours=-1), NOW)
    assert caught.value.detail["AuthenticationErrorDetail"] == (
        "Signature not valid in the specified time frame: Start [Wed, 01 May 2024 10:00:00 GMT] - "
        "Expiry [Wed, 01 May 2024 11:00:00 GMT] - Current [Wed, 01 May 2024 12:00:00 GMT]"
    )


@pytest.mark.parametrize(
    ("https_only", "secure", "allowed"),
    [(True, True, True), (True, False, False), (False, True, True), (False, False, True)],
)
def test_protocols(https_only: bool, secure: bool, allowed: bool) -> None:
    if allowed:
        check_protocol(https_only=https_only, secure=secure)
        return
    with pytest.raises(Refused) as caught:
        check_protocol(https_only=https_only, secure=secure)
    assert caught.value.reason is Reason.PROTOCOL_MISMATCH


@pytest.mark.parametrize(
    ("addresses", "peer", "allowed"),
    [
        (None, "10.0.0.1", True),
        (None, "anything", True),
        ((0x0A000001, 0x0A000001), "10.0.0.1", True),
        ((0x0A000001, 0x0A000001), "10.0.0.2", False),
        ((0x0A000001, 0x0A000009), "10.0.0.1", True),
        ((0x0A000001, 0x0A000009), "10.0.0.9", True),
        ((0x0A000001, 0x0A000009), "10.0.0.10", False),
        ((0x0A000001, 0x0A000009), "10.0.0.0", False),
        ((0x0A000001, 0x0A000009), "::ffff:10.0.0.5", True),
        ((0x0A000001, 0x0A000009), "::ffff:10.0.0.10", False),
        ((0x0A000001, 0x0A000009), "::1", False),
        ((0x00000000, 0xFFFFFFFF), "", False),
    ],
)
def test_sources(addresses: tuple[int, int] | None, peer: str, allowed: bool) -> None:
    if allowed:
        check_source(addresses, peer)
        return
    with pytest.raises(Refused) as caught:
        check_source(addresses, peer)
    assert caught.value.reason is Reason.SOURCE_IP_MISMATCH
    assert caught.value.detail == {"SourceIP": peer}


# Tokens that name a stored access policy.


@dataclass(frozen=True)
class Policy:
    permissions: str | None = None
    starts_at: Instant | None = None
    expires_at: Instant | None = None


START, END = shifted(hours=-1), shifted(hours=1)


@pytest.mark.parametrize(
    ("policy", "token", "expected"),
    [
        (Policy("r", START, END), Policy(), Agreement("r", START, END)),
        (Policy(), Policy("r", START, END), Agreement("r", START, END)),
        (Policy("r"), Policy(None, None, END), Agreement("r", None, END)),
        (Policy(None, START, END), Policy("w"), Agreement("w", START, END)),
        (Policy(None, None, END), Policy("w", START), Agreement("w", START, END)),
        (None, Policy(), None),
        (None, Policy("r", START, END), None),
        (Policy(), Policy(), None),
        (Policy("r"), Policy(), None),
        (Policy(None, None, END), Policy(), None),
        (Policy("r", None, END), Policy("r"), None),
        (Policy("r", START, END), Policy(None, START), None),
        (Policy("r", None, END), Policy(None, None, END), None),
    ],
)
def test_token_and_policy_together(policy: Policy | None, token: Policy, expected: Agreement | None) -> None:
    def together() -> Agreement:
        return agree(
            policy, permissions=token.permissions, starts_at=token.starts_at, expires_at=token.expires_at
        )

    if expected is not None:
        assert together() == expected
        return
    with pytest.raises(Refused) as caught:
        together()
    assert caught.value.reason is Reason.AUTHENTICATION_FAILED
    assert caught.value.detail["AuthenticationErrorDetail"]


# Whatever the grant, more letters never allow less.


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
    before = refusal(AccountGrant(service, LETTERS[service], "sco", few), access)
    after = refusal(AccountGrant(service, LETTERS[service], "sco", many), access)
    assert before is not None or after is None
    before = refusal(ServiceGrant(OBJECT_KIND[service], few), access)
    after = refusal(ServiceGrant(OBJECT_KIND[service], many), access)
    assert before is not None or after is None


def test_the_tables_speak_of_the_same_operations() -> None:
    names = {name for _, name, _ in OPERATIONS}
    assert names == set(NEEDS) | KEY_ONLY | ANY_TOKEN
    assert names >= NEVER_BY_SERVICE_SAS | PUBLIC_BLOB | PUBLIC_CONTAINER
    assert permissions.ANY == "*"
