"""Immutability policies and legal holds over REST: what every operation answers beside them, and how they are set."""

from collections.abc import Mapping
from urllib.parse import quote

import pytest

from kyanite.model import settings
from kyanite.model.blobs import protection
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.protection import ChangeContainer
from kyanite.rules import immutability
from kyanite.rules.immutability import Appends, ContainerProtection
from kyanite.service_properties import DeleteRetention, Retention, ServiceProperties
from kyanite.values import Instant, later, unix_seconds
from kyanite.wire import http_date
from tests.services.blob import test_batch
from tests.services.harness import Answer, Harness
from tests.services.tokens import blob_token
from tests.signed_tokens import assigned, claims_at, signed, trusting

BLOCK, APPEND = {"x-ms-blob-type": "BlockBlob"}, {"x-ms-blob-type": "AppendBlob"}
PAGE = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
BOX = ContainerKey("acme", "box")
DAY = 24 * 3600
UNTIL, MODE, LEGAL_HOLD = (
    "x-ms-immutability-policy-until-date",
    "x-ms-immutability-policy-mode",
    "x-ms-legal-hold",
)
POLICY_CODE, LEGAL_HOLD_CODE = "BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold"
BLOCK_LIST = b"<BlockList><Uncommitted>YQ==</Uncommitted></BlockList>"
PAST, FAR = "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"


def date(blobs: Harness, seconds: float) -> str:
    """The text of a date so many seconds from now."""
    return http_date.encode(later(blobs.clock.now, seconds))


async def change(blobs: Harness, change_container: ChangeContainer) -> ContainerProtection:
    return await protection.change_container(blobs.engine, BOX, change_container)


async def use_versions(blobs: Harness) -> None:
    """Give the container version-level immutability."""
    await settings.update(blobs.engine, "acme", "blob", ServiceProperties(versioning=True))
    await protection.enable_version_level(blobs.engine, BOX)


def wait(blobs: Harness, seconds: float) -> None:
    blobs.clock.now = later(blobs.clock.now, seconds)


async def filled(blobs: Harness) -> Harness:
    """A container with a blob of each kind, staged blocks, and a source of copies elsewhere."""
    await blobs("PUT", "/box?restype=container")
    await blobs("PUT", "/else?restype=container", {"x-ms-blob-public-access": "blob"})
    await blobs("PUT", "/else/source", BLOCK, b"source")
    await blobs("PUT", "/box/b", BLOCK, b"block")
    await blobs("PUT", "/box/a", APPEND)
    await blobs("PUT", "/box/p", PAGE)
    await blobs("PUT", "/box/b?comp=block&blockid=YQ==", body=b"staged")
    return blobs


SOURCE_HEADER = {"x-ms-copy-source": "http://localhost:10000/acme/else/source"}
_PAGES = {"x-ms-range": "bytes=0-511", "x-ms-page-write": "update"}
WRITES: list[tuple[str, str, str, dict[str, str], bytes, str]] = [
    # operation, method, target, headers, body, and its row in the table of what is refused
    ("Delete Blob", "DELETE", "/box/b", {}, b"", "delete"),
    ("Put Blob", "PUT", "/box/b", BLOCK, b"new", "overwrite"),
    ("Put Blob, append", "PUT", "/box/a", APPEND, b"", "overwrite"),
    ("Put Blob, page", "PUT", "/box/p", PAGE, b"", "overwrite"),
    ("Put Block List", "PUT", "/box/b?comp=blocklist", {}, BLOCK_LIST, "overwrite"),
    ("Copy Blob", "PUT", "/box/b", SOURCE_HEADER, b"", "overwrite"),
    ("Copy Blob From URL", "PUT", "/box/b", SOURCE_HEADER | {"x-ms-requires-sync": "true"}, b"", "overwrite"),
    ("Put Blob From URL", "PUT", "/box/b", SOURCE_HEADER | BLOCK, b"", "overwrite"),
    ("Set Blob Metadata", "PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "1"}, b"", "metadata"),
    ("Put Page", "PUT", "/box/p?comp=page", _PAGES, b"x" * 512, "pages"),
    ("Put Page, clear", "PUT", "/box/p?comp=page", _PAGES | {"x-ms-page-write": "clear"}, b"", "pages"),
    ("resize", "PUT", "/box/p?comp=properties", {"x-ms-blob-content-length": "512"}, b"", "pages"),
    ("Set Blob Properties", "PUT", "/box/b?comp=properties", {"x-ms-blob-content-type": "a/b"}, b"", "properties"),
    ("sequence number", "PUT", "/box/p?comp=properties", {"x-ms-sequence-number-action": "increment"}, b"",
     "properties"),
    ("Append Block", "PUT", "/box/a?comp=appendblock", {}, b"more", "append"),
    ("Append Block From URL", "PUT", "/box/a?comp=appendblock", SOURCE_HEADER, b"", "append"),
    ("Append Blob Seal", "PUT", "/box/a?comp=seal", {}, b"", "seal"),
    ("Snapshot Blob", "PUT", "/box/b?comp=snapshot", {}, b"", "snapshot"),
    ("Set Blob Tier", "PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Cool"}, b"", "free"),
    ("Lease Blob", "PUT", "/box/b?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}, b"",
     "free"),
    ("Put Block", "PUT", "/box/b?comp=block&blockid=Yg==", {}, b"staged", "free"),
    ("Get Blob", "GET", "/box/b", {}, b"", "free"),
    ("Get Block List", "GET", "/box/b?comp=blocklist", {}, b"", "free"),
    ("Get Page Ranges", "GET", "/box/p?comp=pagelist", {}, b"", "free"),
    ("a new blob", "PUT", "/box/new", BLOCK, b"new", "free"),
    ("a new copy", "PUT", "/box/new", SOURCE_HEADER, b"", "free"),
]  # fmt: skip
NAMES = [row[0] for row in WRITES]
REFUSED_BY_CONTAINER = {
    "delete",
    "overwrite",
    "metadata",
    "pages",
    "properties",
    "append",
    "seal",
    "snapshot",
}


async def outcome(blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str]) -> str:
    _, method, target, headers, body, _ = row
    answer = await blobs(method, target, headers, body)
    assert answer.status in (200, 201, 202, 409), answer.body
    return answer.code if answer.status == 409 else ""


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("row", WRITES, ids=NAMES)
async def test_an_active_policy_of_the_container(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str], locked: bool
) -> None:
    box = await filled(blobs)
    await change(box, lambda before: immutability.set_container_policy(before, 7))
    if locked:
        await change(box, immutability.lock_container_policy)
    wait(box, 7 * DAY - 1)
    assert await outcome(box, row) == (POLICY_CODE if row[5] in REFUSED_BY_CONTAINER else "")


@pytest.mark.parametrize("row", WRITES, ids=NAMES)
async def test_an_expired_policy_of_the_container(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str]
) -> None:
    box = await filled(blobs)
    await change(box, lambda before: immutability.set_container_policy(before, 6))
    wait(box, 6 * DAY + 1)
    assert await outcome(box, row) == (POLICY_CODE if row[5] in REFUSED_BY_CONTAINER - {"delete"} else "")


@pytest.mark.parametrize("row", WRITES, ids=NAMES)
async def test_a_legal_hold_of_the_container(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str]
) -> None:
    box = await filled(blobs)
    await change(box, lambda before: immutability.set_legal_holds(before, ("case1",)))
    assert await outcome(box, row) == (LEGAL_HOLD_CODE if row[5] in REFUSED_BY_CONTAINER else "")
    await change(box, lambda before: immutability.clear_legal_holds(before, ("case1",)))
    again = ("again", *row[1:])
    assert row[5] == "free" or await outcome(box, again) == ""


@pytest.mark.parametrize("appends", [Appends.APPEND_BLOBS, Appends.ALL])
@pytest.mark.parametrize("row", WRITES, ids=NAMES)
async def test_a_policy_that_lets_append_blobs_grow(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str], appends: Appends
) -> None:
    box = await filled(blobs)
    await change(box, lambda before: immutability.set_container_policy(before, 7, appends))
    refused = REFUSED_BY_CONTAINER - {"append", "seal"}
    assert await outcome(box, row) == (POLICY_CODE if row[5] in refused else "")


async def test_an_append_blob_is_kept_from_its_last_append_on(blobs: Harness) -> None:
    box = await filled(blobs)
    await change(box, lambda before: immutability.set_container_policy(before, 7, Appends.APPEND_BLOBS))
    wait(box, 5 * DAY)
    assert (await box("PUT", "/box/a?comp=appendblock", body=b"more")).status == 201
    wait(box, 5 * DAY)
    assert (await box("DELETE", "/box/a")).code == POLICY_CODE
    assert (await box("DELETE", "/box/b")).status == 202
    wait(box, 2 * DAY)
    assert (await box("DELETE", "/box/a")).status == 202


async def test_the_days_of_a_policy_count_from_the_creation(blobs: Harness) -> None:
    """Also for blobs that were there before the policy; and the newest number of days counts."""
    box = await filled(blobs)
    wait(box, 3 * DAY)
    await change(box, lambda before: immutability.set_container_policy(before, 5))
    await box("PUT", "/box/late", BLOCK, b"late")
    wait(box, 2 * DAY + 1)
    assert (await box("DELETE", "/box/b")).status == 202
    assert (await box("DELETE", "/box/late")).code == POLICY_CODE
    await change(box, lambda before: immutability.set_container_policy(before, 2))
    assert (await box("DELETE", "/box/late")).status == 202


# Blobs with a policy or a hold of their own

REFUSED_BY_VERSION = {"delete", "metadata", "pages", "append"}
OVERWRITES = [row for row in WRITES if row[5] == "overwrite"]


async def protect_all(blobs: Harness, query: str, headers: dict[str, str]) -> None:
    for name in ("b", "a", "p"):
        assert (await blobs("PUT", f"/box/{name}?comp={query}", headers)).status == 200


@pytest.mark.parametrize("mode", ["Unlocked", "Locked"])
@pytest.mark.parametrize("row", WRITES, ids=NAMES)
async def test_an_active_policy(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str], mode: str
) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await protect_all(box, "immutabilityPolicies", {UNTIL: date(box, DAY), MODE: mode})
    assert await outcome(box, row) == (POLICY_CODE if row[5] in REFUSED_BY_VERSION else "")


@pytest.mark.parametrize("row", WRITES, ids=NAMES)
async def test_an_expired_policy(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str]
) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await protect_all(box, "immutabilityPolicies", {UNTIL: date(box, DAY), MODE: "Locked"})
    wait(box, DAY)
    refused = REFUSED_BY_VERSION - {"delete"}
    assert await outcome(box, row) == (POLICY_CODE if row[5] in refused else "")


@pytest.mark.parametrize("row", WRITES, ids=NAMES)
async def test_a_legal_hold(blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str]) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await protect_all(box, "legalhold", {LEGAL_HOLD: "true"})
    assert await outcome(box, row) == (LEGAL_HOLD_CODE if row[5] in REFUSED_BY_VERSION else "")


@pytest.mark.parametrize("row", OVERWRITES, ids=[row[0] for row in OVERWRITES])
async def test_an_overwrite_that_would_keep_nothing(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str]
) -> None:
    """Versioning has been switched off since; soft delete would keep the blob for some days only."""
    box = await filled(blobs)
    await use_versions(box)
    await protect_all(box, "immutabilityPolicies", {UNTIL: date(box, DAY), MODE: "Locked"})
    kept = ServiceProperties(versioning=False, delete_retention=DeleteRetention(Retention(7)))
    await settings.update(box.engine, "acme", "blob", kept)
    assert await outcome(box, row) == POLICY_CODE
    wait(box, DAY)
    assert await outcome(box, row) == ""


async def set_policy(
    blobs: Harness,
    target: str = "/box/b",
    seconds: float = DAY,
    mode: str = "(absent)",
    headers: Mapping[str, str] = {},
) -> Answer:
    query = "&" if "?" in target else "?"
    sent = {UNTIL: date(blobs, seconds), MODE: mode, **headers}
    return await blobs("PUT", f"{target}{query}comp=immutabilityPolicies", sent)


async def delete_policy(blobs: Harness, target: str = "/box/b") -> Answer:
    query = "&" if "?" in target else "?"
    return await blobs("DELETE", f"{target}{query}comp=immutabilityPolicies")


async def test_a_policy_is_set_returned_and_deleted(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    etag = (await box("HEAD", "/box/b")).headers["etag"]
    answer = await set_policy(box)
    assert answer.status == 200
    assert (answer.headers[UNTIL], answer.headers[MODE]) == (date(box, DAY), "unlocked")
    assert "etag" not in answer.headers
    assert "last-modified" not in answer.headers
    for method in ("GET", "HEAD"):
        found = await box(method, "/box/b")
        assert (found.headers[UNTIL], found.headers[MODE]) == (date(box, DAY), "unlocked")
        assert (LEGAL_HOLD in found.headers, found.headers["etag"]) == (False, etag)
    assert (await set_policy(box, seconds=60, mode="locked")).headers[MODE] == "locked"
    assert (await delete_policy(box)).code == "ImmutabilityPolicyDeleteOnLockedPolicy"
    assert (await set_policy(box, "/box/a")).status == 200
    assert (await delete_policy(box, "/box/a")).status == 200
    assert UNTIL not in (await box("HEAD", "/box/a")).headers
    assert (await delete_policy(box, "/box/a")).status == 200


async def test_a_locked_policy_is_only_extended(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    assert (await set_policy(box, mode="Locked")).status == 200
    for seconds, mode in (
        (DAY - 1, "Locked"),
        (DAY, "Unlocked"),
        (2 * DAY, "Unlocked"),
        (2 * DAY, "(absent)"),
    ):
        answer = await set_policy(box, seconds=seconds, mode=mode)
        assert (answer.status, answer.code) == (409, POLICY_CODE)
    assert (await set_policy(box, seconds=DAY, mode="Locked")).status == 200
    assert (await set_policy(box, seconds=2 * DAY, mode="Locked")).status == 200
    wait(box, 3 * DAY)
    assert (await delete_policy(box)).status == 409
    assert (await box("DELETE", "/box/b")).status == 202


async def test_a_hold_is_set_returned_and_cleared(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    answer = await box("PUT", "/box/b?comp=legalhold", {LEGAL_HOLD: "true"})
    assert (answer.status, answer.headers[LEGAL_HOLD]) == (200, "true")
    assert (await box("HEAD", "/box/b")).headers[LEGAL_HOLD] == "true"
    assert (await box("DELETE", "/box/b")).code == LEGAL_HOLD_CODE
    answer = await box("PUT", "/box/b?comp=legalhold", {LEGAL_HOLD: "false"})
    assert (answer.status, answer.headers[LEGAL_HOLD]) == (200, "false")
    assert LEGAL_HOLD not in (await box("HEAD", "/box/b")).headers
    assert (await box("DELETE", "/box/b")).status == 202


@pytest.mark.parametrize(
    ("method", "target", "headers", "status", "code"),
    [
        ("PUT", "/box/b?comp=immutabilityPolicies", {}, 400, "MissingRequiredHeader"),
        ("PUT", "/box/b?comp=immutabilityPolicies", {UNTIL: "tomorrow"}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/b?comp=immutabilityPolicies", {UNTIL: PAST}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/b?comp=immutabilityPolicies", {UNTIL: FAR}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/b?comp=immutabilityPolicies", {UNTIL: "FUTURE", MODE: "Mutable"}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/none?comp=immutabilityPolicies", {UNTIL: "FUTURE"}, 404, "BlobNotFound"),
        ("PUT", "/none/b?comp=immutabilityPolicies", {UNTIL: "FUTURE"}, 404, "ContainerNotFound"),
        ("PUT", "/else/source?comp=immutabilityPolicies", {UNTIL: "FUTURE"}, 409,
         "ContainerImmutableStorageWithVersioningNotEnabled"),
        ("PUT", "/box/b?comp=immutabilityPolicies&snapshot=2020-01-01T00:00:00.0000000Z", {UNTIL: "FUTURE"}, 404,
         "BlobNotFound"),
        ("PUT", "/box/b?comp=immutabilityPolicies&snapshot=yesterday", {UNTIL: "FUTURE"}, 400,
         "InvalidQueryParameterValue"),
        ("DELETE", "/box/none?comp=immutabilityPolicies", {}, 404, "BlobNotFound"),
        ("DELETE", "/else/source?comp=immutabilityPolicies", {}, 409,
         "ContainerImmutableStorageWithVersioningNotEnabled"),
        ("PUT", "/box/b?comp=legalhold", {}, 400, "MissingRequiredHeader"),
        ("PUT", "/box/b?comp=legalhold", {LEGAL_HOLD: "perhaps"}, 400, "InvalidHeaderValue"),
        ("PUT", "/box/none?comp=legalhold", {LEGAL_HOLD: "true"}, 404, "BlobNotFound"),
        ("PUT", "/else/source?comp=legalhold", {LEGAL_HOLD: "true"}, 409,
         "ContainerImmutableStorageWithVersioningNotEnabled"),
        ("PUT", "/box/new", BLOCK | {UNTIL: "FUTURE"}, 400, "MissingRequiredHeader"),
        ("PUT", "/box/new", BLOCK | {MODE: "Unlocked"}, 400, "MissingRequiredHeader"),
        ("PUT", "/box/new", BLOCK | {UNTIL: PAST, MODE: "Locked"}, 400, "InvalidHeaderValue"),
        ("PUT", "/else/new", BLOCK | {UNTIL: "FUTURE", MODE: "Locked"}, 409,
         "ContainerImmutableStorageWithVersioningNotEnabled"),
        ("PUT", "/else/new", BLOCK | {LEGAL_HOLD: "true"}, 409, "ContainerImmutableStorageWithVersioningNotEnabled"),
        ("PUT", "/box/new", SOURCE_HEADER | BLOCK | {LEGAL_HOLD: "true"}, 400, "UnsupportedHeader"),
        ("PUT", "/box/b?comp=metadata", {LEGAL_HOLD: "true"}, 400, "UnsupportedHeader"),
        ("PUT", "/box/b?comp=block&blockid=YQ==", {UNTIL: "FUTURE"}, 400, "UnsupportedHeader"),
        ("PUT", "/box/a?comp=appendblock", {MODE: "Locked"}, 400, "UnsupportedHeader"),
        ("GET", "/box/b", {LEGAL_HOLD: "true"}, 400, "UnsupportedHeader"),
    ],
)  # fmt: skip
async def test_what_is_wrong_has_its_code(
    blobs: Harness, method: str, target: str, headers: dict[str, str], status: int, code: str
) -> None:
    box = await filled(blobs)
    await use_versions(box)
    sent = {name: date(box, DAY) if value == "FUTURE" else value for name, value in headers.items()}
    has_body = "x-ms-blob-type" in sent and "x-ms-copy-source" not in sent
    answer = await box(method, target, sent, b"body" if has_body or "block" in target else b"")
    assert (answer.status, answer.code) == (status, code)
    assert (await box("HEAD", "/box/new")).status == 404


async def test_the_time_of_the_last_change_is_a_condition(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    wait(box, 60)
    early, late = date(box, -120), date(box, 0)
    assert (await set_policy(box, headers={"If-Unmodified-Since": early})).status == 412
    assert (await set_policy(box, headers={"If-Unmodified-Since": late})).status == 200
    assert (await set_policy(box, headers={"If-Match": '"0x1"'})).status == 200


async def test_a_lease_has_no_part_in_it(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await box("PUT", "/box/b?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"})
    assert (await set_policy(box)).status == 200
    assert (await box("PUT", "/box/b?comp=legalhold", {LEGAL_HOLD: "true"})).status == 200
    assert (await delete_policy(box)).status == 200


# New blobs

CREATIONS = [row for row in WRITES if row[5] == "overwrite" and row[0] != "Put Blob From URL"]


@pytest.mark.parametrize("row", CREATIONS, ids=[row[0] for row in CREATIONS])
async def test_a_new_blob_has_the_policy_and_the_hold_of_its_request(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str]
) -> None:
    box = await filled(blobs)
    await use_versions(box)
    _, method, target, headers, body, _ = row
    name = target.partition("?")[0]
    sent = headers | {UNTIL: date(box, DAY), MODE: "Locked", LEGAL_HOLD: "true"}
    answer = await box(method, target, sent, body)
    assert answer.status in (201, 202)
    assert UNTIL not in answer.headers
    found = (await box("HEAD", name)).headers
    assert (found[UNTIL], found[MODE], found[LEGAL_HOLD]) == (date(box, DAY), "locked", "true")


@pytest.mark.parametrize("row", OVERWRITES, ids=[row[0] for row in OVERWRITES])
@pytest.mark.parametrize("locked", [False, True])
async def test_a_new_blob_has_the_default_policy(
    blobs: Harness, row: tuple[str, str, str, dict[str, str], bytes, str], locked: bool
) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await change(box, lambda before: immutability.set_container_policy(before, 3))
    if locked:
        await change(box, immutability.lock_container_policy)
    box.clock.now = Instant(box.clock.now + 1)
    _, method, target, headers, body, _ = row
    assert UNTIL not in (await box("HEAD", target.partition("?")[0])).headers
    assert (await box(method, target, headers, body)).status in (201, 202)
    found = (await box("HEAD", target.partition("?")[0])).headers
    assert found[UNTIL] == date(box, 3 * DAY + 1)
    assert found[MODE] == ("locked" if locked else "unlocked")


async def test_what_a_client_reads_it_may_send_back(blobs: Harness) -> None:
    """The end of a default policy is a whole second, so that a locked one can be set to what it is."""
    box = await filled(blobs)
    await use_versions(box)
    await change(box, lambda before: immutability.set_container_policy(before, 3))
    await change(box, immutability.lock_container_policy)
    box.clock.now = Instant(box.clock.now + 1_234_567)
    await box("PUT", "/box/new", BLOCK, b"new")
    found = (await box("HEAD", "/box/new")).headers
    answer = await box("PUT", "/box/new?comp=immutabilityPolicies", {UNTIL: found[UNTIL], MODE: "Locked"})
    assert answer.status == 200


async def test_a_copy_does_not_have_the_policy_of_its_source(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await set_policy(box, mode="Locked")
    await box("PUT", "/box/b?comp=legalhold", {LEGAL_HOLD: "true"})
    source = {"x-ms-copy-source": "http://localhost:10000/acme/box/b"}
    for target in ("/box/copy", "/else/copy"):
        assert (await box("PUT", target, source)).status == 202
        assert not {UNTIL, MODE, LEGAL_HOLD} & (await box("HEAD", target)).headers.keys()


@pytest.mark.parametrize(
    ("method", "target", "headers", "permission", "status"),
    [
        ("PUT", "/box/b?comp=immutabilityPolicies", {UNTIL: "FUTURE"}, "i", 200),
        ("PUT", "/box/b?comp=immutabilityPolicies", {UNTIL: "FUTURE"}, "rwdcax", 403),
        ("DELETE", "/box/b?comp=immutabilityPolicies", {}, "i", 200),
        ("DELETE", "/box/b?comp=immutabilityPolicies", {}, "rwd", 403),
        ("PUT", "/box/b?comp=legalhold", {LEGAL_HOLD: "true"}, "i", 200),
        ("PUT", "/box/b?comp=legalhold", {LEGAL_HOLD: "true"}, "w", 403),
        ("PUT", "/box/b", BLOCK | {LEGAL_HOLD: "true"}, "w", 403),
        ("PUT", "/box/b", BLOCK | {UNTIL: "FUTURE", MODE: "Unlocked"}, "cw", 403),
        ("PUT", "/box/b", BLOCK | {LEGAL_HOLD: "false"}, "w", 403),
        ("PUT", "/box/b", BLOCK | {LEGAL_HOLD: "true"}, "wi", 201),
        ("PUT", "/box/b", BLOCK, "w", 201),
    ],
)
async def test_a_token_needs_the_permission(
    blobs: Harness, method: str, target: str, headers: dict[str, str], permission: str, status: int
) -> None:
    box = await filled(blobs)
    await use_versions(box)
    token = blob_token(box, "b", permission=permission)
    sent = {name: date(box, DAY) if value == "FUTURE" else value for name, value in headers.items()}
    joined = f"{target}{'&' if '?' in target else '?'}{token}"
    answer = await box(method, joined, sent, b"new" if "x-ms-blob-type" in sent else b"", sign=False)
    assert (answer.status, answer.code) == (
        status,
        "AuthorizationPermissionMismatch" if status == 403 else answer.code,
    )


@pytest.mark.parametrize(
    ("role", "status"), [("Storage Blob Data Owner", 201), ("Storage Blob Data Contributor", 403)]
)
@pytest.mark.parametrize("protection_headers", [{LEGAL_HOLD: "true"}, {UNTIL: "FUTURE", MODE: "Unlocked"}])
async def test_a_contributor_cannot_protect_what_it_uploads(
    blobs: Harness, role: str, status: int, protection_headers: dict[str, str]
) -> None:
    box = await filled(blobs)
    await use_versions(box)
    box.trust(trusting(assigned(role)))
    token = {"Authorization": f"Bearer {signed(claims_at(unix_seconds(box.clock.now)))}"}
    sent = {
        name: date(box, DAY) if value == "FUTURE" else value for name, value in protection_headers.items()
    }
    answer = await box("PUT", "/box/new", BLOCK | token, b"new", sign=False)
    assert answer.status == 201
    answer = await box("PUT", "/box/kept", BLOCK | token | sent, b"new", sign=False)
    assert (answer.status, answer.code) == (
        status,
        "AuthorizationPermissionMismatch" if status == 403 else answer.code,
    )
    query = "comp=legalhold" if LEGAL_HOLD in sent else "comp=immutabilityPolicies"
    answer = await box("PUT", f"/box/b?{query}", token | sent, sign=False)
    assert answer.status == (200 if status == 201 else 403)


# Snapshots


async def snapshot(blobs: Harness) -> str:
    answer = await blobs("PUT", "/box/b?comp=snapshot")
    assert answer.status == 201
    return f"/box/b?snapshot={quote(answer.headers['x-ms-snapshot'])}"


async def test_a_snapshot_has_a_policy_and_a_hold_of_its_own(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    old = await snapshot(box)
    assert (await set_policy(box, old)).status == 200
    assert UNTIL not in (await box("HEAD", "/box/b")).headers
    assert (await box("HEAD", old)).headers[MODE] == "unlocked"
    assert (await box("DELETE", old)).code == POLICY_CODE
    for wish in ("include", "only"):
        assert (await box("DELETE", "/box/b", {"x-ms-delete-snapshots": wish})).code == POLICY_CODE
    assert (await box("PUT", f"{old}&comp=legalhold", {LEGAL_HOLD: "true"})).status == 200
    assert (await delete_policy(box, old)).status == 200
    for wish in ("include", "only"):
        assert (await box("DELETE", "/box/b", {"x-ms-delete-snapshots": wish})).code == LEGAL_HOLD_CODE
    assert (await box("PUT", f"{old}&comp=legalhold", {LEGAL_HOLD: "false"})).status == 200
    assert (await box("DELETE", old)).status == 202


async def test_a_snapshot_keeps_the_policy_that_the_blob_had(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await set_policy(box)
    old = await snapshot(box)
    await delete_policy(box)
    assert (await box("HEAD", old)).headers[UNTIL] == date(box, DAY)
    assert (await box("DELETE", "/box/b", {"x-ms-delete-snapshots": "include"})).code == POLICY_CODE
    wait(box, DAY)
    assert (await box("DELETE", "/box/b", {"x-ms-delete-snapshots": "include"})).status == 202


async def test_a_policy_of_the_container_keeps_snapshots(blobs: Harness) -> None:
    box = await filled(blobs)
    old = await snapshot(box)
    await change(box, lambda before: immutability.set_container_policy(before, 7))
    for target, headers in ((old, {}), ("/box/b", {"x-ms-delete-snapshots": "only"})):
        assert (await box("DELETE", target, headers)).code == POLICY_CODE
    wait(box, 7 * DAY + 1)
    assert (await box("DELETE", "/box/b", {"x-ms-delete-snapshots": "only"})).status == 202


# Versions and deleted blobs


async def put_version(blobs: Harness, data: bytes, **headers: str) -> str:
    """A new version of the blob ``v``, as a target."""
    answer = await blobs("PUT", "/box/v", BLOCK | headers, data)
    assert answer.status == 201
    return f"/box/v?versionid={quote(answer.headers['x-ms-version-id'])}"


async def test_every_version_has_a_policy_and_a_hold_of_its_own(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    first = await put_version(box, b"1", **{UNTIL: date(box, DAY), MODE: "Locked"})
    second = await put_version(box, b"2", **{LEGAL_HOLD: "true"})
    third = await put_version(box, b"3")
    found = [(await box("HEAD", target)).headers for target in (first, second, third, "/box/v")]
    assert [each.get(MODE) for each in found] == ["locked", None, None, None]
    assert [each.get(LEGAL_HOLD) for each in found] == [None, "true", None, None]
    assert (await box("DELETE", first)).code == POLICY_CODE
    assert (await box("DELETE", second)).code == LEGAL_HOLD_CODE
    assert (await set_policy(box, third)).status == 200
    assert (await box("HEAD", "/box/v")).headers[MODE] == "unlocked"
    assert (await box("DELETE", "/box/v")).code == POLICY_CODE
    assert (await delete_policy(box, third)).status == 200
    assert (await box("DELETE", "/box/v")).status == 202
    assert (await box("PUT", f"{second}&comp=legalhold", {LEGAL_HOLD: "false"})).status == 200
    for target in (second, third):
        assert (await box("DELETE", target)).status == 202
    assert (await delete_policy(box, first)).status == 409
    assert (await box("GET", first)).body == b"1"
    listed = await box("GET", "/box?restype=container&comp=list&include=versions,immutabilitypolicy&prefix=v")
    assert listed.body.count(b"<ImmutabilityPolicyMode>locked<") == 1


async def test_promoting_a_protected_version(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    first = await put_version(box, b"1", **{UNTIL: date(box, DAY), MODE: "Locked"})
    await put_version(box, b"2")
    source = {"x-ms-copy-source": f"http://localhost:10000/acme{first}"}
    assert (await box("PUT", "/box/v", source)).status == 202
    assert (await box("GET", "/box/v")).body == b"1"
    assert MODE not in (await box("HEAD", "/box/v")).headers
    assert (await box("HEAD", first)).headers[MODE] == "locked"


async def test_a_snapshot_while_versions_are_kept(blobs: Harness) -> None:
    """The snapshot, the previous version and the current one all have the policy that the blob had."""
    box = await filled(blobs)
    await use_versions(box)
    first = await put_version(box, b"1", **{UNTIL: date(box, DAY), MODE: "Locked"})
    answer = await box("PUT", "/box/v?comp=snapshot")
    snapshot_target = f"/box/v?snapshot={quote(answer.headers['x-ms-snapshot'])}"
    for target in (first, snapshot_target, "/box/v"):
        assert (await box("HEAD", target)).headers[MODE] == "locked", target
        assert (await box("DELETE", target)).code == POLICY_CODE, target


async def test_metadata_makes_a_version_with_the_default_policy(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await change(box, lambda before: immutability.set_container_policy(before, 3))
    assert (await box("PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "1"})).status == 200
    assert (await box("HEAD", "/box/b")).headers[MODE] == "unlocked"
    assert (await box("PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "2"})).code == POLICY_CODE


async def test_what_is_protected_is_not_soft_deleted(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    kept = ServiceProperties(delete_retention=DeleteRetention(Retention(7), allow_permanent_delete=True))
    await settings.update(box.engine, "acme", "blob", kept)
    first = await put_version(box, b"1", **{UNTIL: date(box, DAY), MODE: "Unlocked"})
    await put_version(box, b"2")
    assert (await box("DELETE", first)).code == POLICY_CODE
    wait(box, DAY)
    assert (await box("DELETE", first)).headers["x-ms-delete-type-permanent"] == "false"
    assert (await set_policy(box, first)).code == "BlobNotFound"
    assert (await box("PUT", f"{first}&comp=legalhold", {LEGAL_HOLD: "true"})).code == "BlobNotFound"
    assert (await box("PUT", "/box/v?comp=undelete")).status == 200
    assert (await set_policy(box, first, mode="Locked")).status == 200
    assert (await box("DELETE", first)).code == POLICY_CODE
    assert (await box("DELETE", f"{first}&deletetype=permanent")).status == 400
    wait(box, DAY)
    assert (await box("DELETE", first)).status == 202
    assert (await box("DELETE", f"{first}&deletetype=permanent")).status == 202
    assert (await box("HEAD", first)).status == 404


async def test_a_policy_of_the_container_keeps_versions(blobs: Harness) -> None:
    box = await filled(blobs)
    await settings.update(box.engine, "acme", "blob", ServiceProperties(versioning=True))
    first = await put_version(box, b"1")
    await put_version(box, b"2")
    await change(box, lambda before: immutability.set_container_policy(before, 7))
    assert (await box("DELETE", first)).code == POLICY_CODE
    assert (await box("PUT", "/box/v", BLOCK, b"3")).code == POLICY_CODE
    wait(box, 7 * DAY + 1)
    assert (await box("DELETE", first)).status == 202
    assert (await box("DELETE", "/box/v")).status == 202
    assert (await box("PUT", "/box/v", BLOCK, b"3")).status == 201


@pytest.mark.parametrize("query", ["comp=immutabilityPolicies", "comp=legalhold"])
async def test_a_snapshot_and_a_version_at_once(blobs: Harness, query: str) -> None:
    box = await filled(blobs)
    await use_versions(box)
    instant = quote("2026-01-01T00:00:00.0000000Z")
    target = f"/box/b?{query}&snapshot={instant}&versionid={instant}"
    answer = await box("PUT", target, {UNTIL: date(box, DAY), LEGAL_HOLD: "true"})
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


# Lists, containers and batches


async def test_lists_include_policies_and_holds_if_wanted(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    await set_policy(box, mode="Locked")
    await box("PUT", "/box/a?comp=legalhold", {LEGAL_HOLD: "true"})
    policy = (
        f"<ImmutabilityPolicyUntilDate>{date(box, DAY)}</ImmutabilityPolicyUntilDate>"
        "<ImmutabilityPolicyMode>locked</ImmutabilityPolicyMode>"
    )
    legal_hold = "<LegalHold>true</LegalHold>"
    for include, expected in (
        ("", (0, 0)),
        ("&include=metadata", (0, 0)),
        ("&include=immutabilitypolicy", (1, 0)),
        ("&include=legalhold", (0, 1)),
        ("&include=ImmutabilityPolicy,legalhold,snapshots", (1, 1)),
    ):
        for _ in range(2):
            body = (await box("GET", f"/box?restype=container&comp=list{include}")).body.decode()
            assert (body.count(policy), body.count(legal_hold)) == expected, include


@pytest.mark.parametrize(
    ("change_container", "found"),
    [
        (lambda before: immutability.set_container_policy(before, 7), ("true", "false")),
        (lambda before: immutability.set_legal_holds(before, ("case1",)), ("false", "true")),
    ],
)
async def test_a_container_shows_its_policy_and_holds(
    blobs: Harness, change_container: ChangeContainer, found: tuple[str, str]
) -> None:
    box = await filled(blobs)

    async def returned() -> tuple[str, str, str]:
        headers = (await box("HEAD", "/box?restype=container")).headers
        return (
            headers["x-ms-has-immutability-policy"],
            headers["x-ms-has-legal-hold"],
            headers["x-ms-immutable-storage-with-versioning-enabled"],
        )

    before = (await box("HEAD", "/box?restype=container")).headers["etag"]
    assert await returned() == ("false", "false", "false")
    await change(box, change_container)
    assert await returned() == (*found, "false")
    assert (await box("HEAD", "/box?restype=container")).headers["etag"] == before
    listed = (await box("GET", "/?comp=list&prefix=box")).body.decode()
    assert f"<HasImmutabilityPolicy>{found[0]}</HasImmutabilityPolicy>" in listed
    assert f"<HasLegalHold>{found[1]}</HasLegalHold>" in listed
    assert "<ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled>" in listed


async def test_a_container_shows_version_level_immutability(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    headers = (await box("HEAD", "/box?restype=container")).headers
    assert headers["x-ms-immutable-storage-with-versioning-enabled"] == "true"
    assert headers["x-ms-has-immutability-policy"] == "false"
    listed = (await box("GET", "/?comp=list&prefix=box")).body.decode()
    assert "<ImmutableStorageWithVersioningEnabled>true</ImmutableStorageWithVersioningEnabled>" in listed


@pytest.mark.parametrize("is_empty", [False, True])
async def test_a_protected_container_is_not_deleted(blobs: Harness, is_empty: bool) -> None:
    box = await filled(blobs)
    if is_empty:
        for name in "abp":
            await box("DELETE", f"/box/{name}")

    async def refused() -> str:
        answer = await box("DELETE", "/box?restype=container")
        assert answer.status == 409
        return answer.code

    await change(box, lambda before: immutability.set_legal_holds(before, ("case1",)))
    assert await refused() == "ContainerHasLegalHold"
    await change(box, lambda before: immutability.clear_legal_holds(before, ("case1",)))
    await change(box, lambda before: immutability.set_container_policy(before, 1))
    assert await refused() == "ContainerProtectedFromDeletion"
    await change(box, immutability.lock_container_policy)
    assert await refused() == "ContainerImmutabilityPolicyLocked"
    wait(box, 2 * DAY)
    assert await refused() == "ContainerImmutabilityPolicyLocked"
    assert (await box("PUT", "/box?restype=container&comp=metadata", {"x-ms-meta-a": "1"})).status == 200
    assert (await box("PUT", "/box?restype=container&comp=acl")).status == 200
    assert (await box("HEAD", "/box?restype=container")).headers["x-ms-has-immutability-policy"] == "true"


async def test_a_protected_container_is_not_renamed(blobs: Harness) -> None:
    box = await filled(blobs)
    rename = {"x-ms-source-container-name": "box"}
    await change(box, lambda before: immutability.set_legal_holds(before, ("case1",)))
    answer = await box("PUT", "/other?restype=container&comp=rename", rename)
    assert (answer.status, answer.code) == (409, "ContainerHasLegalHold")
    await change(box, lambda before: immutability.clear_legal_holds(before, ("case1",)))
    assert (await box("PUT", "/other?restype=container&comp=rename", rename)).status == 200


async def test_a_container_with_version_level_immutability_is_not_deleted(blobs: Harness) -> None:
    box = await filled(blobs)
    await use_versions(box)
    answer = await box("DELETE", "/box?restype=container")
    assert (answer.status, answer.code) == (409, "ContainerImmutableStorageWithVersioningEnabled")


async def test_a_batch_obeys_as_well(blobs: Harness) -> None:
    box = await filled(blobs)
    await change(box, lambda before: immutability.set_legal_holds(before, ("case1",)))
    token = test_batch.token(box)
    body = test_batch.batch(
        test_batch.part("DELETE", f"/acme/box/b?{token}", 0),
        test_batch.part("DELETE", f"/acme/else/source?{token}", 1),
    )
    answer = await test_batch.send(box, test_batch.ACCOUNT_SCOPE, body)
    assert sorted(test_batch.parts_of(answer)) == [("0", 409, LEGAL_HOLD_CODE), ("1", 202, "")]
