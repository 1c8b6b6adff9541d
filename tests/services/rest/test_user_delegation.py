"""User delegation keys and the tokens that are signed with them: all versions and services, and how they end."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import pytest

from kyanite.model import delegation
from kyanite.model.accounts import AccountSettings
from kyanite.values import TICKS_PER_SECOND, Instant, unix_seconds
from kyanite.wire import iso_time, shared_key
from tests.services.harness import START, Answer, Harness
from tests.services.tokens import blob_token
from tests.signed_tokens import ABSENT, OID, TENANT, assigned, claims_at, signed, trusting

NOW = unix_seconds(START)
NEW = "2026-10-06"
HOUR = 3600 * TICKS_PER_SECOND
OWNER = assigned("Storage Blob Data Owner")
FILE_ROLES = (assigned("Storage File Data Privileged Contributor"), assigned("Storage File Delegator"))
QUEUE_ROLES = (assigned("Storage Queue Data Contributor"), assigned("Storage Queue Delegator"))
KEY_PATH = "/?restype=service&comp=userdelegationkey"

Fields = dict[str, str]


def text_of(instant: int) -> str:
    return iso_time.encode(Instant(instant))[:19] + "Z"


def bearer(version: str = NEW, **claims: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {signed(claims_at(NOW, **claims))}", "x-ms-version": version}


def key_info(start: int | None = START, expiry: int | None = START + 24 * HOUR, more: str = "") -> bytes:
    starts = "" if start is None else f"<Start>{text_of(start)}</Start>"
    expires = "" if expiry is None else f"<Expiry>{text_of(expiry)}</Expiry>"
    return f'<?xml version="1.0"?><KeyInfo>{starts}{expires}{more}</KeyInfo>'.encode()


async def request_key(harness: Harness, body: bytes | None = None, **options: Any) -> Answer:
    headers = options.pop("headers", None) or bearer(**options)
    return await harness("POST", KEY_PATH, headers, key_info() if body is None else body, sign=False)


async def key_of(harness: Harness, body: bytes | None = None, **options: Any) -> Fields:
    answer = await request_key(harness, body, **options)
    assert answer.status == 200, answer.body
    return {each.tag: each.text or "" for each in ElementTree.fromstring(answer.body)}


SK = {
    "skoid": "SignedOid", "sktid": "SignedTid", "skt": "SignedStart", "ske": "SignedExpiry", "sks": "SignedService",
    "skv": "SignedVersion", "skdutid": "SignedDelegatedUserTid",
}  # fmt: skip
TERMS = ["sp", "st", "se", "R", "skoid", "sktid", "skt", "ske", "sks", "skv"]
AGENTS, USER, ORIGIN = ["saoid", "suoid", "scid"], ["skdutid", "sduoid"], ["sip", "spr", "sv"]
OVERRIDES = ["rscc", "rscd", "rsce", "rscl", "rsct"]
LAYOUTS = {
    "2026-04-06": [*TERMS, *AGENTS, *USER, *ORIGIN, "sr", "M", "ses", "SRH", "SRQ", *OVERRIDES],
    "2025-07-05": [*TERMS, *AGENTS, *USER, *ORIGIN, "sr", "M", "ses", *OVERRIDES],
    "2020-12-06": [*TERMS, *AGENTS, *ORIGIN, "sr", "M", "ses", *OVERRIDES],
    "2020-02-10": [*TERMS, *AGENTS, *ORIGIN, "sr", "M", *OVERRIDES],
    "2018-11-09": [*TERMS, *ORIGIN, "sr", "M", *OVERRIDES],
}
QUEUE_LAYOUT = [*TERMS, *USER, *ORIGIN]
FILE_LAYOUT = [*QUEUE_LAYOUT, *OVERRIDES]


def token(
    key: Fields,
    resource: str,
    *,
    layout: list[str] | None = None,
    moment: str = "",
    headers: Fields | None = None,
    parameters: Fields | None = None,
    **fields: Any,
) -> str:
    """A token as clients make it: the lines of its version, signed with the key."""
    given = {"sp": "r", "se": text_of(START + HOUR), "sv": NEW, **fields}
    given |= {field: key[name] for field, name in SK.items() if key.get(name)}
    if headers:
        given["srh"] = ",".join(headers)
    if parameters:
        given["srq"] = ",".join(parameters)
    layout = layout or next(lines for since, lines in LAYOUTS.items() if given["sv"] >= since)
    values = {
        **given,
        "R": resource,
        "M": moment,
        "SRH": "".join(f"{name}:{value}\n" for name, value in (headers or {}).items()),
        "SRQ": "".join(f"\n{name}:{value}" for name, value in (parameters or {}).items()),
    }
    text = "\n".join(values.get(name, "") for name in layout)
    return urlencode({**given, "sig": shared_key.sign(base64.b64decode(key["Value"]), text)}, quote_via=quote)


async def filled(blobs: Harness) -> None:
    blobs.trust(trusting(OWNER))
    await blobs("PUT", "/box?restype=container")
    for name in ("a", "dir/b", "dirt/c"):
        await blobs("PUT", f"/box/{name}", {"x-ms-blob-type": "BlockBlob"}, b"text")


async def get(
    harness: Harness, target: str, query: str, headers: Fields | None = None, method: str = "GET"
) -> Answer:
    joined = f"{target}{'&' if '?' in target else '?'}{query}"
    return await harness(method, joined, {"x-ms-version": NEW, **(headers or {})}, sign=False)


# The key


async def test_the_document_of_a_key(blobs: Harness) -> None:
    blobs.trust(trusting(OWNER))
    key = await key_of(blobs, version="2020-02-10")
    value = key.pop("Value")
    assert key == {
        "SignedOid": OID,
        "SignedTid": TENANT,
        "SignedStart": text_of(START),
        "SignedExpiry": text_of(START + 24 * HOUR),
        "SignedService": "b",
        "SignedVersion": "2020-02-10",
    }
    assert len(base64.b64decode(value)) == 32
    assert (await key_of(blobs, version="2020-02-10"))["Value"] == value
    assert (await key_of(blobs, version="2020-04-08"))["Value"] != value
    later = await key_of(blobs, key_info(START, START + 25 * HOUR), version="2020-02-10")
    assert later["Value"] != value


async def test_the_key_of_another_account_is_another(blobs: Harness) -> None:
    from tests.services.harness import OTHER

    blobs.trust(trusting(OWNER))
    ours = await key_of(blobs)
    answer = await blobs("POST", KEY_PATH, bearer(), key_info(), sign=False, account=OTHER)
    assert ours["Value"].encode() not in answer.body


@pytest.mark.parametrize("service", ["queue", "file"])
async def test_keys_of_other_services(request: pytest.FixtureRequest, service: str) -> None:
    harness: Harness = request.getfixturevalue(f"{service}s")
    harness.trust(trusting(*(QUEUE_ROLES if service == "queue" else FILE_ROLES)))
    assert (await key_of(harness))["SignedService"] == service[0]
    old = await request_key(harness, version="2025-11-05")
    assert (old.status, old.code) == (403, "AuthorizationFailure")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (key_info(START, START + 7 * 24 * HOUR), ""),
        (key_info(None), ""),
        (key_info(START - HOUR), ""),
        (key_info(START + HOUR), ""),
        (key_info(more=f"<DelegatedUserTid>{TENANT}</DelegatedUserTid>"), ""),
        (key_info(START, START + 7 * 24 * HOUR + TICKS_PER_SECOND), "InvalidXmlNodeValue"),
        (key_info(START + HOUR, START + HOUR), "InvalidXmlNodeValue"),
        (key_info(START - HOUR, START - TICKS_PER_SECOND), "InvalidXmlNodeValue"),
        (key_info(more="<DelegatedUserTid>me</DelegatedUserTid>"), "InvalidXmlNodeValue"),
        (b"<KeyInfo><Expiry>soon</Expiry></KeyInfo>", "InvalidXmlNodeValue"),
        (key_info(START, None), "MissingRequiredXmlNode"),
        (b"<Key/>", "InvalidXmlDocument"),
        (b"", "InvalidXmlDocument"),
        (b"not xml", "InvalidXmlDocument"),
        (b"x" * 20_000, "RequestBodyTooLarge"),
    ],
)
async def test_what_a_key_can_be_had_for(blobs: Harness, body: bytes, code: str) -> None:
    blobs.trust(trusting(OWNER))
    answer = await request_key(blobs, body)
    assert (answer.status, answer.code or "") == ((200, "") if not code else (answer.status, code))
    assert answer.status in {200, 400, 413}


async def test_who_gets_a_key(blobs: Harness) -> None:
    for role, container, status in (
        ("Storage Blob Data Owner", "", 200),
        ("Storage Blob Data Reader", "", 200),
        ("Storage Blob Delegator", "", 200),
        ("Storage Account Contributor", "", 200),
        ("Storage Queue Delegator", "", 403),
        ("Storage Blob Data Owner", "box", 403),
    ):
        account = "acme" if container else ""
        blobs.trust(trusting(assigned(role, account=account, container=container)))
        assert (await request_key(blobs)).status == status, role
    blobs.trust(trusting(assigned("Storage Blob Delegator", "*")))
    nameless = await request_key(blobs, oid=ABSENT, sub=ABSENT)
    assert (nameless.status, nameless.code) == (403, "AuthorizationFailure")


async def test_keys_are_given_to_bearers_only(blobs: Harness) -> None:
    for config in (None, trusting(OWNER)):
        if config is not None:
            blobs.trust(config)
        signed_with_key = await blobs("POST", KEY_PATH, {"x-ms-version": NEW}, key_info())
        assert (signed_with_key.status, signed_with_key.code) == (403, "AuthenticationFailed")
        assert b"Only authentication scheme Bearer is supported" in signed_with_key.body
        assert (await blobs("POST", KEY_PATH, {"x-ms-version": NEW}, key_info(), sign=False)).status == 401


# Tokens


@pytest.mark.parametrize(
    "version",
    ["2018-11-09", "2019-12-12", "2020-02-10", "2020-10-02", "2020-12-06", "2025-05-05", "2025-07-05", "2026-02-06",
     "2026-04-06", "2026-10-06"],
)  # fmt: skip
async def test_every_version(blobs: Harness, version: str) -> None:
    await filled(blobs)
    key = await key_of(blobs, version="2018-11-09")
    blob = token(key, "/blob/acme/box/a", sv=version, sr="b", rsct="text/x")
    answer = await get(blobs, "/box/a", blob)
    assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"text", "text/x")
    assert (await get(blobs, "/box/dir/b", blob)).code == "AuthenticationFailed"
    assert (await get(blobs, "/box/a", blob, method="DELETE")).code == "AuthorizationPermissionMismatch"
    container = token(key, "/blob/acme/box", sv=version, sr="c", sp="rl")
    assert (await get(blobs, "/box/dir/b", container)).status == 200
    assert (await get(blobs, "/box?restype=container&comp=list", container)).status == 200
    assert (await get(blobs, "/box?restype=container", container)).code == "AuthorizationFailure"


async def test_a_snapshot(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    snapshot = await blobs("PUT", "/box/a?comp=snapshot")
    moment = snapshot.headers["x-ms-snapshot"]
    shared = token(key, "/blob/acme/box/a", sr="bs", moment=moment)
    assert (await get(blobs, f"/box/a?snapshot={quote(moment)}", shared)).status == 200
    assert (await get(blobs, "/box/a", shared)).status == 403


@pytest.mark.parametrize("version", ["2020-02-10", "2026-10-06"])
async def test_a_directory(blobs: Harness, version: str) -> None:
    await filled(blobs)
    key = await key_of(blobs, version="2020-02-10")
    inside = token(key, "/blob/acme/box/dir", sv=version, sr="d", sdd="1", sp="rl")
    assert (await get(blobs, "/box/dir/b", inside)).status == 200
    for outside in ("/box/a", "/box/dirt/c"):
        assert (await get(blobs, outside, inside)).status == 403
    listing = "/box?restype=container&comp=list"
    assert b"<Name>dir/b</Name>" in (await get(blobs, f"{listing}&prefix=dir/", inside)).body
    for outside in ("", "&prefix=", "&prefix=dir", "&prefix=dirt/", "&prefix=d", "&prefix=/dir/"):
        assert (await get(blobs, listing + outside, inside)).status == 403, outside
    root = token(key, "/blob/acme/box", sv=version, sr="d", sdd="0", sp="rl")
    assert (await get(blobs, "/box/a", root)).status == 200
    assert (await get(blobs, listing, root)).status == 200
    deeper = token(key, "/blob/acme/box/dir", sv=version, sr="d", sdd="2", sp="rl")
    assert (await get(blobs, "/box/dir/b", deeper)).status == 403


async def test_a_queue(queues: Harness) -> None:
    queues.trust(trusting(*QUEUE_ROLES))
    await queues("PUT", "/jobs")
    key = await key_of(queues)
    shared = token(key, "/queue/acme/jobs", layout=QUEUE_LAYOUT, sp="ra")
    body = b"<QueueMessage><MessageText>x</MessageText></QueueMessage>"
    put = await queues("POST", f"/jobs/messages?{shared}", {"x-ms-version": NEW}, body, sign=False)
    assert put.status == 201
    assert (await get(queues, "/jobs/messages?peekonly=true", shared)).status == 200
    assert (await get(queues, "/jobs/messages", shared)).code == "AuthorizationPermissionMismatch"
    # The sender may not read, whatever it signs.
    queues.trust(trusting(assigned("Storage Queue Data Message Sender")))
    assert (
        await get(queues, "/jobs/messages?peekonly=true", shared)
    ).code == "AuthorizationPermissionMismatch"


async def test_a_file_and_a_share(files: Harness) -> None:
    files.trust(trusting(*FILE_ROLES))
    await files("PUT", "/share?restype=share")
    await files("PUT", "/share/a", {"x-ms-type": "file", "x-ms-content-length": "0"})
    key = await key_of(files)
    file = token(key, "/file/acme/share/a", layout=FILE_LAYOUT, sr="f", rsct="text/x")
    answer = await get(files, "/share/a", file)
    assert (answer.status, answer.headers["content-type"]) == (200, "text/x")
    share = token(key, "/file/acme/share", layout=FILE_LAYOUT, sr="s", sp="rl")
    assert (await get(files, "/share?restype=directory&comp=list", share)).status == 200
    assert (await get(files, "/share/a", share, method="DELETE")).code == "AuthorizationPermissionMismatch"


async def test_a_key_is_for_one_service(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    for service in ("q", "f", "t", ""):
        answer = await get(
            blobs, "/box/a", token({**key, "SignedService": service}, "/blob/acme/box/a", sr="b")
        )
        assert answer.code == "AuthenticationFailed"


@pytest.mark.parametrize("name", ["SignedOid", "SignedTid", "SignedStart", "SignedExpiry", "SignedVersion"])
async def test_nothing_that_a_key_states_can_be_changed(blobs: Harness, name: str) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    changed = {
        "SignedOid": TENANT,
        "SignedTid": OID,
        "SignedStart": text_of(START - HOUR),
        "SignedExpiry": text_of(START + 48 * HOUR),
        "SignedVersion": "2018-11-09",
    }
    answer = await get(blobs, "/box/a", token({**key, name: changed[name]}, "/blob/acme/box/a", sr="b"))
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_a_key_ends_with_its_expiry(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs, key_info(START + HOUR, START + 2 * HOUR))
    shared = token(key, "/blob/acme/box/a", sr="b", se=text_of(START + 100 * HOUR))
    for moment, status in ((0, 403), (HOUR, 200), (2 * HOUR - TICKS_PER_SECOND, 200), (2 * HOUR, 403)):
        blobs.clock.now = Instant(START + moment)
        answer = await get(blobs, "/box/a", shared)
        assert answer.status == status, moment
        assert status == 200 or b"Signature not valid in the specified time frame" in answer.body


async def test_the_times_of_the_token_itself(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    early = token(key, "/blob/acme/box/a", sr="b", st=text_of(START + HOUR))
    assert (await get(blobs, "/box/a", early)).status == 403
    late = token(key, "/blob/acme/box/a", sr="b", se=text_of(START - HOUR))
    assert (await get(blobs, "/box/a", late)).status == 403
    https = token(key, "/blob/acme/box/a", sr="b", spr="https")
    assert (await get(blobs, "/box/a", https)).code == "AuthorizationProtocolMismatch"
    address = token(key, "/blob/acme/box/a", sr="b", sip="10.0.0.1")
    assert (await get(blobs, "/box/a", address)).code == "AuthorizationSourceIPMismatch"


async def test_the_key_must_not_be_newer_than_the_token(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs, version="2021-02-12")
    assert (await get(blobs, "/box/a", token(key, "/blob/acme/box/a", sv="2020-12-06", sr="b"))).status == 403


async def test_a_role_that_is_removed_takes_the_token_along(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    shared = token(key, "/blob/acme/box/a", sr="b", sp="rd")
    assert (await get(blobs, "/box/a", shared)).status == 200
    blobs.trust(trusting(assigned("Storage Blob Data Reader")))
    assert (await get(blobs, "/box/a", shared)).status == 200
    assert (await get(blobs, "/box/a", shared, method="DELETE")).code == "AuthorizationPermissionMismatch"
    blobs.trust(trusting())
    assert (await get(blobs, "/box/a", shared)).code == "AuthorizationPermissionMismatch"
    blobs.environment = replace(blobs.environment, identity=None)
    blobs.service = blobs._build(blobs.environment)
    assert (await get(blobs, "/box/a", shared)).code == "AuthenticationFailed"


@pytest.mark.parametrize(
    "principal", ["the-group", "4b1d5cf0-0000-4000-8000-000000000001", "department=it", "*"]
)
async def test_roles_of_groups_and_applications_count(blobs: Harness, principal: str) -> None:
    """The token names the delegator alone; what else it was is kept from when it got the key."""
    await filled(blobs)
    blobs.trust(trusting(assigned("Storage Blob Data Reader", principal)))
    key = await key_of(blobs, groups=["the-group"], department="it")
    shared = token(key, "/blob/acme/box/a", sr="b")
    assert (await get(blobs, "/box/a", shared)).status == 200
    # Another key of the same caller, of a token without the group: that is what it is now.
    await request_key(blobs, oid=OID, groups=["another"], department="hr", appid="other")
    expected = 200 if principal == "*" else 403
    if principal in {"the-group", "department=it"} or principal == "*":
        blobs.trust(
            trusting(assigned("Storage Blob Delegator", "*"), assigned("Storage Blob Data Reader", principal))
        )
        await key_of(blobs, groups=["another"], department="hr")
        assert (await get(blobs, "/box/a", shared)).status == expected


async def test_revocation_ends_all_keys_at_once(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    shared = token(key, "/blob/acme/box/a", sr="b")
    assert (await get(blobs, "/box/a", shared)).status == 200
    revoked_at = await delegation.revoke(blobs.engine, "acme", b"new secret of thirty-two octets.")
    assert revoked_at >= START
    assert (await get(blobs, "/box/a", shared)).code == "AuthenticationFailed"
    renewed = await key_of(blobs)
    assert renewed["Value"] != key["Value"]
    assert (await get(blobs, "/box/a", token(renewed, "/blob/acme/box/a", sr="b"))).status == 200


async def test_signed_headers_and_parameters(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    headers, parameters = {"X-Tier": "gold", "range": "bytes=0-1"}, {"timeout": "30"}
    shared = token(key, "/blob/acme/box/a", sr="b", headers=headers, parameters=parameters)
    given = {"x-tier": "gold", "Range": "bytes=0-1"}
    assert (await get(blobs, "/box/a?timeout=30", shared, given)).body == b"te"
    for target, sent in (
        ("/box/a?timeout=30", {}),
        ("/box/a?timeout=30", {**given, "x-tier": "tin"}),
        ("/box/a?timeout=30", {"x-tier": "gold"}),
        ("/box/a", given),
        ("/box/a?timeout=31", given),
    ):
        answer = await get(blobs, target, shared, sent)
        assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_a_token_for_one_user(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    user = "11111111-2222-4333-8444-555555555555"
    shared = token(key, "/blob/acme/box/a", sr="b", sduoid=user)
    assert (await get(blobs, "/box/a", shared)).code == "AuthenticationFailed"
    # The user needs no role of its own.
    assert (await get(blobs, "/box/a", shared, bearer(oid=user))).status == 200
    assert (await get(blobs, "/box/a", shared, bearer())).code == "AuthenticationFailed"
    assert (await get(blobs, "/box/a", shared, bearer(oid=user, exp=NOW - 1000))).status == 401
    assert (await get(blobs, "/box/a", shared, bearer(oid=user), method="DELETE")).status == 403
    abroad = await key_of(blobs, key_info(more=f"<DelegatedUserTid>{OID}</DelegatedUserTid>"))
    assert abroad["SignedDelegatedUserTid"] == OID
    foreign = token(abroad, "/blob/acme/box/a", sr="b", sduoid=user)
    assert (await get(blobs, "/box/a", foreign, bearer(oid=user))).code == "AuthenticationFailed"


async def test_agents_and_scopes(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    agent: dict[str, Any] = {"saoid": OID, "scid": TENANT}
    assert (await get(blobs, "/box/a", token(key, "/blob/acme/box/a", sr="b", **agent))).status == 200
    bad: list[dict[str, Any]] = [{"suoid": OID}, {"saoid": OID, "suoid": OID}, {"ses": "scope"}]
    for refused in bad:
        answer = await get(blobs, "/box/a", token(key, "/blob/acme/box/a", sr="b", **refused))
        assert (answer.status, answer.code) == (403, "AuthenticationFailed")
    blobs.trust(trusting(assigned("Storage Blob Data Contributor")))
    answer = await get(blobs, "/box/a", token(key, "/blob/acme/box/a", sr="b", **agent))
    assert answer.code == "AuthorizationPermissionMismatch"


async def test_a_token_without_any_key_given_out(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    key = {
        "SignedOid": OID, "SignedTid": TENANT, "SignedStart": text_of(START), "SignedExpiry": text_of(START + HOUR),
        "SignedService": "b", "SignedVersion": NEW, "Value": base64.b64encode(bytes(32)).decode(),
    }  # fmt: skip
    answer = await get(blobs, "/box/a", token(key, "/blob/acme/box/a", sr="b"))
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


async def test_a_copy_from_a_source_with_such_a_token(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    source = f"http://localhost:10000/acme/box/a?{token(key, '/blob/acme/box/a', sr='b')}"
    answer = await blobs("PUT", "/box/z", {"x-ms-copy-source": source, "x-ms-blob-type": "BlockBlob"})
    assert answer.status == 201


async def test_the_vendors_library_makes_the_same_tokens(blobs: Harness) -> None:
    from azure.storage.blob import (
        BlobSasPermissions,
        ContainerSasPermissions,
        UserDelegationKey,
        generate_blob_sas,
        generate_container_sas,
    )

    await filled(blobs)
    fields = await key_of(blobs, version="2018-11-09")
    key: Any = UserDelegationKey()  # type: ignore[no-untyped-call]
    key.signed_oid, key.signed_tid = fields["SignedOid"], fields["SignedTid"]
    key.signed_start, key.signed_expiry = fields["SignedStart"], fields["SignedExpiry"]
    key.signed_service, key.signed_version = fields["SignedService"], fields["SignedVersion"]
    key.value = fields["Value"]
    expiry = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=NOW + 3600)
    common: Any = {"user_delegation_key": key, "expiry": expiry}
    blob = generate_blob_sas("acme", "box", "a", permission=BlobSasPermissions(read=True), **common)
    assert (await get(blobs, "/box/a", blob)).status == 200
    container = generate_container_sas("acme", "box", permission=ContainerSasPermissions(list=True), **common)
    assert (await get(blobs, "/box?restype=container&comp=list", container)).status == 200


async def test_tokens_go_on_where_keys_are_switched_off(blobs: Harness) -> None:
    await filled(blobs)
    key = await key_of(blobs)
    shared = token(key, "/blob/acme/box/a", sr="b")
    account = blobs.environment.accounts["acme"]
    closed = replace(account, settings=AccountSettings(shared_key_access=False))
    blobs.environment = replace(blobs.environment, accounts={"acme": closed})
    blobs.service = blobs._build(blobs.environment)
    assert (await blobs("GET", "/box/a")).code == "KeyBasedAuthenticationNotPermitted"
    assert (await get(blobs, "/box/a", blob_token(blobs, "a"))).code == "KeyBasedAuthenticationNotPermitted"
    assert (await get(blobs, "/box/a", shared)).status == 200
    assert (await blobs("GET", "/box/a", bearer(), sign=False)).status == 200
    source = f"http://localhost:10000/acme/box/a?{shared}"
    copied = {**bearer(), "x-ms-copy-source": source, "x-ms-blob-type": "BlockBlob"}
    assert (await blobs("PUT", "/box/z", copied, sign=False)).status == 201
