"""``az storage container|blob`` where versions and what was deleted are kept, at servers with such accounts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.server_process import ServerProcess

from clients.az import Az
from clients.report import Report
from clients.workspace import Workspace, expect

_KEPT = "blob_soft_delete_days = 7\ncontainer_soft_delete_days = 7\n"
_VERSIONED = f"versioning = true\nversion_level_immutability = true\n{_KEPT}"


def suite(workspace: Workspace, report: Report) -> None:
    of_kept, of_versioned = (_containers, _deleted_blobs), (_versions, _tags, _protection)
    for settings, checks in ((_KEPT, of_kept), (_VERSIONED, of_versioned)):
        with _keeping(workspace, settings) as own:
            az = Az(own)
            for check in checks:
                check(az, report)


@contextmanager
def _keeping(workspace: Workspace, settings: str) -> Iterator[Workspace]:
    """A workspace at a server of its own, whose account has these settings."""
    file = workspace.folder / f"{workspace.new_name()}.toml"
    keys = f'keys = ["{ServerProcess.account_key}"]'
    file.write_text(f"[accounts.{ServerProcess.account}]\n{keys}\n{settings}")
    with ServerProcess("--config", str(file)) as server:
        yield Workspace(server, workspace.folder)
        errors = [line for line in server.log if line.get("level") in {"error", "critical"}]
        expect(errors, [], "errors in the log")


class _Blob:
    """One blob through the command line."""

    def __init__(self, az: Az) -> None:
        self.az = az
        self.container = az.workspace.new_name()
        self._folder = az.workspace.new_folder({})
        az("container", "create", name=self.container)

    def upload(self, data: bytes, *more: str) -> None:
        (self._folder / "up").write_bytes(data)
        self("upload", *more, file=str(self._folder / "up"), overwrite="true")

    def download(self, **options: str) -> bytes:
        self("download", file=str(self._folder / "down"), **options)
        return (self._folder / "down").read_bytes()

    def listed(self, include: str = "") -> list[dict[str, Any]]:
        options = {"include": include} if include else {}
        found: list[dict[str, Any]] = self.az("blob", "list", container_name=self.container, **options)
        return found

    def __call__(self, verb: str, *more: str, **options: str) -> Any:
        return self.az("blob", verb, *more, container_name=self.container, name="b", **options)


def _containers(az: Az, report: Report) -> None:
    blob = _Blob(az)
    name = blob.container
    with report.check("container delete, list with deleted ones, restore"):
        blob.upload(b"kept")
        az("container", "delete", name=name)
        expect(az("container", "exists", name=name), {"exists": False})
        expect([each["name"] for each in az("container", "list", prefix=name)], [], "containers")
        (gone,) = az("container", "list", prefix=name, include_deleted="true")
        expect((gone["name"], gone["deleted"]), (name, True))
        az("container", "restore", name=name, deleted_version=gone["version"])
        expect(blob.download(), b"kept")
        missing = {"name": name, "deleted_version": gone["version"]}
        az.refuses("ContainerNotFound", "container", "restore", **missing)


def _deleted_blobs(az: Az, report: Report) -> None:
    blob = _Blob(az)
    with report.check("blob delete, list with deleted ones, undelete"):
        blob.upload(b"kept")
        blob("snapshot")
        blob("delete", delete_snapshots="include")
        expect(blob.listed(), [], "blobs")
        gone = blob.listed("ds")
        expect([each["deleted"] for each in gone], [True, True])
        blob("undelete")
        expect(blob.download(), b"kept")
        expect([each["deleted"] for each in blob.listed("ds")], [None, None])
    with report.check("blob upload over a blob keeps its former state"):
        blob.upload(b"newer")
        deleted = [each for each in blob.listed("ds") if each["deleted"]]
        expect(len(deleted), 1, "deleted snapshots")
        blob("undelete")
        states = [blob.download(snapshot=each["snapshot"]) for each in blob.listed("s") if each["snapshot"]]
        expect(states, [b"kept", b"kept"])


def _versions(az: Az, report: Report) -> None:
    blob = _Blob(az)

    def versions() -> list[str]:
        return [each["versionId"] for each in blob.listed("v")]

    with report.check("blob upload makes versions, list and download by version"):
        for data in (b"one", b"two", b"three"):
            blob.upload(data)
        listed = blob.listed("v")
        expect([each["isCurrentVersion"] for each in listed], [None, None, True])
        first, second, third = versions()
        expect(
            [blob.download(version_id=each) for each in (first, second, third)], [b"one", b"two", b"three"]
        )
        expect(blob.download(), b"three")
    with report.check("blob delete keeps versions, and a copy of one restores the blob"):
        blob("delete")
        az.refuses(
            "BlobNotFound", "blob", "download", container_name=blob.container, name="b", file="/dev/null"
        )
        expect(versions(), [first, second, third])
        url = f"{az.workspace.server.endpoints['blob']}/{blob.container}/b?versionid={first}"
        blob_copy = {"destination_container": blob.container, "destination_blob": "b"}
        az("blob copy", "start", source_uri=url, **blob_copy)
        expect(blob.download(), b"one")
        expect(len(versions()), 4, "versions")


def _tags(az: Az, report: Report) -> None:
    blob = _Blob(az)
    with report.check("blob upload with tags, list and show by them"):
        blob.upload(b"tagged", "--tags", "color=blue", "size=9")
        (listed,) = blob.listed("t")
        expect(listed["tags"], {"color": "blue", "size": "9"})
        expect(blob("show", tags_condition="\"color\"='blue'")["name"], "b")
        other = {"container_name": blob.container, "name": "b", "tags_condition": "\"color\"='red'"}
        az.refuses("ConditionNotMet", "blob", "show", **other)


def _protection(az: Az, report: Report) -> None:
    blob = _Blob(az)
    named = {"container_name": blob.container, "name": "b"}
    with report.check("blob set-legal-hold: it cannot be deleted"):
        blob.upload(b"held")
        blob("set-legal-hold", legal_hold="true")
        az.refuses("BlobImmutableDueToLegalHold", "blob", "delete", **named)
        blob("set-legal-hold", legal_hold="false")
    with report.check("blob immutability-policy set, delete"):
        terms = {"expiry_time": "2099-01-01T00:00:00Z", "policy_mode": "Unlocked"}
        az("blob immutability-policy", "set", **named, **terms)
        az.refuses("BlobImmutableDueToPolicy", "blob", "delete", **named)
        az("blob immutability-policy", "delete", **named)
        blob("delete")
