"""``az storage container|blob``."""

from clients.az import TREE, Az
from clients.report import Report
from clients.workspace import expect, expect_same, tree_in


def containers(az: Az, report: Report) -> None:
    name = az.workspace.new_name()
    with report.check("container create, exists, list, show"):
        expect(az("container", "create", name=name), {"created": True})
        expect(az("container", "create", name=name), {"created": False})
        expect(az("container", "exists", name=name), {"exists": True})
        az("container metadata", "update", "--metadata", "a=1", "b=2", name=name)
        expect(az("container metadata", "show", name=name), {"a": "1", "b": "2"})
        expect(name in [each["name"] for each in az("container", "list")], True, "listed")
        expect(az("container", "show", name=name)["name"], name)
    with report.check("container permissions and policies"):
        az("container", "set-permission", name=name, public_access="blob")
        expect(az("container", "show-permission", name=name), {"publicAccess": "blob"})
        az(
            "container policy",
            "create",
            container_name=name,
            name="p",
            permissions="rl",
            expiry="2099-01-01T00:00Z",
        )
        expect(list(az("container policy", "list", container_name=name)), ["p"])
        az("container policy", "delete", container_name=name, name="p")
        az("container", "set-permission", name=name, public_access="off")
    with report.check("service properties: cors"):
        az("cors", "add", services="b", methods="GET", origins="*", max_age="5")
        expect(len(az("cors", "list", services="b")) >= 1, True, "rules")
        az("cors", "clear", services="b")
    with report.check("container delete"):
        expect(az("container", "delete", name=name), {"deleted": True})
        expect(az("container", "exists", name=name), {"exists": False})


def blobs(az: Az, report: Report) -> None:
    name, folder = az.workspace.new_name(), az.workspace.new_folder(TREE)
    az("container", "create", name=name)
    with report.check("blob upload, download, exists, show, list, delete"):
        for path in ("a.txt", "sub/large.bin"):
            az("blob", "upload", "--metadata", "x=1", container_name=name, name=path, file=str(folder / path))
            back = folder / "back"
            az("blob", "download", container_name=name, name=path, file=str(back))
            expect(back.read_bytes() == TREE[path], True, "the same bytes")
            back.unlink()
        expect(az("blob", "exists", container_name=name, name="a.txt"), {"exists": True})
        found = az("blob", "show", container_name=name, name="a.txt")
        expect((found["properties"]["contentLength"], found["metadata"]), (5, {"x": "1"}))
        listed = [each["name"] for each in az("blob", "list", container_name=name)]
        expect(listed, ["a.txt", "sub/large.bin"])
        az("blob", "delete", container_name=name, name="sub/large.bin")
        az.refuses("BlobNotFound", "blob", "delete", container_name=name, name="sub/large.bin")
    with report.check("blob upload refuses to overwrite by default"):
        source = str(folder / "a.txt")
        az.refuses("BlobAlreadyExists", "blob", "upload", container_name=name, name="a.txt", file=source)
        az("blob", "upload", container_name=name, name="a.txt", file=source, overwrite="true")
    with report.check("blob types: page and append"):
        disk = az.workspace.new_folder({"disk": bytes(512) + b"x" * 512})
        for kind in ("page", "append"):
            az("blob", "upload", container_name=name, name=kind, file=str(disk / "disk"), type=kind)
            az("blob", "download", container_name=name, name=kind, file=str(disk / kind))
            expect((disk / kind).read_bytes() == (disk / "disk").read_bytes(), True, "the same bytes")
    with report.check("blob metadata, update, snapshot, lease"):
        az("blob metadata", "update", "--metadata", "y=2", container_name=name, name="a.txt")
        expect(az("blob metadata", "show", container_name=name, name="a.txt"), {"y": "2"})
        az("blob", "update", container_name=name, name="a.txt", content_type="text/x")
        snapshot = az("blob", "snapshot", container_name=name, name="a.txt")
        expect(bool(snapshot["snapshot"]), True, "a snapshot")
        lease = az("blob lease", "acquire", container_name=name, blob_name="a.txt", lease_duration="60")
        source = str(folder / "a.txt")
        again = {"container_name": name, "name": "a.txt", "file": source, "overwrite": "true"}
        az.refuses("LeaseIdMissing", "blob", "upload", **again)
        az("blob lease", "release", container_name=name, blob_name="a.txt", lease_id=lease)


def copies(az: Az, report: Report) -> None:
    name, folder = az.workspace.new_name(), az.workspace.new_folder(TREE)
    az("container", "create", name=name)
    az("blob", "upload", container_name=name, name="a.txt", file=str(folder / "a.txt"))
    with report.check("blob copy start, and rewrite from a URL"):
        az(
            "blob copy",
            "start",
            source_container=name,
            source_blob="a.txt",
            destination_container=name,
            destination_blob="c1",
        )
        found = az("blob", "show", container_name=name, name="c1")
        expect(found["properties"]["copy"]["status"], "success")
        terms = {"permissions": "r", "expiry": "2099-01-01T00:00Z"}
        url = az("blob", "generate-sas", "--full-uri", container_name=name, name="a.txt", **terms)
        az("blob", "rewrite", container_name=name, name="c2", source_uri=url)
        expect(az("blob", "show", container_name=name, name="c2")["properties"]["contentLength"], 5)
    with report.check("blob show by a URL with a token, beside a connection string"):
        expect(az("blob", "show", blob_url=url)["name"], "a.txt")
    with report.check("blob set-tier, to the archive and back"):
        blob = {"container_name": name, "name": "c2"}
        for tier in ("Cool", "Archive"):
            az("blob", "set-tier", **blob, tier=tier)
            expect(az("blob", "show", **blob)["properties"]["blobTier"], tier)
        az.refuses("BlobArchived", "blob", "download", **blob, file=str(folder / "back"))
        az("blob", "set-tier", **blob, tier="Hot", rehydrate_priority="High")
        expect(az("blob", "show", **blob)["properties"]["rehydrationStatus"], "rehydrate-pending-to-hot")


def trees(az: Az, report: Report) -> None:
    name, folder = az.workspace.new_name(), az.workspace.new_folder(TREE)
    az("container", "create", name=name)
    with report.check("blob upload-batch, download-batch, delete-batch"):
        az("blob", "upload-batch", destination=name, source=str(folder))
        below = az.workspace.new_folder({})
        az("blob", "download-batch", source=name, destination=str(below))
        expect_same(tree_in(below), TREE)
        az("blob", "delete-batch", source=name)
        expect(az("blob", "list", container_name=name), [])
    with report.check("blob upload-batch by a pattern"):
        az("blob", "upload-batch", destination=name, source=str(folder), pattern="a*")
        expect([each["name"] for each in az("blob", "list", container_name=name)], ["a.txt"])
    with report.check("blob copy start-batch, and lists by pages and folders"):
        az("blob", "upload-batch", destination=name, source=str(folder), overwrite="true")
        other = az.workspace.new_name()
        az("container", "create", name=other)
        az("blob copy", "start-batch", source_container=name, destination_container=other)
        first = az("blob", "list", "--show-next-marker", container_name=other, num_results="3")
        marker = first[-1]["nextMarker"]
        rest = az("blob", "list", container_name=other, num_results="3", marker=marker)
        expect([each["name"] for each in first[:-1] + rest], sorted(TREE))
        above = az("blob", "list", container_name=other, delimiter="/")
        expect(sorted(each["name"] for each in above), ["a.txt", "empty", "sub/"])
