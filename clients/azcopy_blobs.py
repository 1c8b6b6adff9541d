"""AzCopy and containers: upload, download, sync, remove, and copies between URLs."""

import random

from clients.azcopy import MIB, AzCopy, some_tree, tree_in_container
from clients.report import Report
from clients.workspace import expect, expect_same, tree_in


def up_and_down(azcopy: AzCopy, report: Report) -> None:
    tree, container = some_tree(), azcopy.new_container()
    folder, url = azcopy.workspace.new_folder(tree), azcopy.url_of(container)
    with report.check("a tree goes up"):
        azcopy.copy(str(folder), url, "LocalBlob", "--put-md5", "--block-size-mb=4", "--put-blob-size-mb=4")
        expect_same(tree_in_container(container), tree)
    with report.check("a tree comes down, and its hashes are right"):
        below = azcopy.workspace.new_folder({})
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
        properties = found.metadata, found.content_settings.content_type, found.blob_tier
        expect(properties, ({"a": "1", "b": "2"}, "text/x-own", "Cool"))
    for kind in ("PageBlob", "AppendBlob"):
        with report.check(f"{kind}s go up and come down"):
            data = random.Random(kind).randbytes(5 * MIB)
            source = azcopy.workspace.new_folder({"disk.vhd": data})
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
    folder, url = azcopy.workspace.new_folder(tree), azcopy.url_of(container)
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
        below = azcopy.workspace.new_folder({"surplus": b"goes"})
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
    with report.check("blobs change their kind on the way"):
        target, whole = azcopy.new_container(), azcopy.url_of(source, "/kinds")
        data = random.Random(9).randbytes(3 * MIB)
        source.upload_blob("kinds", data)
        for kind in ("PageBlob", "AppendBlob"):
            own = azcopy.url_of(target, f"/{kind}")
            azcopy("copy", whole, own, "--from-to=BlobBlob", f"--blob-type={kind}")
        expect_same(tree_in_container(target), {"PageBlob": data, "AppendBlob": data})


def choices(azcopy: AzCopy, report: Report) -> None:
    tree, container = some_tree(), azcopy.new_container()
    folder, url = azcopy.workspace.new_folder(tree), azcopy.url_of(container)
    azcopy.copy(str(folder), url, "LocalBlob")
    with report.check("some of a tree comes down, by pattern and by path"):
        for option, chosen in (
            ("--include-pattern=*.txt", [name for name in tree if name.endswith(".txt")]),
            ("--exclude-path=sub;odd", ["a.txt", "empty"]),
            ("--include-after=2099-01-01T00:00:00Z", []),
        ):
            below = azcopy.workspace.new_folder({})
            azcopy.copy(url, str(below), "BlobLocal", option)
            expect(sorted(tree_in(below)), sorted(chosen), option)
    with report.check("properties are set: tier and metadata"):
        azcopy("set-properties", url, "--from-to=BlobNone", "--recursive", "--block-blob-tier=Cool")
        expect({each.blob_tier for each in container.list_blobs()}, {"Cool"})
        azcopy("set-properties", azcopy.url_of(container, "/a.txt"), "--from-to=BlobNone", "--metadata=a=1")
        expect(container.get_blob_client("a.txt").get_blob_properties().metadata, {"a": "1"})
    with report.check("a snapshot comes down, and goes with its blob"):
        blob, below = container.get_blob_client("a.txt"), azcopy.workspace.new_folder({})
        snapshot = blob.create_snapshot()["snapshot"]
        blob.upload_blob(b"later", overwrite=True)
        own = azcopy.url_of(container, "/a.txt")
        azcopy("copy", f"{own}&snapshot={snapshot}", str(below / "then"), "--from-to=BlobLocal")
        expect(tree_in(below), {"then": tree["a.txt"]})
        azcopy("remove", own, "--from-to=BlobTrash", "--delete-snapshots=include")
    with report.check("some of a tree is removed, by list and by pattern"):
        names = azcopy.workspace.new_folder({"names": b"odd\nempty\n"}) / "names"
        azcopy("remove", url, "--from-to=BlobTrash", "--recursive", f"--list-of-files={names}")
        azcopy("remove", url, "--from-to=BlobTrash", "--recursive", "--include-pattern=*.bin")
        expect(
            sorted(tree_in_container(container)),
            sorted(name for name in tree if name[:4] == "sub/" and name[-4:] == ".txt"),
        )
    with report.check("a thousand small files go up, across and down"):
        small = {f"{number % 9}/{number}": b"%d" % number for number in range(1000)}
        target, below = azcopy.new_container(), azcopy.workspace.new_folder({})
        azcopy.copy(str(azcopy.workspace.new_folder(small)), azcopy.url_of(container, "/small"), "LocalBlob")
        azcopy.copy(azcopy.url_of(container, "/small"), azcopy.url_of(target), "BlobBlob")
        azcopy.copy(azcopy.url_of(target), str(below), "BlobLocal")
        expect_same(tree_in(below), small)


def resumption(azcopy: AzCopy, report: Report) -> None:
    data, container = random.Random(5).randbytes(96 * MIB), azcopy.new_container()
    source = azcopy.workspace.new_folder({"large": data}) / "large"
    with report.check("a job that was interrupted is resumed"):
        url = azcopy.url_of(container, "/large")
        slowly = ("--from-to=LocalBlob", "--block-size-mb=1", "--cap-mbps=100")
        job = azcopy.interrupted("copy", str(source), url, *slowly)
        expect(container.get_blob_client("large").exists(), False, "there before the end")
        azcopy("jobs", "resume", job, f"--destination-sas={url.partition('?')[2]}")
        expect(container.download_blob("large").readall() == data, True, "the same bytes")
