"""``kyanite migrate`` between real stores, stopped and served, and what clients get meanwhile and afterwards."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobBlock, BlobLeaseClient, BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from tests.server.backup.test_backup import MIB, command, run, space_of, succeed
from tests.server.store.test_verify import verify
from tests.server_process import ServerProcess, eventually
from tests.stores.recorded import Client, load, unpack
from tests.stores.test_golden_stores import STORES, check, check_eventually

STATED = f"{ServerProcess.account}:{ServerProcess.account_key}"


@pytest.mark.parametrize("archive", STORES, ids=lambda path: path.name)
def test_a_store_that_was_moved_gives_the_same_answers(archive: Path, tmp_path: Path) -> None:
    """Every answer that was recorded of the store, but those about handles: these end with their processes."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    unpack(archive, source)
    succeed("migrate", "--from", source, "--to", target)
    assert verify(target)[0] == 0
    recording = load(archive.with_name(archive.name.replace(".tar.xz", ".json.xz")))
    reads, writes = (
        [each for each in group if not each.request.target.startswith("/acme/opened")]
        for group in (recording.reads, recording.writes)
    )
    with ServerProcess(*recording.server_options(), location=target) as server:
        with Client(server.endpoints, recording.accounts) as client:
            check_eventually(client, recording.reads_after_clean_up)
            check(client, reads)
            check(client, writes)
        assert server.stop() == 0
    assert verify(target)[0] == 0


def fill(text: str) -> None:
    """Something of everything that an account can have."""
    with BlobServiceClient.from_connection_string(text) as blobs:
        container = blobs.create_container("container")
        blob = container.get_blob_client("versioned")
        first = blob.upload_blob(b"first" * 10_000, tags={"kind": "one"})["version_id"]
        blob.upload_blob(b"second", overwrite=True, tags={"kind": "two"})
        blob.delete_blob(version_id=first)
        container.upload_blob("deleted", b"deleted")
        container.delete_blob("deleted")
        page = container.get_blob_client("pages")
        page.create_page_blob(16 * MIB)
        for number in range(12):
            page.upload_page(os.urandom(512), offset=number * 1024, length=512)
            if number % 4 == 0:
                page.create_snapshot()
        append = container.get_blob_client("log")
        append.create_append_blob()
        for number in range(6):
            append.append_block(b"%d\n" % number * 5000)
        container.get_blob_client("staged").stage_block("YQ==", b"staged" * 5000)
        blocks = container.get_blob_client("blocks")
        names = [f"{number:04}" for number in range(8)]
        for name in names:
            blocks.stage_block(name, name.encode() * 10_000)
        blocks.commit_block_list([BlobBlock(name) for name in names])
        BlobLeaseClient(
            container.get_blob_client("versioned"), "6b7a1a2e-54a7-4a53-9d57-0a4a1a0a8c11"
        ).acquire()
        blobs.create_container("restorable").upload_blob("inside", b"inside")
        blobs.delete_container("restorable")
    with QueueServiceClient.from_connection_string(text) as queues:
        queue = queues.create_queue("queue")
        for number in range(5):
            queue.send_message(f"message {number}" + "x" * 9000 * number)
    with TableServiceClient.from_connection_string(text) as tables:
        table = tables.create_table("table")
        for number in range(20):
            table.create_entity({"PartitionKey": "p", "RowKey": f"{number}", "Long": "x" * 1500 * number})
    with ShareServiceClient.from_connection_string(text) as shares:
        share = shares.create_share("share")
        directory = share.create_directory("directory")
        file = directory.upload_file("file", b"file" * 50_000)
        share.create_snapshot()
        file.upload_range(b"other", offset=10, length=5)
        directory.upload_file("second", b"second")


def content_of(text: str) -> dict[str, Any]:
    """All that clients can know of it, without changing it."""
    found: dict[str, Any] = {}
    with BlobServiceClient.from_connection_string(text) as blobs:
        for container in blobs.list_containers(include_deleted=True, include_metadata=True):
            found[f"container {container.name} {container.deleted}"] = (
                container.etag,
                container.last_modified,
            )
        container_client = blobs.get_container_client("container")
        include = ["snapshots", "versions", "deleted", "uncommittedblobs", "tags", "metadata"]
        for blob in container_client.list_blobs(include=include):
            key = f"blob {blob.name} {blob.snapshot} {blob.version_id} {blob.deleted}"
            data: object = None
            if not blob.deleted and blob.name != "staged":
                client = blobs.get_blob_client(
                    "container", blob.name, snapshot=blob.snapshot, version_id=blob.version_id
                )
                data = client.download_blob().readall()
            found[key] = (
                blob.etag,
                blob.last_modified,
                blob.creation_time,
                blob.size,
                blob.tags,
                blob.lease.state,
                data,
            )
        found["tagged"] = [each.name for each in blobs.find_blobs_by_tags("\"kind\" = 'two'")]
        committed, uncommitted = container_client.get_blob_client("blocks").get_block_list("all")
        found["blocks"] = [(each.id, each.size) for each in committed], uncommitted
        _, uncommitted = container_client.get_blob_client("staged").get_block_list("all")
        found["staged"] = [(each.id, each.size) for each in uncommitted]
    with QueueServiceClient.from_connection_string(text) as queues:
        queue = queues.get_queue_client("queue")
        found["messages"] = [(each.id, each.content, each.inserted_on) for each in queue.peek_messages(32)]
        found["count"] = queue.get_queue_properties().approximate_message_count
    with TableServiceClient.from_connection_string(text) as tables:
        for entity in tables.get_table_client("table").list_entities():
            found[f"entity {entity['RowKey']}"] = (
                entity["Long"],
                entity.metadata["etag"],
                entity.metadata["timestamp"],
            )
    with ShareServiceClient.from_connection_string(text) as shares:
        for share in shares.list_shares(include_snapshots=True):
            share_client = shares.get_share_client("share", snapshot=share.snapshot)
            for entry in share_client.list_directories_and_files("directory"):
                file = share_client.get_file_client(f"directory/{entry.name}")
                properties = file.get_file_properties()
                found[f"file {share.snapshot} {entry.name}"] = (
                    properties.etag,
                    properties.last_modified,
                    properties.file_id,
                    file.download_file().readall(),
                )
    return found


@contextmanager
def serving(location: Path, *options: str) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", *options, location=location) as server:
        yield server
        assert server.stop() == 0


def test_one_account_between_stores_that_are_served(tmp_path: Path) -> None:
    """The source refuses writes from then on. The target has another account, which is written meanwhile."""
    source, target = tmp_path / "source", tmp_path / "target"
    with serving(source) as first, serving(target, "--account", STATED) as second:
        settings = ("--versioning", "on", "--blob-soft-delete-days", "7", "--container-soft-delete-days", "7")
        keys = succeed("account", "add", "moving", "--location", source, *settings, "--json")
        key = keys.split('"')[keys.split('"').index("keys") + 2]
        texts = [
            each.connection_string.replace(each.account, "moving").replace(each.account_key, key)
            for each in (first, second)
        ]
        fill(texts[0])
        before = content_of(texts[0])
        stop = threading.Event()
        written = 0
        with BlobServiceClient.from_connection_string(second.connection_string) as others:
            container = others.create_container("container")

            def write() -> None:
                nonlocal written
                while not stop.is_set():
                    container.upload_blob(f"{written}", os.urandom(20_000))
                    written += 1

            writer = threading.Thread(target=write)
            writer.start()
            try:
                out = succeed("migrate", "--from", source, "--to", target, "--account", "moving")
            finally:
                stop.set()
                writer.join()
            assert out.startswith("moving: ")
            assert len(list(container.list_blobs())) == written > 0
        assert content_of(texts[0]) == before
        assert content_of(texts[1]) == before
        with (
            BlobServiceClient.from_connection_string(texts[0], retry_total=0) as old,
            pytest.raises(HttpResponseError, match="InsufficientAccountPermissions"),
        ):
            old.get_blob_client("container", "new").upload_blob(b"new")
        with BlobServiceClient.from_connection_string(texts[1]) as new:
            blob = new.get_blob_client("container", "versioned")
            with pytest.raises(HttpResponseError, match="LeaseIdMissing"):
                blob.upload_blob(b"third", overwrite=True)
            blob.undelete_blob()
            versions = new.get_container_client("container").list_blobs("versioned", include=["versions"])
            data = [
                new.get_blob_client("container", "versioned", version_id=each.version_id)
                .download_blob()
                .readall()
                for each in versions
            ]
            assert sorted(data) == [b"first" * 10_000, b"second"]
            restored = next(each for each in new.list_containers(include_deleted=True) if each.deleted)
            client = new.undelete_container("restorable", str(restored.version))
            assert client.download_blob("inside").readall() == b"inside"
        with (
            BlobServiceClient.from_connection_string(second.connection_string) as others,
            pytest.raises(ResourceNotFoundError),
        ):
            others.get_blob_client("container", "versioned").get_blob_properties()
        code, _, err = run("migrate", "--from", source, "--to", target, "--account", "moving")
        assert (code, err) == (1, f"kyanite: The store {target} has an account moving already.\n")
    for location in (source, target):
        code, out, _ = verify(location)
        assert code == 0, out


def kill_when_copied(source: Path, target: Path, copied: int) -> None:
    """Begin a migration, and end it when the target has so many bytes."""
    with subprocess.Popen(
        command("migrate", "--from", source, "--to", target),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        eventually(lambda: space_of(target / "extents" / "segments") >= copied)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)


def test_a_killed_migration_is_given_up_or_goes_on(tmp_path: Path) -> None:
    """The source is stopped. The target is sound in between."""
    source, target = tmp_path / "source", tmp_path / "target"
    with (
        serving(source) as server,
        BlobServiceClient.from_connection_string(server.connection_string) as blobs,
    ):
        container = blobs.create_container("container")
        for number in range(40):
            container.upload_blob(f"blob {number:02}", os.urandom(2 * MIB), metadata={"number": str(number)})
        before = {each.name: each.etag for each in container.list_blobs()}
    kill_when_copied(source, target, 4 * MIB)
    out = succeed("migrate", "--from", source, "--to", target, "--give-up")
    assert out == f"{ServerProcess.account}: given up. In the source it is still read-only.\n"
    with (
        serving(target) as server,
        BlobServiceClient.from_connection_string(server.connection_string) as blobs,
    ):
        assert not list(blobs.list_containers())
        eventually(lambda: space_of(target / "extents" / "segments") == 0)
    kill_when_copied(source, target, 24 * MIB)
    code, out, err = verify(target)
    assert (code, err) == (0, ""), out
    out = succeed("migrate", "--from", source, "--to", target)
    assert f"{80 * MIB} bytes were read back" in out
    assert f"{80 * MIB} bytes were moved" not in out  # Some were there.
    assert verify(target)[0] == 0
    with (
        serving(target) as server,
        BlobServiceClient.from_connection_string(server.connection_string) as blobs,
    ):
        container = blobs.get_container_client("container")
        assert {each.name: each.etag for each in container.list_blobs()} == before
        container.upload_blob("new", b"new")
        etag = container.get_blob_client("new").get_blob_properties().etag
        assert etag.strip('"') > max(before.values())


def test_damage_stops_a_migration(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with (
        serving(source) as server,
        BlobServiceClient.from_connection_string(server.connection_string) as blobs,
    ):
        blobs.create_container("container").upload_blob("blob", os.urandom(MIB))
    segment = next(path for path in (source / "extents" / "segments").rglob("*") if path.is_file())
    with segment.open("r+b") as file:
        file.seek(100)
        file.write(b"damage")
    code, out, err = run("migrate", "--from", source, "--to", target)
    assert (code, out) == (1, "")
    assert err.startswith(
        "kyanite: The migration has stopped, and goes on when it is run again: The CRC of extent"
    )


def test_bad_input(tmp_path: Path) -> None:
    source = tmp_path / "source"
    none = tmp_path / "none"
    assert run("migrate", "--from", none, "--to", source) == (
        1,
        "",
        f"kyanite: There is no store in {none}.\n",
    )
    with serving(source):
        pass
    assert run("migrate", "--from", source, "--to", source) == (
        2,
        "",
        "kyanite: --from and --to name the same store.\n",
    )
    assert run("migrate", "--from", source, "--to", none, "--account", "missing") == (
        1,
        "",
        f"kyanite: The store {source} has nothing of an account missing.\n",
    )
    code, _, err = run("migrate", "--from", source, "--to", "ftp://somewhere")
    assert code == 2
    assert err.startswith("kyanite: --to names neither an engine nor extents of this version: ftp.")
