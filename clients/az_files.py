"""``az storage share|directory|file``."""

from azure.storage.fileshare import ShareServiceClient

from clients.az import TREE, Az
from clients.report import Report
from clients.workspace import expect, expect_same, tree_in


def shares(az: Az, report: Report) -> None:
    name = az.workspace.new_name()
    with report.check("share create, exists, list, show, update"):
        expect(az("share", "create", name=name, quota="7"), {"created": True})
        expect(az("share", "exists", name=name), {"exists": True})
        az("share metadata", "update", "--metadata", "a=1", name=name)
        expect(az("share metadata", "show", name=name), {"a": "1"})
        az("share", "update", name=name, quota="8")
        expect(az("share", "show", name=name)["properties"]["quota"], 8)
        expect(name in [each["name"] for each in az("share", "list")], True, "listed")
    with report.check("directory create, exists, list, metadata, delete"):
        expect(az("directory", "create", share_name=name, name="dir"), {"created": True})
        az("directory", "create", share_name=name, name="dir/below")
        expect(az("directory", "exists", share_name=name, name="dir/below"), {"exists": True})
        listed = az("directory", "list", share_name=name, name="dir")
        expect([each["name"] for each in listed], ["below"])
        az("directory metadata", "update", "--metadata", "a=1", share_name=name, name="dir")
        expect(az("directory metadata", "show", share_name=name, name="dir"), {"a": "1"})
        expect(az("directory", "delete", share_name=name, name="dir/below"), {"deleted": True})
    with report.check("share snapshot, stats, policies, delete"):
        snapshot = az("share", "snapshot", name=name)["snapshot"]
        expect(bool(snapshot), True, "a snapshot")
        az("share", "stats", name=name)
        az("share policy", "create", share_name=name, name="p", permissions="r", expiry="2099-01-01T00:00Z")
        expect(list(az("share policy", "list", share_name=name)), ["p"])
        expect(az("share", "delete", name=name, delete_snapshots="include"), {"deleted": True})
    with report.check("service properties: cors and metrics"):
        az("cors", "add", services="f", methods="GET", origins="*", max_age="5")
        expect(len(az("cors", "list", services="f")), 1)
        az("cors", "clear", services="f")
        az("metrics", "update", services="f", hour="true", api="true", retention="3")
        expect(az("metrics", "show", services="f")["file"]["hour"]["retentionPolicy"]["days"], 3)


def files(az: Az, report: Report) -> None:
    name, folder = az.workspace.new_name(), az.workspace.new_folder(TREE)
    az("share", "create", name=name)
    az("directory", "create", share_name=name, name="dir")
    with report.check("file upload, download, exists, show, list, resize, delete"):
        source = str(folder / "sub" / "large.bin")
        az("file", "upload", "--metadata", "a=1", share_name=name, source=source, path="dir/large.bin")
        az("file", "download", share_name=name, path="dir/large.bin", dest=str(folder / "back"))
        expect((folder / "back").read_bytes() == TREE["sub/large.bin"], True, "the same bytes")
        (folder / "back").unlink()
        expect(az("file", "exists", share_name=name, path="dir/large.bin"), {"exists": True})
        expect(
            az("file", "show", share_name=name, path="dir/large.bin")["properties"]["contentLength"],
            9_000_000,
        )
        expect([each["name"] for each in az("file", "list", share_name=name, path="dir")], ["large.bin"])
        az("file", "resize", share_name=name, path="dir/large.bin", size="10")
        az("file metadata", "update", "--metadata", "b=2", share_name=name, path="dir/large.bin")
        expect(az("file metadata", "show", share_name=name, path="dir/large.bin"), {"b": "2"})
        az("file", "update", share_name=name, path="dir/large.bin", content_type="text/x")
        az("file", "delete", share_name=name, path="dir/large.bin")
    with report.check("file copy start"):
        az("file", "upload", share_name=name, source=str(folder / "a.txt"), path="a.txt")
        az(
            "file copy",
            "start",
            source_share=name,
            source_path="a.txt",
            destination_share=name,
            destination_path="b.txt",
        )
        expect(az("file", "show", share_name=name, path="b.txt")["properties"]["contentLength"], 5)
    with report.check("file upload-batch, download-batch, delete-batch"):
        own = az.workspace.new_name()
        az("share", "create", name=own)
        az("file", "upload-batch", destination=own, source=str(folder))
        below = az.workspace.new_folder({})
        az("file", "download-batch", source=own, destination=str(below))
        expect_same(tree_in(below), TREE)
        az("file", "delete-batch", source=own)
        expect([each["name"] for each in az("file", "list", share_name=own)], ["sub"], "what is left")


def links(az: Az, report: Report) -> None:
    """On an NFS share, which the command itself can only create through the management API of accounts."""
    name, folder = az.workspace.new_name(), az.workspace.new_folder(TREE)
    ShareServiceClient.from_connection_string(az.workspace.connection_string).create_share(
        name, protocols="NFS"
    )
    with report.check("owners and modes"):
        owned = {"owner": "1000", "group": "100", "file_mode": "0640"}
        az("file", "upload", share_name=name, source=str(folder / "a.txt"), path="a.txt", **owned)
        found = az("file", "show", share_name=name, path="a.txt")
        expect((found["owner"], found["group"], found["fileMode"]), ("1000", "100", "0640"))
    with report.check("file hard-link create"):
        az("file hard-link", "create", share_name=name, path="hard.txt", target="a.txt")
        expect(az("file", "show", share_name=name, path="a.txt")["linkCount"], 2)
        az("file", "delete", share_name=name, path="a.txt")
        az("file", "download", share_name=name, path="hard.txt", dest=str(folder / "back.txt"))
        expect((folder / "back.txt").read_bytes(), TREE["a.txt"])
    with report.check("file symbolic-link create, show"):
        az("file symbolic-link", "create", share_name=name, path="soft.txt", target="hard.txt")
        expect(az("file symbolic-link", "show", share_name=name, path="soft.txt")["link_text"], "hard.txt")
