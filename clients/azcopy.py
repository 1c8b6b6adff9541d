"""AzCopy: trees up and down, in step and away, and copies that never pass through the client."""

import random
import re

from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareClient, ShareDirectoryClient, ShareServiceClient

from clients import installs
from clients.place import CommandFailed, Place, Tree, expect, expect_same, run, tree_in
from clients.report import Report

MIB = 1024 * 1024

_COMPLAINT = re.compile(
    r"RESPONSE \d+: |ERROR CODE|ERR: |RESPONSE Status: [45]|UPLOADFAILED|COPYFAILED|FAILED:"
)


def suite(place: Place, report: Report) -> None:
    azcopy = AzCopy(place)
    if place.offers("blob"):
        _up_and_down(azcopy, report)
        _in_step(azcopy, report)
        _between_containers(azcopy, report)
    else:
        report.not_there("blob")
    if place.offers("file"):
        _shares(azcopy, report)
    else:
        report.not_there("file")


class AzCopy:
    """The command, and its view of both sides."""

    def __init__(self, place: Place) -> None:
        self._binary = str(installs.azcopy())
        self.place = place
        self._environment = {
            "AZCOPY_LOG_LOCATION": str(place.folder / "log"),
            "AZCOPY_JOB_PLAN_LOCATION": str(place.folder / "plan"),
            "AZCOPY_DISABLE_SYSLOG": "true",
        }

    def __call__(self, verb: str, *arguments: str) -> str:
        try:
            return run([self._binary, verb, *arguments], self._environment)
        except CommandFailed as failure:
            raise CommandFailed(f"{failure}\n{self._complaints()}") from None

    def _complaints(self) -> str:
        """What AzCopy wrote of it into its newest log, which says more than it prints."""
        logs = sorted((self.place.folder / "log").glob("*.log"), key=lambda log: log.stat().st_mtime)
        if not logs:
            return ""
        lines = logs[-1].read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if _COMPLAINT.search(line)][:20])

    def copy(self, source: str, target: str, ways: str, *more: str) -> None:
        self("copy", source, target, f"--from-to={ways}", "--recursive", "--as-subdir=false", *more)

    def new_container(self) -> ContainerClient:
        service = BlobServiceClient.from_connection_string(self.place.connection_string)
        return service.create_container(self.place.new_name())

    def new_share(self) -> ShareClient:
        service = ShareServiceClient.from_connection_string(self.place.connection_string)
        return service.create_share(self.place.new_name())

    def url_of(self, container: ContainerClient, path: str = "") -> str:
        return self.place.url("blob", f"{container.container_name}{path}")

    def share_url_of(self, share: ShareClient) -> str:
        return self.place.url("file", share.share_name)


def _some_tree() -> Tree:
    """Empty and large, shallow and deep, and names that have to be encoded somewhere on their way."""
    chance = random.Random(7)
    return {
        "a.txt": b"hello",
        "empty": b"",
        "sub/deep/large.bin": chance.randbytes(20 * MIB),
        "sub/middling.bin": chance.randbytes(100_000),
        "sub/ä ö ü.txt": b"umlauts",
        "sub/日本語 😀.txt": b"beyond",
        "odd/a+b %20 #&'c=d.txt": b"odd",
    }


def tree_in_container(container: ContainerClient) -> Tree:
    return {
        name: container.download_blob(name).readall()
        for name in [each.name for each in container.list_blobs()]
    }


def tree_in_share(directory: ShareDirectoryClient, prefix: str = "") -> Tree:
    found: Tree = {}
    for entry in list(directory.list_directories_and_files()):
        name = f"{prefix}{entry.name}"
        if entry.is_directory:
            found |= tree_in_share(directory.get_subdirectory_client(entry.name), f"{name}/")
        else:
            found[name] = directory.get_file_client(entry.name).download_file().readall()
    return found


def _up_and_down(azcopy: AzCopy, report: Report) -> None:
    tree, container = _some_tree(), azcopy.new_container()
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


def _in_step(azcopy: AzCopy, report: Report) -> None:
    tree, container = _some_tree(), azcopy.new_container()
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


def _between_containers(azcopy: AzCopy, report: Report) -> None:
    tree, source = _some_tree(), azcopy.new_container()
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


def _shares(azcopy: AzCopy, report: Report) -> None:
    tree, share = _some_tree(), azcopy.new_share()
    folder, url = azcopy.place.new_folder(tree), azcopy.share_url_of(share)
    with report.check("a tree goes up to a share"):
        azcopy.copy(str(folder), url, "LocalFileSMB", "--put-md5")
        expect_same(tree_in_share(share.get_directory_client()), tree)
    with report.check("a tree comes down from a share"):
        below = azcopy.place.new_folder({})
        azcopy.copy(url, str(below), "FileSMBLocal", "--check-md5=FailIfDifferentOrMissing")
        expect_same(tree_in(below), tree)
    with report.check("a tree goes from share to share"):
        other = azcopy.new_share()
        azcopy.copy(url, azcopy.share_url_of(other), "FileSMBFileSMB", "--preserve-smb-info=true")
        expect_same(tree_in_share(other.get_directory_client()), tree)
    with report.check("a share is kept in step with a folder"):
        (folder / "a.txt").write_bytes(b"changed")
        (folder / "empty").unlink()
        azcopy("sync", str(folder), url, "--from-to=LocalFileSMB", "--delete-destination=true")
        expect_same(tree_in_share(share.get_directory_client()), tree_in(folder))
    if azcopy.place.offers("blob"):
        container = azcopy.new_container()
        with report.check("a tree goes from a share to a container"):
            azcopy.copy(url, azcopy.url_of(container), "FileBlob")
            expect_same(tree_in_container(container), tree_in(folder))
        with report.check("a tree goes from a container to a share"):
            other = azcopy.new_share()
            azcopy.copy(azcopy.url_of(container), azcopy.share_url_of(other), "BlobFile")
            expect_same(tree_in_share(other.get_directory_client()), tree_in_container(container))
    with report.check("a tree is removed from a share"):
        azcopy("remove", url, "--recursive", "--from-to=FileTrash")
        expect(tree_in_share(share.get_directory_client()), {})
