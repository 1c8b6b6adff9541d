"""The time of the last access: what sets it, what moves it and what does not, and where it is visible."""

from dataclasses import replace

import pytest

from kyanite.engine.api import EngineBusy
from kyanite.model.accounts import AccountSettings
from kyanite.model.maintenance.tasks import TASKS, step_each, step_of
from kyanite.services.blob.service import blob_service
from kyanite.values import later
from kyanite.wire import http_date
from tests.services.harness import Harness

BLOCK = {"x-ms-blob-type": "BlockBlob"}
HEADER = "x-ms-last-access-time"
HOUR, DAY = 3600, 86_400


def track(blobs: Harness, *, tracks: bool = True) -> None:
    settings = AccountSettings(last_access_tracking=tracks)
    accounts = {
        name: replace(account, settings=settings) for name, account in blobs.environment.accounts.items()
    }
    blobs.environment = replace(blobs.environment, accounts=accounts)
    blobs.service = blob_service(blobs.environment)


@pytest.fixture
def tracked(blobs: Harness) -> Harness:
    track(blobs)
    return blobs


def now(blobs: Harness) -> str:
    return http_date.encode(blobs.clock.now)


def wait(blobs: Harness, seconds: float) -> None:
    blobs.clock.now = later(blobs.clock.now, seconds)


async def put(blobs: Harness, name: str = "b", data: bytes = b"hello") -> None:
    await blobs("PUT", "/box?restype=container")
    assert (await blobs("PUT", f"/box/{name}", BLOCK, data)).status == 201


async def visible(blobs: Harness, target: str = "/box/b") -> str | None:
    return (await blobs("HEAD", target)).headers.get(HEADER)


async def test_it_is_set_at_creation_and_moved_by_reads_once_a_day(tracked: Harness) -> None:
    await put(tracked)
    created = now(tracked)
    assert await visible(tracked) == created
    wait(tracked, DAY - HOUR)
    assert (await tracked("GET", "/box/b")).headers[HEADER] == created
    assert await visible(tracked) == created
    wait(tracked, 2 * HOUR)
    read = now(tracked)
    assert (await tracked("GET", "/box/b")).headers[HEADER] == created
    assert await visible(tracked) == read
    wait(tracked, HOUR)
    assert (await tracked("GET", "/box/b", {"x-ms-range": "bytes=0-1"})).headers[HEADER] == read
    assert await visible(tracked) == read


async def test_reads_change_neither_etag_nor_last_modified(tracked: Harness) -> None:
    await put(tracked)
    before = await tracked("HEAD", "/box/b")
    wait(tracked, 2 * DAY)
    await tracked("GET", "/box/b")
    after = await tracked("HEAD", "/box/b")
    assert after.headers[HEADER] != before.headers[HEADER]
    for name in ("etag", "last-modified"):
        assert after.headers[name] == before.headers[name]
    assert (await tracked("GET", "/box/b", {"If-None-Match": before.headers["etag"]})).status == 304


async def test_what_does_not_move_it(tracked: Harness) -> None:
    await put(tracked)
    created = now(tracked)
    wait(tracked, 2 * DAY)
    etag = (await tracked("HEAD", "/box/b")).headers["etag"]
    for method, target, headers in (
        ("HEAD", "/box/b", {}),
        ("GET", "/box/b?comp=metadata", {}),
        ("GET", "/box/b?comp=blocklist", {}),
        ("GET", "/box?restype=container&comp=list", {}),
        ("PUT", "/box/b?comp=metadata", {"x-ms-meta-a": "1"}),
        ("PUT", "/box/b?comp=properties", {"x-ms-blob-content-type": "text/x"}),
        ("PUT", "/box/b?comp=tier", {"x-ms-access-tier": "Cool"}),
        ("PUT", "/box/b?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}),
        ("PUT", "/box/b?comp=snapshot", {}),
        ("GET", "/box/b", {"If-Match": etag}),
        ("GET", "/box/b", {"x-ms-range": "bytes=99-"}),
        ("GET", "/box/none", {}),
    ):
        answer = await tracked(method, target, headers)
        assert answer.status < 500, target
        assert await visible(tracked) == created, target


async def test_every_write_moves_it(tracked: Harness) -> None:
    """A test of the official client, recorded with Azure, has a later time after Put Block List five seconds later."""
    await put(tracked)
    for _ in range(2):
        wait(tracked, 5)
        await put(tracked)
        assert await visible(tracked) == now(tracked)
    wait(tracked, 5)
    await tracked("PUT", "/box/b?comp=block&blockid=AAAA", body=b"x")
    assert await visible(tracked) != now(tracked)
    body = b"<BlockList><Latest>AAAA</Latest></BlockList>"
    assert (await tracked("PUT", "/box/b?comp=blocklist", body=body)).status == 201
    assert await visible(tracked) == now(tracked)


async def test_every_way_to_make_a_block_blob_sets_it(tracked: Harness) -> None:
    await put(tracked, "source")
    wait(tracked, 2 * DAY)
    await tracked("PUT", "/box/blocks?comp=block&blockid=AAAA", body=b"x")
    body = b"<BlockList><Latest>AAAA</Latest></BlockList>"
    assert (await tracked("PUT", "/box/blocks?comp=blocklist", body=body)).status == 201
    source = {"x-ms-copy-source": "http://acme.blob.localhost:10000/box/source"}
    assert (await tracked("PUT", "/box/copy", source)).status == 202
    for name in ("blocks", "copy"):
        assert await visible(tracked, f"/box/{name}") == now(tracked)
    assert await visible(tracked, "/box/source") != now(tracked)


async def test_only_base_block_blobs_have_it(tracked: Harness) -> None:
    await put(tracked)
    snapshot = (await tracked("PUT", "/box/b?comp=snapshot")).headers["x-ms-snapshot"]
    await tracked("PUT", "/box/a", {"x-ms-blob-type": "AppendBlob"})
    await tracked("PUT", "/box/p", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"})
    for target in ("/box/a", "/box/p", f"/box/b?snapshot={snapshot}"):
        assert (await tracked("GET", target)).status == 200
        assert await visible(tracked, target) is None
    page = await tracked("GET", "/box?restype=container&comp=list&include=snapshots")
    found = [
        (each.findtext("Name"), each.findtext("Snapshot"), each.findtext("Properties/LastAccessTime"))
        for each in page.xml.iter("Blob")
    ]
    assert found == [
        ("a", None, None),
        ("b", snapshot, None),
        ("b", None, now(tracked)),
        ("p", None, None),
    ]


async def test_lists_show_it_for_every_blob(tracked: Harness) -> None:
    for number in range(700):
        await put(tracked, f"dir/{number:03}")
    wait(tracked, 2 * DAY)
    await tracked("GET", "/box/dir/333")
    page = await tracked("GET", "/box?restype=container&comp=list")
    times = {
        each.findtext("Name"): each.findtext("Properties/LastAccessTime") for each in page.xml.iter("Blob")
    }
    assert len(times) == 700
    assert times.pop("dir/333") == now(tracked)
    assert set(times.values()) == {http_date.encode(later(tracked.clock.now, -2 * DAY))}
    folders = await tracked("GET", "/box?restype=container&comp=list&delimiter=/")
    assert [each.findtext("Name") for each in folders.xml.iter("BlobPrefix")] == ["dir/"]


async def test_without_tracking_nothing_is_returned_or_stored(blobs: Harness) -> None:
    await put(blobs)
    assert HEADER not in (await blobs("GET", "/box/b")).headers
    assert await visible(blobs) is None
    assert b"LastAccess" not in (await blobs("GET", "/box?restype=container&comp=list")).body
    assert await blobs.engine.read(lambda snap: list(snap.scan(b"7", b"8"))) == []


async def test_a_blob_that_is_older_than_the_tracking_has_it_from_the_first_read_on(blobs: Harness) -> None:
    await put(blobs)
    track(blobs)
    assert await visible(blobs) is None
    assert HEADER not in (await blobs("GET", "/box/b")).headers
    assert await visible(blobs) == now(blobs)


async def test_a_new_blob_of_the_name_has_none_of_a_former_one(tracked: Harness) -> None:
    await put(tracked)
    await tracked("DELETE", "/box/b")
    wait(tracked, HOUR)
    track(tracked, tracks=False)
    await put(tracked)
    track(tracked)
    assert await visible(tracked) is None
    assert b"LastAccess" not in (await tracked("GET", "/box?restype=container&comp=list")).body
    await tracked("DELETE", "/box/b")
    wait(tracked, HOUR)
    await put(tracked)
    assert await visible(tracked) == now(tracked)


async def test_times_of_deleted_blobs_are_removed(tracked: Harness) -> None:
    for name in ("a", "b", "c"):
        await put(tracked, name)
    await tracked("DELETE", "/box/a")
    await tracked("DELETE", "/box/c")
    maintenance = [step_of(tracked.engine, task) for task in TASKS]
    for _ in range(5):
        await step_each(maintenance)
    left = await tracked.engine.read(lambda snap: [key[9:] for key, _ in snap.scan(b"7", b"8")])
    assert left == [b"b"]
    await tracked("DELETE", "/box?restype=container")
    wait(tracked, 2 * HOUR)
    for _ in range(10):
        await step_each(maintenance)
    assert await tracked.engine.read(lambda snap: list(snap.scan(b"7", b"8"))) == []


async def test_a_renamed_container_keeps_the_times(tracked: Harness) -> None:
    await put(tracked)
    created = now(tracked)
    wait(tracked, HOUR)
    await tracked("PUT", "/crate?restype=container&comp=rename", {"x-ms-source-container-name": "box"})
    assert await visible(tracked, "/crate/b") == created


async def test_a_read_succeeds_when_its_time_cannot_be_recorded(
    tracked: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(tracked, data=b"x" * 300_000)
    created = now(tracked)
    wait(tracked, 2 * DAY)

    async def full(*_args: object, **_options: object) -> None:
        raise EngineBusy("The disk is full.")

    monkeypatch.setattr(tracked.engine, "run", full)
    answer = await tracked("GET", "/box/b")
    assert (answer.status, len(answer.body), answer.headers[HEADER]) == (200, 300_000, created)


async def test_a_read_needs_no_sync(tracked: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(tracked)
    run, durabilities = tracked.engine.run, []

    def counted(body: object, *scopes: object, durable: bool = True) -> object:
        durabilities.append(durable)
        return run(body, *scopes, durable=durable)  # type: ignore[arg-type]

    monkeypatch.setattr(tracked.engine, "run", counted)
    await tracked("GET", "/box/b")
    assert durabilities == []
    wait(tracked, 2 * DAY)
    await tracked("GET", "/box/b")
    await tracked("GET", "/box/b")
    assert durabilities == [False]
