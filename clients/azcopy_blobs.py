"""AzCopy and containers: trees up and down, in step and away, and copies that never pass through the client."""

import random

from clients.azcopy import MIB, AzCopy, some_tree, tree_in_container
from clients.place import expect, expect_same, tree_in
from clients.report import Report


def up_and_down(azcopy: AzCopy, report: Report) -> None:
    tree, container = some_tree(), azcopy.new_container()
    folder, url = azcopy.place.new_folder(tree), azcopy.url_of(container)
    with report.check("a tree goes up"):
        azcopy.copy(str(folder), url, "LocalBlob", "--put-md5", "--block-size-mb=4", "--put-blob-size-mb=4")
        expect_same(tree_in_container(container), tree)
    with report.check("a tree comes down, and its hashes are right"):
        below = azcopy.place.new_folder({})
        azcopy.copy(url, str(below), "BlobLocal", "--check-md5=FailIfDifferentOrMissing")
        expect_same(tree_in(below), tree)
    with report.check("a tree is listed"):
        listed = azcopy("list", url, "--location=Blob", "--machine-readable")
        for name, data in tree.items():
            if f"{name}; Content Length: {len(data)}" not in listed:
                raise AssertionError(f"{name!r} is not in the list:\n{listed}")
    with report.check("metadata, type and tier go up with a file"):
        more = ("--metadata=a=1;b=2", "--content-type=text/x-own", "--block-blob-tier=Cool")
        azcopy("copy", str(folder / "a.txt"), azcopy.url_of(container, "/own"), "--from-to=LocalBlob", *more)
        found = container.get_blob_client("own").get_blob_properties()
        told = found.metadata, found.content_settings.content_type, found.blob_tier
        expect(told, ({"a": "1", "b": "2"}, "text/x-own", "Cool"))
    for kind in ("PageBlob", "AppendBlob"):
        with report.check(f"{kind}s go up and come down"):
            data = random.Random(kind).randbytes(5 * MIB)
            source = azcopy.place.new_folder({"disk.vhd": data})
            there = azcopy.url_of(container, f"/{kind}")
            azcopy("copy", str(source / "disk.vhd"), there, "--from-to=LocalBlob", f"--blob-type={kind}")
            expect(container.get_blob_client(kind).get_blob_properties().blob_type, kind)
            azcopy("copy", there, str(source / "back"), "--from-to=BlobLocal")
            expect((source / "back").read_bytes() == data, True, "the same bytes")
    with report.check("a tree is removed"):
        azcopy("remove", url, "--recursive", "--from-to=BlobTrash")
        expect(tree_in_container(container), {})


def in_step(azcopy: AzCopy, report: Report) -> None:
    tree, container = some_tree(), azcopy.new_container()
    folder, url = azcopy.place.new_folder(tree), azcopy.url_of(container)
    with report.check("a tree is kept in step with a folder"):
        up = (
            "--recursive",
            "--delete-destination=true",
            "--from-to=LocalBlob",
            "--compare-hash=MD5",
            "--put-md5",
        )
        azcopy("sync", str(folder), url, *up)
        expect_same(tree_in_container(container), tree)
        (folder / "a.txt").write_bytes(b"changed")
        (folder / "new").write_bytes(b"new")
        (folder / "sub" / "middling.bin").unlink()
        azcopy("sync", str(folder), url, *up)
        expect_same(tree_in_container(container), tree_in(folder))
    with report.check("a folder is kept in step with a tree"):
        below = azcopy.place.new_folder({"surplus": b"goes"})
        down = ("--recursive", "--delete-destination=true", "--from-to=BlobLocal")
        azcopy("sync", url, str(below), *down)
        expect_same(tree_in(below), tree_in(folder))
    with report.check("a tree is kept in step with a tree"):
        other = azcopy.new_container()
        across = ("--recursive", "--delete-destination=true", "--from-to=BlobBlob")
        azcopy("sync", url, azcopy.url_of(other), *across)
        container.upload_blob("late", b"late")
        container.delete_blob("new")
        azcopy("sync", url, azcopy.url_of(other), *across)
        expect_same(tree_in_container(other), tree_in_container(container))


def between_containers(azcopy: AzCopy, report: Report) -> None:
    tree, source = some_tree(), azcopy.new_container()
    url = azcopy.url_of(source)
    for name, data in tree.items():
        source.upload_blob(name, data, metadata={"of": "mine"})
    with report.check("a tree goes from container to container, whole blobs"):
        target = azcopy.new_container()
        azcopy.copy(url, azcopy.url_of(target), "BlobBlob")
        expect_same(tree_in_container(target), tree)
        found = target.get_blob_client("a.txt").get_blob_properties()
        expect(found.metadata, {"of": "mine"}, "metadata")
    with report.check("a tree goes from container to container, by blocks"):
        target = azcopy.new_container()
        azcopy.copy(url, azcopy.url_of(target), "BlobBlob", "--block-size-mb=4", "--put-blob-size-mb=4")
        expect_same(tree_in_container(target), tree)
        committed, _ = target.get_blob_client("sub/deep/large.bin").get_block_list()
        expect([block.size for block in committed], [4 * MIB] * 5, "blocks")
    with report.check("page and append blobs go from container to container"):
        target, there = azcopy.new_container(), azcopy.new_container()
        disk, log = there.get_blob_client("disk"), there.get_blob_client("log")
        disk.create_page_blob(8 * MIB)
        disk.upload_page(b"x" * MIB, 4 * MIB, MIB)
        log.create_append_blob()
        for number in range(3):
            log.append_block(b"%d" % number * 1000)
        azcopy.copy(azcopy.url_of(there), azcopy.url_of(target), "BlobBlob")
        expect_same(tree_in_container(target), tree_in_container(there))
        kinds = {each.name: each.blob_type for each in target.list_blobs()}
        expect(kinds, {"disk": "PageBlob", "log": "AppendBlob"})
