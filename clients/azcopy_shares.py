"""AzCopy and shares: trees up and down, in step and away, and between shares and containers."""

from clients.azcopy import AzCopy, some_tree, tree_in_container, tree_in_share
from clients.place import expect, expect_same, tree_in
from clients.report import Report


def shares(azcopy: AzCopy, report: Report) -> None:
    tree, share = some_tree(), azcopy.new_share()
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
