"""AzCopy and shares: upload, download, sync, remove, and copies between shares and containers."""

from datetime import UTC, datetime
from pathlib import Path

from azure.storage.fileshare import ContentSettings, ShareClient

from clients.azcopy import AzCopy, some_tree, tree_in_container, tree_in_share
from clients.report import Report
from clients.workspace import expect, expect_same, tree_in


def shares(azcopy: AzCopy, report: Report) -> None:
    tree, share = some_tree(), azcopy.new_share()
    folder, url = azcopy.workspace.new_folder(tree), azcopy.share_url_of(share)
    with report.check("a tree goes up to a share"):
        azcopy.copy(str(folder), url, "LocalFileSMB", "--put-md5")
        expect_same(tree_in_share(share.get_directory_client()), tree)
    with report.check("a tree comes down from a share"):
        below = azcopy.workspace.new_folder({})
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
    if azcopy.workspace.offers("blob"):
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


def properties(azcopy: AzCopy, report: Report) -> None:
    share, other = azcopy.new_share(), azcopy.new_share()
    url, file = azcopy.share_url_of(share), share.get_file_client("a.txt")
    with report.check("times, attributes and permissions go from share to share"):
        file.upload_file(b"hello")
        file.set_http_headers(
            ContentSettings(),
            file_attributes="Hidden|Archive",
            file_creation_time=datetime(2001, 2, 3, tzinfo=UTC),
            file_permission=_PERMISSION,
        )
        azcopy.copy(
            url, azcopy.share_url_of(other), "FileSMBFileSMB", "--preserve-info", "--preserve-permissions"
        )
        expect(_described(other), _described(share))
    with report.check("a file that is read-only gives way to force only"):
        file.set_http_headers(ContentSettings(), file_attributes="ReadOnly")
        own = azcopy.share_url_of(share, "/a.txt")
        azcopy("remove", own, "--from-to=FileTrash", "--force-if-read-only")
        expect(tree_in_share(share.get_directory_client()), {})
    with report.check("dots at the end of names are kept"):
        tree = {"dot./file.": b"1", "two..": b"2"}
        folder, below = azcopy.workspace.new_folder(tree), azcopy.workspace.new_folder({})
        azcopy.copy(str(folder), url, "LocalFileSMB", "--trailing-dot=Enable")
        azcopy.copy(url, str(below), "FileSMBLocal", "--trailing-dot=Enable")
        expect_same(tree_in(below), tree)
    with report.check("a share as it was comes down from its snapshot"):
        snapshot, below = share.create_snapshot()["snapshot"], azcopy.workspace.new_folder({})
        share.get_file_client("two..").delete_file()
        azcopy.copy(f"{url}&sharesnapshot={snapshot}", str(below), "FileSMBLocal", "--trailing-dot=Enable")
        expect_same(tree_in(below), tree)


def links(azcopy: AzCopy, report: Report) -> None:
    share, other = azcopy.new_share(protocols="NFS"), azcopy.new_share(protocols="NFS")
    folder, below = azcopy.workspace.new_folder({"a": b"1", "sub/b": b"2"}), azcopy.workspace.new_folder({})
    (folder / "a").chmod(0o640)
    (folder / "soft").symlink_to("sub/../a")
    (folder / "odd").symlink_to("not there, 100 % ä")
    with report.check("modes and symbolic links go up, across and down"):
        kept = ("--preserve-info", "--preserve-permissions", "--preserve-symlinks")
        azcopy.copy(str(folder), azcopy.share_url_of(share), "LocalFileNFS", *kept)
        expect(share.get_file_client("a").get_file_properties().file_mode, "0640")
        azcopy.copy(azcopy.share_url_of(share), azcopy.share_url_of(other), "FileNFSFileNFS", *kept)
        azcopy.copy(azcopy.share_url_of(other), str(below), "FileNFSLocal", *kept)
        expect_same(tree_in(below), tree_in(folder))
        expect((below / "soft").readlink(), Path("sub/../a"))
        expect((below / "odd").readlink(), Path("not there, 100 % ä"))
        expect((below / "a").stat().st_mode & 0o777, 0o640)


_PERMISSION = "O:SYG:BAD:(A;;FA;;;SY)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)"


def _described(share: ShareClient) -> tuple[object, ...]:
    found = share.get_file_client("a.txt").get_file_properties()
    permission = share.get_permission_for_share(found.permission_key)
    return found.file_attributes, found.creation_time, found.last_write_time, permission
