"""Tags as the official client sets, reads, compares and searches them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from azure.storage.blob import (
    BlobBlock,
    BlobSasPermissions,
    ContainerSasPermissions,
    StandardBlobTier,
    generate_blob_sas,
    generate_container_sas,
)

from tests.sdk.blob.test_history import keeping
from tests.sdk.clients import Sdk, content, done, fresh_name, items, refused

TAGS = {"colour": "red", "+-./:=_ ": "+-./:=_ ", "size": "10", "empty": ""}
RED, BLUE = "colour = 'red'", "colour <> 'red'"


def token(sdk: Sdk, blob: Any, permission: str) -> str:
    return str(
        generate_blob_sas(
            sdk.server.account,
            blob.container_name,
            blob.blob_name,
            account_key=sdk.key,
            permission=BlobSasPermissions.from_string(permission),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
    )


async def found(pages: Any) -> list[tuple[str, str, dict[str, str]]]:
    return [(each.container_name, each.name, each.tags) for each in await items(pages)]


async def test_tags_are_set_and_read(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data"))
    before = await done(blob.get_blob_properties())
    assert before.tag_count is None
    await done(blob.set_blob_tags(TAGS))
    assert await done(blob.get_blob_tags()) == TAGS
    after = await done(blob.get_blob_properties())
    assert (after.etag, after.last_modified, after.tag_count) == (before.etag, before.last_modified, 4)
    assert (await done(blob.download_blob())).properties.tag_count == 4
    await done(blob.set_blob_tags())
    assert await done(blob.get_blob_tags()) == {}


async def test_what_is_created_with_tags(sdk: Sdk) -> None:
    container = await sdk.new_container()
    block = await done(container.upload_blob("block", b"data", tags=TAGS))
    assert await done(block.get_blob_tags()) == TAGS
    large = container.get_blob_client("large")
    await done(large.stage_block("1", b"data"))
    await done(large.commit_block_list([BlobBlock("1")], tags=TAGS))
    assert await done(large.get_blob_tags()) == TAGS
    append = container.get_blob_client("append")
    await done(append.create_append_blob(tags=TAGS))
    assert await done(append.get_blob_tags()) == TAGS
    page = container.get_blob_client("page")
    await done(page.create_page_blob(512, tags=TAGS))
    assert await done(page.get_blob_tags()) == TAGS
    await done(container.upload_blob("block", b"new", overwrite=True))
    assert await done(block.get_blob_tags()) == {}


async def test_the_tags_of_copies(sdk: Sdk) -> None:
    container = await sdk.new_container()
    source = await done(container.upload_blob("source", b"data", tags=TAGS))
    readable = f"{source.url}?{token(sdk, source, 'rt')}"
    copy = container.get_blob_client("copy")
    await done(copy.start_copy_from_url(source.url))
    assert await done(copy.get_blob_tags()) == {}
    await done(copy.start_copy_from_url(source.url, tags={"own": "1"}))
    assert await done(copy.get_blob_tags()) == {"own": "1"}
    await done(copy.start_copy_from_url(readable, requires_sync=True, tags="COPY"))
    assert await done(copy.get_blob_tags()) == TAGS
    await done(copy.upload_blob_from_url(readable, overwrite=True, tags={"own": "2"}))
    assert await done(copy.get_blob_tags()) == {"own": "2"}
    with refused(412, "ConditionNotMet"):
        await done(copy.start_copy_from_url(source.url, source_if_tags_match_condition=BLUE))
    await done(copy.start_copy_from_url(source.url, source_if_tags_match_condition=RED))
    assert await content(copy) == b"data"


async def test_a_snapshot_keeps_its_tags(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data", tags={"a": "1"}))
    created = await done(blob.create_snapshot())
    await done(blob.set_blob_tags({"a": "2"}))
    snapshot = container.get_blob_client("blob", snapshot=created["snapshot"])
    assert await done(snapshot.get_blob_tags()) == {"a": "1"}
    await done(snapshot.set_blob_tags({"a": "3"}))
    assert await done(snapshot.get_blob_tags()) == {"a": "3"}
    assert await done(blob.get_blob_tags()) == {"a": "2"}


async def test_conditions_on_tags(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data", tags=TAGS))
    lease = await done(blob.acquire_lease(if_tags_match_condition=RED))
    await done(lease.release(if_tags_match_condition=RED))
    for act in (
        blob.get_blob_properties,
        blob.download_blob,
        blob.get_blob_tags,
        lambda **condition: blob.set_blob_tags(TAGS, **condition),
        lambda **condition: blob.set_blob_metadata({"a": "b"}, **condition),
        blob.set_http_headers,
        lambda **condition: blob.set_standard_blob_tier(StandardBlobTier.COOL, **condition),
        blob.create_snapshot,
        lambda **condition: blob.get_block_list("all", **condition),
        blob.acquire_lease,
        lambda **condition: blob.upload_blob(b"new", overwrite=True, tags=TAGS, **condition),
        lambda **condition: blob.delete_blob(delete_snapshots="include", **condition),
    ):
        with refused(412, "ConditionNotMet"):
            await done(act(if_tags_match_condition=BLUE))
    await done(blob.delete_blob(delete_snapshots="include", if_tags_match_condition=RED))


async def test_a_leased_blob_is_tagged_by_its_holder(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data"))
    lease = await done(blob.acquire_lease())
    with refused(412, "LeaseIdMissing"):
        await done(blob.set_blob_tags(TAGS))
    await done(blob.set_blob_tags(TAGS, lease=lease))
    assert await done(blob.get_blob_tags()) == TAGS


async def test_lists_with_tags(sdk: Sdk) -> None:
    container = await sdk.new_container()
    await done(container.upload_blob("a", b"data", tags=TAGS))
    await done(container.upload_blob("b", b"data"))
    plain = await items(container.list_blobs())
    assert [(each.tag_count, each.tags) for each in plain] == [(4, None), (None, None)]
    tagged = await items(container.list_blobs(include=["tags"]))
    assert [(each.tag_count, each.tags) for each in tagged] == [(4, TAGS), (None, None)]


async def test_blobs_are_found_by_their_tags(sdk: Sdk) -> None:
    service, mark = sdk.service(), fresh_name()
    boxes = [await sdk.new_container(), await sdk.new_container()]
    for box in boxes:
        for number in range(5):
            await done(
                box.upload_blob(f"{number}", b"", tags={"mark": mark, "number": f"{number}", "x y": "z"})
            )
    names = [box.container_name for box in boxes]
    expected = [(name, str(number), {"mark": mark}) for name in names for number in range(5)]
    assert await found(service.find_blobs_by_tags(f"mark = '{mark}'")) == expected
    assert await found(boxes[1].find_blobs_by_tags(f"mark = '{mark}'")) == expected[5:]
    where = f"@container = '{names[0]}' AND mark = '{mark}' AND \"number\" >= '1' AND \"number\" < '3'"
    assert await found(service.find_blobs_by_tags(where)) == [
        (names[0], number, {"mark": mark, "number": number}) for number in ("1", "2")
    ]
    pages = service.find_blobs_by_tags(f"mark = '{mark}'", results_per_page=3)
    assert await found(pages) == expected
    await done(boxes[0].get_blob_client("2").set_blob_tags({"mark": "other"}))
    await done(boxes[0].get_blob_client("3").delete_blob())
    await done(service.delete_container(names[1]))
    left = [each for each in expected[:5] if each[1] not in ("2", "3")]
    assert await found(service.find_blobs_by_tags(f"mark = '{mark}'")) == left
    with refused(400, "InvalidQueryParameterValue"):
        await found(service.find_blobs_by_tags("mark"))


async def test_tokens_need_the_permission_for_tags(sdk: Sdk) -> None:
    container = await sdk.new_container()
    blob = await done(container.upload_blob("blob", b"data", tags=TAGS))
    writer = sdk.blob_at(f"{blob.url}?{token(sdk, blob, 'rw')}")
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(writer.upload_blob(b"new", overwrite=True, tags=TAGS))
    with refused(403, "AuthorizationPermissionMismatch"):
        await done(writer.get_blob_tags())
    tagger = sdk.blob_at(f"{blob.url}?{token(sdk, blob, 'rwt')}")
    await done(tagger.upload_blob(b"new", overwrite=True, tags={"a": "b"}))
    await done(tagger.set_blob_tags(TAGS))
    assert await done(tagger.get_blob_tags()) == TAGS
    finds = generate_container_sas(
        sdk.server.account,
        container.container_name,
        account_key=sdk.key,
        permission=ContainerSasPermissions(filter_by_tags=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    finder = sdk.container_at(f"{container.url}?{finds}")
    assert [name for _, name, _ in await found(finder.find_blobs_by_tags(RED))] == ["blob"]
    with refused(403, "AuthorizationPermissionMismatch"):
        await items(finder.list_blobs())


async def test_the_tags_of_versions(sdk: Sdk) -> None:
    mark = fresh_name()
    async with keeping(sdk, versioning=True, days=1):
        container = await sdk.new_container()
        blob = container.get_blob_client("blob")
        first = await done(blob.upload_blob(b"1", tags={"mark": mark, "n": "1"}))
        await done(blob.upload_blob(b"2", overwrite=True, tags={"mark": mark, "n": "2"}))
        version = first["version_id"]
        assert await done(blob.get_blob_tags(version_id=version)) == {"mark": mark, "n": "1"}
        await done(blob.set_blob_tags({"mark": mark, "n": "3"}, version_id=version))
        assert await done(blob.get_blob_tags(version_id=version)) == {"mark": mark, "n": "3"}
        assert await done(blob.get_blob_tags()) == {"mark": mark, "n": "2"}
        where = f"mark = '{mark}' AND n > ''"
        assert [tags["n"] for _, _, tags in await found(container.find_blobs_by_tags(where))] == ["2"]
        listed = await items(container.list_blobs(include=["versions", "tags"]))
        assert [each.tags["n"] for each in listed] == ["3", "2"]
        await done(blob.delete_blob())
        assert await found(container.find_blobs_by_tags(where)) == []
    async with keeping(sdk, days=1):
        await done(container.upload_blob("other", b"", tags={"mark": mark, "n": "4"}))
        other = container.get_blob_client("other")
        await done(other.delete_blob())
        assert await found(container.find_blobs_by_tags(where)) == []
        await done(other.undelete_blob())
        assert [name for _, name, _ in await found(container.find_blobs_by_tags(where))] == ["other"]
