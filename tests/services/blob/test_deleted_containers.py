"""Deleted containers: kept for a while, listed, restored with everything in them, and gone after their time."""

from urllib.parse import quote
from xml.etree.ElementTree import Element

import pytest

from kyanite.model import settings
from kyanite.model.maintenance.tasks import TASKS, step_each, step_of
from kyanite.model.verification.rows import check_page
from kyanite.service_properties import Retention, ServiceProperties
from kyanite.values import later
from tests.services.harness import Answer, Harness

BOX = "/box?restype=container"
UNDELETE = "/box?restype=container&comp=undelete"
BLOCK = {"x-ms-blob-type": "BlockBlob"}
ID = "11111111-1111-1111-1111-111111111111"
ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": ID}
DAY = 86_400


async def keep(blobs: Harness, days: int | None) -> None:
    change = ServiceProperties(container_retention=Retention(days))
    await settings.update(blobs.engine, "acme", "blob", change)


async def listed(blobs: Harness, query: str = "") -> list[Element]:
    page = await blobs("GET", f"/?comp=list&include=deleted{query}")
    assert page.status == 200
    return list(page.xml.iter("Container"))


async def versions(blobs: Harness) -> list[str]:
    found = [each.findtext("Version") for each in await listed(blobs)]
    return [each for each in found if each]


async def restore(blobs: Harness, version: str, name: str = "box") -> Answer:
    named = {"x-ms-deleted-container-name": name, "x-ms-deleted-container-version": version}
    return await blobs("PUT", f"/{name}?restype=container&comp=undelete", named)


async def maintain(blobs: Harness) -> None:
    maintenance = [step_of(blobs.engine, task) for task in TASKS]
    for _ in range(20):
        await step_each(maintenance)


async def check_rows(blobs: Harness) -> None:
    """Every row is right, and every count."""
    page = await blobs.engine.read(lambda snap: check_page(snap, b""))
    assert (page.findings, page.next_key) == ([], None)
    assert {key: count for key, count in page.stated.items() if count} == page.counted


async def make(blobs: Harness, *, data: bytes = b"hello") -> None:
    meta = {"x-ms-meta-Color": "blue", "x-ms-blob-public-access": "blob"}
    assert (await blobs("PUT", BOX, meta)).status == 201
    assert (await blobs("PUT", "/box/b", BLOCK, data)).status == 201


async def test_a_deleted_container_is_restored_with_everything_in_it(blobs: Harness) -> None:
    await keep(blobs, 7)
    await make(blobs, data=b"x" * 50_000)
    snapshot = (await blobs("PUT", "/box/b?comp=snapshot")).headers["x-ms-snapshot"]
    before = await blobs("HEAD", BOX)
    assert (await blobs("DELETE", BOX)).status == 202
    for method, target in (("GET", BOX), ("GET", "/box/b"), ("GET", f"{BOX}&comp=list"), ("DELETE", BOX)):
        gone = await blobs(method, target)
        assert (gone.status, gone.code) == (404, "ContainerNotFound")
    (version,) = await versions(blobs)
    restored = await restore(blobs, version)
    assert (restored.status, "etag" in restored.headers) == (201, False)
    after = await blobs("HEAD", BOX)
    for name in ("etag", "last-modified", "x-ms-meta-color", "x-ms-blob-public-access"):
        assert after.headers[name] == before.headers[name]
    assert (await blobs("GET", "/box/b", sign=False)).body == b"x" * 50_000
    assert (await blobs("GET", f"/box/b?snapshot={quote(snapshot)}")).status == 200
    assert await versions(blobs) == []
    await check_rows(blobs)


async def test_its_tagged_blobs_are_found_while_it_is_there(blobs: Harness) -> None:
    async def found() -> list[tuple[str | None, str | None]]:
        page = await blobs("GET", "/?comp=blobs&where=color%3D%27blue%27")
        assert page.status == 200
        return [(each.findtext("ContainerName"), each.findtext("Name")) for each in page.xml.iter("Blob")]

    await keep(blobs, 7)
    await blobs("PUT", BOX)
    await blobs("PUT", "/box/b", BLOCK | {"x-ms-tags": "color=blue"}, b"x")
    assert await found() == [("box", "b")]
    await blobs("DELETE", BOX)
    assert await found() == []
    await blobs("PUT", BOX)
    assert await found() == []
    await blobs("DELETE", BOX)
    assert (await restore(blobs, (await versions(blobs))[0])).status == 201
    assert await found() == [("box", "b")]
    await blobs("PUT", "/crate?restype=container&comp=rename", {"x-ms-source-container-name": "box"})
    assert await found() == [("crate", "b")]
    await check_rows(blobs)


async def test_what_a_list_shows_of_it(blobs: Harness) -> None:
    await keep(blobs, 7)
    await make(blobs)
    live = (await listed(blobs))[0]
    assert [each.tag for each in live] == ["Name", "Properties"]
    await blobs("DELETE", BOX)
    blobs.clock.now = later(blobs.clock.now, 60)
    assert list((await blobs("GET", "/?comp=list")).xml.iter("Container")) == []
    (item,) = await listed(blobs, ",metadata")
    assert [each.tag for each in item] == ["Name", "Deleted", "Version", "Properties", "Metadata"]
    assert (item.findtext("Name"), item.findtext("Deleted")) == ("box", "true")
    assert len(item.findtext("Version") or "") == 16
    properties = item.find("Properties")
    assert properties is not None
    assert [each.tag for each in properties] == [
        "Last-Modified",
        "Etag",
        "LeaseStatus",
        "LeaseState",
        "PublicAccess",
        "DefaultEncryptionScope",
        "DenyEncryptionScopeOverride",
        "HasImmutabilityPolicy",
        "HasLegalHold",
        "ImmutableStorageWithVersioningEnabled",
        "DeletedTime",
        "RemainingRetentionDays",
    ]
    assert (properties.findtext("LeaseStatus"), properties.findtext("LeaseState")) == ("unlocked", "expired")
    assert properties.findtext("RemainingRetentionDays") == "6"
    assert item.findtext("Metadata/Color") == "blue"


async def test_the_lease_does_not_come_back(blobs: Harness) -> None:
    await keep(blobs, 7)
    await make(blobs)
    await blobs("PUT", f"{BOX}&comp=lease", ACQUIRE)
    assert (await blobs("DELETE", BOX)).code == "LeaseIdMissing"
    assert (await blobs("DELETE", BOX, {"x-ms-lease-id": ID})).status == 202
    (version,) = await versions(blobs)
    assert (await restore(blobs, version)).status == 201
    assert (await blobs("HEAD", BOX)).headers["x-ms-lease-state"] == "available"
    assert (await blobs("DELETE", BOX)).status == 202


async def test_a_name_is_deleted_several_times(blobs: Harness) -> None:
    await keep(blobs, 7)
    for data in (b"first", b"second", b"third"):
        await make(blobs, data=data)
        await blobs("DELETE", BOX)
    await make(blobs, data=b"fourth")
    found = await versions(blobs)
    assert len(found) == len(set(found)) == 3
    in_use = await restore(blobs, found[1])
    assert (in_use.status, in_use.code) == (409, "ContainerAlreadyExists")
    assert (await blobs("GET", "/box/b")).body == b"fourth"
    await blobs("DELETE", BOX)
    assert (await restore(blobs, found[1])).status == 201
    assert (await blobs("GET", "/box/b")).body == b"second"
    again = await restore(blobs, found[1])
    assert (again.status, again.code) == (404, "ContainerNotFound")
    assert len(await versions(blobs)) == 3
    await check_rows(blobs)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
async def test_every_container_is_listed_once_page_by_page(blobs: Harness, size: int) -> None:
    await keep(blobs, 7)
    for name in ("aaa", "box", "boy"):
        for _ in range(2):
            await blobs("PUT", f"/{name}?restype=container")
            await blobs("DELETE", f"/{name}?restype=container")
    await blobs("PUT", BOX)
    await blobs("PUT", "/bow?restype=container")
    found, marker = [], ""
    while True:
        page = await blobs("GET", f"/?comp=list&include=deleted&maxresults={size}&marker={marker}")
        items = list(page.xml.iter("Container"))
        assert len(items) <= size
        found += [(each.findtext("Name"), each.findtext("Version") or "") for each in items]
        marker = quote(page.xml.findtext("NextMarker") or "")
        if not marker:
            break
    assert found == sorted(set(found))
    assert [(name, bool(version)) for name, version in found] == [
        ("aaa", True),
        ("aaa", True),
        ("bow", False),
        ("box", False),
        ("box", True),
        ("box", True),
        ("boy", True),
        ("boy", True),
    ]
    behind = await blobs("GET", "/?comp=list&include=deleted&maxresults=5")
    rest = await blobs("GET", f"/?comp=list&marker={quote(behind.xml.findtext('NextMarker') or '')}")
    assert list(rest.xml.iter("Container")) == []


async def test_without_a_policy_it_is_gone_at_once(blobs: Harness) -> None:
    await keep(blobs, None)
    await make(blobs)
    await blobs("DELETE", BOX)
    assert await listed(blobs) == []
    await maintain(blobs)
    assert await blobs.engine.read(lambda snap: [key for key, _ in snap.scan(b"b", b"o")]) == []


async def test_the_policy_at_the_deletion_counts(blobs: Harness) -> None:
    await keep(blobs, 3)
    await make(blobs)
    await blobs("DELETE", BOX)
    await keep(blobs, 30)
    blobs.clock.now = later(blobs.clock.now, 2 * DAY + 60)
    await keep(blobs, None)
    (item,) = await listed(blobs)
    assert item.findtext("Properties/RemainingRetentionDays") == "0"
    assert (await restore(blobs, item.findtext("Version") or "")).status == 201
    await blobs("DELETE", BOX)
    assert await listed(blobs) == []


async def test_after_its_time_it_is_gone_and_then_purged(blobs: Harness) -> None:
    await keep(blobs, 2)
    await make(blobs, data=b"x" * 50_000)
    await blobs("DELETE", BOX)
    (version,) = await versions(blobs)
    blobs.clock.now = later(blobs.clock.now, 2 * DAY - 1)
    await maintain(blobs)
    assert await versions(blobs) == [version]
    blobs.clock.now = later(blobs.clock.now, 2)
    assert await listed(blobs) == []
    expired = await restore(blobs, version)
    assert (expired.status, expired.code) == (404, "ContainerNotFound")
    blobs.clock.now = later(blobs.clock.now, 60)
    await maintain(blobs)
    kept = await blobs.engine.read(lambda snap: [key[:1] for key, _ in snap.scan(b"", b"\xff")])
    assert set(kept) <= {b"s", b"g"}


async def test_a_restored_container_outlives_its_former_expiry(blobs: Harness) -> None:
    await keep(blobs, 1)
    await make(blobs)
    await blobs("DELETE", BOX)
    (version,) = await versions(blobs)
    await restore(blobs, version)
    blobs.clock.now = later(blobs.clock.now, 3 * DAY)
    await maintain(blobs)
    assert (await blobs("GET", "/box/b")).body == b"hello"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "MissingRequiredHeader"),
        ({"x-ms-deleted-container-name": "box"}, "MissingRequiredHeader"),
        ({"x-ms-deleted-container-version": "0" * 16}, "MissingRequiredHeader"),
        ({"x-ms-deleted-container-name": "other", "x-ms-deleted-container-version": "0" * 16}, "InvalidHeaderValue"),
        ({"x-ms-deleted-container-name": "box", "x-ms-deleted-container-version": "x"}, "InvalidHeaderValue"),
        ({"x-ms-deleted-container-name": "box", "x-ms-deleted-container-version": "0" * 17}, "InvalidHeaderValue"),
        ({"x-ms-deleted-container-name": "box", "x-ms-deleted-container-version": "0" * 16}, "ContainerNotFound"),
    ],
)  # fmt: skip
async def test_restores_that_cannot_be(blobs: Harness, headers: dict[str, str], code: str) -> None:
    assert (await blobs("PUT", UNDELETE, headers)).code == code


@pytest.mark.parametrize("position", ["x", "-1", str(1 << 64), "9" * 40])
async def test_markers_that_no_list_gave_out(blobs: Harness, position: str) -> None:
    from kyanite.services.rest.paging import encode_marker

    marker = quote(encode_marker(f"box\0{position}"))
    for include in ("deleted", "metadata"):
        answer = await blobs("GET", f"/?comp=list&include={include}&marker={marker}")
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
