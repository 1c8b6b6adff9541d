from datetime import UTC, datetime

import pytest
from azure.storage.blob import AccessPolicy
from hypothesis import given
from hypothesis import strategies as st

from kyanite.values import Instant, instant_from_datetime
from kyanite.wire import acl, xml
from kyanite.wire.acl import SignedIdentifier
from kyanite.wire.malformed import Malformed
from tests.wire.sdk_transport import Canned, client

START = datetime(2024, 5, 1, tzinfo=UTC)
EXPIRY = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
FULL = SignedIdentifier("one", instant_from_datetime(START), instant_from_datetime(EXPIRY), "rwd")

FULL_TEXT = (
    "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Start>2024-05-01T00:00:00.0000000Z</Start>"
    "<Expiry>2030-01-02T03:04:05.0000000Z</Expiry><Permission>rwd</Permission></AccessPolicy></SignedIdentifier>"
    "</SignedIdentifiers>"
)
BOTH_WAYS = [
    ([], "<SignedIdentifiers />"),
    ([FULL], FULL_TEXT),
    (
        [SignedIdentifier("a"), SignedIdentifier("b&", permissions="r")],
        "<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier>"
        "<SignedIdentifier><Id>b&amp;</Id><AccessPolicy><Permission>r</Permission></AccessPolicy>"
        "</SignedIdentifier></SignedIdentifiers>",
    ),
]


@pytest.mark.parametrize(("policies", "text"), BOTH_WAYS)
def test_both_ways(policies: list[SignedIdentifier], text: str) -> None:
    assert acl.encode(policies) == xml.document(text)
    assert acl.decode(text.encode()) == policies


@pytest.mark.parametrize(
    ("document", "policies"),
    [
        ("", []),
        ("<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy /></SignedIdentifier></SignedIdentifiers>",
         [SignedIdentifier("a")]),
        ("<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start/><Expiry>2030-01-02</Expiry>"
         "<Permission></Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
         [SignedIdentifier("a", None, instant_from_datetime(datetime(2030, 1, 2, tzinfo=UTC)))]),
    ],
)  # fmt: skip
def test_what_clients_leave_out(document: str, policies: list[SignedIdentifier]) -> None:
    assert acl.decode(document.encode()) == policies


def policy(inside: str) -> str:
    return f"<SignedIdentifiers><SignedIdentifier>{inside}</SignedIdentifier></SignedIdentifiers>"


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("<Other/>", "InvalidXmlDocument"),
        ("<SignedIdentifiers>", "InvalidXmlDocument"),
        ("<SignedIdentifiers><Other/></SignedIdentifiers>", "UnsupportedXmlNode"),
        (policy(""), "MissingRequiredXmlNode"),
        (policy("<Id></Id>"), "InvalidXmlNodeValue"),
        (policy(f"<Id>{'a' * 65}</Id>"), "InvalidXmlNodeValue"),
        (policy("<Id>a</Id><AccessPolicy><Start>soon</Start></AccessPolicy>"), "InvalidXmlNodeValue"),
        (policy("<Id>a</Id><AccessPolicy><Expiry>soon</Expiry></AccessPolicy>"), "InvalidXmlNodeValue"),
        (policy("<Id>a</Id><AccessPolicy><Permission>z</Permission></AccessPolicy>"), "InvalidXmlNodeValue"),
        (policy("<Id>a</Id><AccessPolicy><Permission>rr</Permission></AccessPolicy>"), "InvalidXmlNodeValue"),
        (FULL_TEXT.replace("</SignedIdentifiers>", "") + FULL_TEXT[len("<SignedIdentifiers>") :],
         "InvalidXmlDocument"),
        ("<SignedIdentifiers>" + "".join(f"<SignedIdentifier><Id>{n}</Id></SignedIdentifier>" for n in range(6))
         + "</SignedIdentifiers>", "InvalidXmlDocument"),
    ],
)  # fmt: skip
def test_documents_that_are_refused(document: str, code: str) -> None:
    with pytest.raises(Malformed) as caught:
        acl.decode(document.encode())
    assert caught.value.code == code


INSTANTS = st.one_of(st.none(), st.integers(0, 3_155_378_975_999_999_999).map(Instant))
POLICIES = st.builds(
    SignedIdentifier,
    id=st.text(st.characters(exclude_categories=["Cs"]).filter(xml.is_valid_text), min_size=1, max_size=64),
    starts_at=INSTANTS,
    expires_at=INSTANTS,
    permissions=st.one_of(st.none(), st.sampled_from(["r", "rwd", "racwdl", "raup"])),
)


@given(st.lists(POLICIES, max_size=5, unique_by=lambda policy: policy.id))
def test_every_list_survives(policies: list[SignedIdentifier]) -> None:
    assert acl.decode(acl.encode(policies)) == policies


def test_the_client_writes_what_we_read() -> None:
    transport = Canned(200, headers={"ETag": '"0x1"', "Last-Modified": "Wed, 01 May 2024 12:34:56 GMT"})
    policies = {"one": AccessPolicy("rwd", EXPIRY, START), "two": AccessPolicy()}
    client(transport).get_container_client("cont").set_container_access_policy(policies)
    assert acl.decode(transport.sent_body()) == [FULL, SignedIdentifier("two")]


def test_the_client_reads_what_we_write() -> None:
    transport = Canned(200, acl.encode([FULL, SignedIdentifier("two")]))
    answer = client(transport).get_container_client("cont").get_container_access_policy()
    first, second = answer["signed_identifiers"]
    assert (first.id, first.access_policy.permission) == ("one", "rwd")
    assert (first.access_policy.start, first.access_policy.expiry) == (
        "2024-05-01T00:00:00.0000000Z",
        "2030-01-02T03:04:05.0000000Z",
    )
    assert second.id == "two"
