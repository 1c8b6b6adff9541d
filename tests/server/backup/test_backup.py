"""``kyanite backup`` beside a real server, and ``kyanite restore`` into another folder."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobLeaseClient, BlobServiceClient, ContainerClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from kyanite.server.accounts import sealed_keys
from kyanite.server.stamps.stamp import Stamp, load_added, save_added
from kyanite.server.store.api import StoreKind
from tests.server.store.test_damaged_store import database_of
from tests.server.store.test_verify import copy_of, verify
from tests.server_process import ServerFailed, ServerProcess, eventually

MIB = 1 << 20


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "kyanite.server.cli", *map(str, arguments)]


def run(*arguments: object, limit: Callable[[], None] | None = None) -> tuple[int, str, str]:
    ended = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=120, check=False, preexec_fn=limit
    )
    return ended.returncode, ended.stdout, ended.stderr


def succeed(*arguments: object) -> str:
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    return out


def points_of(destination: Path) -> list[str]:
    return [line.split()[0] for line in succeed("restore", destination, "--list").splitlines()]


@contextmanager
def serving(location: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", location=location) as server:
        yield server
        assert server.stop() == 0


@contextmanager
def container_of(server: ServerProcess, name: str = "container") -> Iterator[ContainerClient]:
    with BlobServiceClient.from_connection_string(server.connection_string, retry_total=0) as client:
        container = client.get_container_client(name)
        with suppress(HttpResponseError):
            container.create_container()
        yield container


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped store with 12 blobs of 1 MiB, and a small one."""
    folder = tmp_path_factory.mktemp("original")
    with serving(folder) as server, container_of(server) as container:
        for number in range(12):
            container.upload_blob(f"blob {number}", os.urandom(MIB))
        container.upload_blob("small", b"small")
    return folder


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    return copy_of(original, tmp_path)


def blobs_in(location: Path) -> dict[str, tuple[str, bytes]]:
    """ETags and bytes, by name."""
    with serving(location) as server, container_of(server) as container:
        return {
            blob.name: (blob.etag, container.download_blob(blob.name).readall())
            for blob in container.list_blobs()
        }


class Writer(threading.Thread):
    """Writes blobs 0, 1, 2 … one after the other, and after each of them the counter. Every fifth is deleted later."""

    def __init__(self, container: ContainerClient, name: str, stop: threading.Event) -> None:
        super().__init__()
        self._container = container
        self.prefix = name
        self._stop_event = stop
        self.acknowledged = 0

    def run(self) -> None:
        number = 0
        while not self._stop_event.is_set():
            size = 100 if number % 3 else 40_000
            self._container.upload_blob(f"{self.prefix}/{number:06}", number.to_bytes(4, "big") * (size // 4))
            self._container.upload_blob(f"{self.prefix}-counter", str(number).encode(), overwrite=True)
            if number % 5 == 4:
                self._container.delete_blob(f"{self.prefix}/{number - 4:06}")
            number += 1
            self.acknowledged = number
            time.sleep(0.01)  # The backup has a lower priority than the clients.


def check_prefix(container: ContainerClient, writer: Writer, *, at_least: int, at_most: int) -> None:
    """What is there is what a single moment of the writer had."""
    prefix = f"{writer.prefix}/"
    there = {int(blob.name.removeprefix(prefix)) for blob in container.list_blobs(name_starts_with=prefix)}
    last = max(there)
    counter = int(container.download_blob(f"{writer.prefix}-counter").readall())
    assert counter in (last - 1, last)
    assert at_least - 1 <= last <= at_most
    gone = set(range(0, last - 3, 5))
    assert there | gone == set(range(last + 1))
    assert len(there & gone) <= 1  # The last of them may not be deleted yet.
    for number in sorted(there)[-4:]:
        data = container.download_blob(f"{prefix}{number:06}").readall()
        assert data == number.to_bytes(4, "big") * (len(data) // 4)


def test_a_point_is_one_instant_of_a_busy_store(tmp_path: Path) -> None:
    location, destination = tmp_path / "store", tmp_path / "backup"
    stop = threading.Event()
    counts: list[tuple[list[int], list[int]]] = []
    with serving(location) as server, container_of(server) as container:
        container.upload_blob("large", os.urandom(8 * MIB))
        writers = [Writer(container, f"writer {number}", stop) for number in range(3)]
        for writer in writers:
            writer.start()
        try:
            eventually(lambda: all(writer.acknowledged > 5 for writer in writers))
            for _ in range(2):
                before = [writer.acknowledged for writer in writers]
                succeed("backup", destination, "--location", location)
                counts.append((before, [writer.acknowledged for writer in writers]))
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        assert all(
            after > before
            for _, afters in counts[:1]
            for before, after in zip(counts[0][0], afters, strict=True)
        )
    first, second = points_of(destination)
    for name, (before, after) in zip((first, second), counts, strict=True):
        restored = tmp_path / name
        succeed("restore", destination, "--location", restored, "--point", name)
        code, out, err = verify(restored)
        assert (code, err) == (0, ""), out
        with serving(restored) as server, container_of(server) as container:
            for writer, at_least, at_most in zip(writers, before, after, strict=True):
                check_prefix(container, writer, at_least=at_least, at_most=at_most + 1)


def test_everything_is_restored_and_goes_on(tmp_path: Path) -> None:
    """ETags, leases, messages, entities, files, snapshots and stored accounts; new ETags are later than all."""
    location, destination, restored = tmp_path / "store", tmp_path / "backup", tmp_path / "restored"
    with serving(location) as server, container_of(server) as container:
        container.upload_blob("leased", b"leased")
        lease = BlobLeaseClient(container.get_blob_client("leased"))
        lease.acquire()
        snapshot = str(container.get_blob_client("leased").create_snapshot()["snapshot"])
        etag = container.get_blob_client("leased").get_blob_properties().etag
        text = server.connection_string
        with QueueServiceClient.from_connection_string(text) as queues:
            queues.create_queue("queue").send_message("message")
        with TableServiceClient.from_connection_string(text) as tables:
            tables.create_table("table").create_entity({"PartitionKey": "p", "RowKey": "r", "Value": 5})
        with ShareServiceClient.from_connection_string(text) as shares:
            shares.create_share("share").get_file_client("file").upload_file(b"file" * 10_000)
        succeed("account", "add", "kept", "--location", location)
        keys = succeed("account", "list", "--location", location, "--json")
        succeed("backup", destination, "--location", location)
    succeed("restore", destination, "--location", restored)
    assert verify(restored)[0] == 0
    # The account "kept" is stored, so the development account has to be asked for.
    stated = f"{ServerProcess.account}:{ServerProcess.account_key}"
    with ServerProcess("--workers", "1", "--account", stated, location=restored) as server:
        text = server.connection_string
        with container_of(server) as container:
            blob = container.get_blob_client("leased")
            assert blob.get_blob_properties().etag == etag
            assert (
                container.get_blob_client("leased", snapshot=snapshot).download_blob().readall() == b"leased"
            )
            with pytest.raises(HttpResponseError, match="LeaseIdMissing"):
                blob.upload_blob(b"other", overwrite=True)
            again = blob.upload_blob(b"other", overwrite=True, lease=lease)["etag"]
            assert int(again.strip('"'), 16) > int(etag.strip('"'), 16)
        with QueueServiceClient.from_connection_string(text) as queues:
            assert [each.content for each in queues.get_queue_client("queue").receive_messages()] == [
                "message"
            ]
        with TableServiceClient.from_connection_string(text) as tables:
            assert tables.get_table_client("table").get_entity("p", "r")["Value"] == 5
        with ShareServiceClient.from_connection_string(text) as shares:
            file = shares.get_share_client("share").get_file_client("file")
            assert file.download_file().readall() == b"file" * 10_000
        assert '"kept"' in keys
        assert '"kept"' in succeed("account", "list", "--location", restored, "--json")
        server.stop()
    assert (restored / sealed_keys.NAME).read_bytes() == (location / sealed_keys.NAME).read_bytes()
    assert (restored / sealed_keys.NAME).stat().st_mode & 0o077 == 0


def test_long_values_are_restored(tmp_path: Path) -> None:
    """They have a table of their own. Also those that a second backup finds changed, and those that are gone since."""
    location, destination = tmp_path / "store", tmp_path / "backup"
    kept: list[dict[str, dict[str, str]]] = []
    changes = (
        {"one": "a" * 3000, "two": "b" * 5000, "three": "c" * 7000},
        {"one": "d" * 4000, "two": "short"},
    )
    for number, changed in enumerate(changes):
        with serving(location) as server, container_of(server) as container:
            for name, text in changed.items():
                container.upload_blob(name, b"content", metadata={"text": text}, overwrite=True)
            if number:
                container.delete_blob("three")
            kept.append({name: {"text": text} for name, text in changed.items()})
            succeed("backup", destination, "--location", location)
    for name, expected in zip(points_of(destination), kept, strict=True):
        restored = tmp_path / name
        succeed("restore", destination, "--location", restored, "--point", name)
        code, out, err = verify(restored)
        assert (code, err) == (0, ""), out
        with sqlite3.connect(database_of(restored)) as database:
            (count,) = database.execute("SELECT count(*) FROM long").fetchone()
        assert count == sum(len(each["text"]) > 2000 for each in expected.values())
        with serving(restored) as server, container_of(server) as container:
            found = {blob.name: blob.metadata for blob in container.list_blobs(include=["metadata"])}
        assert found == expected


def test_only_new_extents_are_copied_and_old_points_dropped(store: Path, tmp_path: Path) -> None:
    destination = tmp_path / "backup"
    before = blobs_in(store)
    assert "of which 12 with 12582912 bytes were copied" in succeed(
        "backup", destination, "--location", store
    )
    assert "of which 0 with 0 bytes were copied" in succeed("backup", destination, "--location", store)
    with serving(store) as server, container_of(server) as container:
        for number in range(12):
            container.delete_blob(f"blob {number}")
        container.upload_blob("later", os.urandom(MIB))
    assert "of which 1 with 1048576 bytes were copied" in succeed("backup", destination, "--location", store)
    first, second, third = points_of(destination)
    assert space_of(destination / "segments") >= 13 * MIB
    assert f"{first}: dropped.\n{second}: dropped.\n" in succeed(
        "backup", destination, "--location", store, "--keep", "2"
    )
    assert space_of(destination / "segments") <= 2 * MIB
    names = points_of(destination)
    assert names[0] == third
    assert len(names) == 2
    succeed("restore", destination, "--location", tmp_path / "restored")
    assert blobs_in(tmp_path / "restored").keys() == {"later", "small"}
    assert before["small"] == blobs_in(tmp_path / "restored")["small"]


def space_of(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@contextmanager
def slow_backup(store: Path, destination: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A backup that has copied something and will not end for some seconds."""
    with subprocess.Popen(
        command("backup", destination, "--location", store, "--mib-per-second", "1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            eventually(lambda: space_of(destination / "segments") >= 2 * MIB)
            assert process.poll() is None
            yield process
        finally:
            process.kill()


def test_a_killed_backup_leaves_the_former_points(store: Path, tmp_path: Path) -> None:
    destination = tmp_path / "backup"
    before = blobs_in(store)
    succeed("backup", destination, "--location", store)
    with serving(store) as server, container_of(server) as container:
        for number in range(20):
            container.upload_blob(f"more {number}", os.urandom(MIB))
        grown = space_of(destination / "segments") + 2 * MIB
        with slow_backup(store, destination) as process:
            eventually(lambda: space_of(destination / "segments") >= grown)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert len(points_of(destination)) == 1
        succeed("restore", destination, "--location", tmp_path / "first")
        out = succeed("backup", destination, "--location", store)
        assert "extents with 33554432 bytes" in out
    assert blobs_in(tmp_path / "first") == before
    succeed("restore", destination, "--location", tmp_path / "second")
    assert len(blobs_in(tmp_path / "second")) == 33
    assert not list(destination.rglob("*.partial"))


def test_a_slow_backup_lets_space_be_reclaimed(store: Path, tmp_path: Path) -> None:
    with serving(store) as server, container_of(server) as container:
        used = space_of(store / "extents" / "segments")
        with slow_backup(store, tmp_path / "backup") as process:
            for number in range(4, 12):
                container.delete_blob(f"blob {number}")
            eventually(lambda: space_of(store / "extents" / "segments") <= used - 8 * MIB)
            assert process.poll() is None


def test_a_destination_without_space(store: Path, tmp_path: Path) -> None:
    destination = tmp_path / "backup"
    before = blobs_in(store)
    succeed("backup", destination, "--location", store)
    with serving(store) as server, container_of(server) as container:
        container.upload_blob("too large", os.urandom(20 * MIB))
    limit = 8 * MIB  # Of one file, which the system reports like a full disk.
    code, out, err = run(
        "backup",
        destination,
        "--location",
        store,
        limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (code, out) == (1, "")
    assert err == (
        "kyanite: The backup could not be completed: File too large. Earlier restore points are whole.\n"
    )
    succeed("restore", destination, "--location", tmp_path / "restored")
    assert blobs_in(tmp_path / "restored") == before
    assert "with 33554432 bytes" in succeed("backup", destination, "--location", store)


def test_damage_in_the_store_is_reported_and_the_rest_backed_up(store: Path, tmp_path: Path) -> None:
    largest = max(
        (path for path in (store / "extents" / "segments").rglob("*") if path.is_file()),
        key=lambda path: path.stat().st_size,
    )
    with largest.open("r+b") as file:
        file.seek(5000)
        file.write(b"damage")
    code, out, err = run("backup", tmp_path / "backup", "--location", store)
    assert code == 1
    assert "The CRC of extent " in out
    assert err.endswith("is complete, but extents are damaged in the store: 1.\n")
    code, out, err = run("restore", tmp_path / "backup", "--location", tmp_path / "restored")
    assert code == 1
    assert err.endswith("is restored, but extents are damaged in the backup: 1.\n")
    with serving(tmp_path / "restored") as server, container_of(server) as container:
        sound = 0
        for blob in container.list_blobs():
            with suppress(HttpResponseError):
                container.download_blob(blob.name).readall()
                sound += 1
        assert sound == 12


def test_damage_in_the_backup_is_found(store: Path, tmp_path: Path) -> None:
    destination = tmp_path / "backup"
    succeed("backup", destination, "--location", store)
    (database,) = destination.glob("points/*/store.sqlite3")
    with database.open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"damage")
    code, _, err = run("restore", destination, "--location", tmp_path / "restored")
    assert code == 1
    assert "The checksum of" in err
    with pytest.raises(ServerFailed) as failed:
        ServerProcess(location=tmp_path / "restored").start()
    assert "a restore into it has not ended" in failed.value.errors


def test_a_restore_that_was_interrupted_begins_again(store: Path, tmp_path: Path) -> None:
    destination, restored = tmp_path / "backup", tmp_path / "restored"
    succeed("backup", destination, "--location", store)
    succeed("restore", destination, "--location", restored)
    segment_of_restored = next(
        path for path in (restored / "extents" / "segments").rglob("*") if path.is_file()
    )
    os.truncate(segment_of_restored, 100)
    (restored / "restoring").touch()
    with pytest.raises(ServerFailed, match="is not whole"):
        ServerProcess(location=restored).start()
    succeed("restore", destination, "--location", restored)
    assert blobs_in(restored) == blobs_in(store)


def test_bad_input(store: Path, tmp_path: Path) -> None:
    destination = tmp_path / "backup"
    inside = store / "backup"
    assert run("backup", destination, "--location", tmp_path / "none") == (
        1,
        "",
        f"kyanite: There is no store in {tmp_path / 'none'}.\n",
    )
    assert run("backup", inside, "--location", store) == (
        2,
        "",
        f"kyanite: A backup in {inside} would be part of the store, or the store of the backup.\n",
    )
    assert run("restore", destination, "--location", tmp_path / "new") == (
        1,
        "",
        f"kyanite: There is no backup in {destination}.\n",
    )
    succeed("backup", destination, "--location", store)
    (name,) = points_of(destination)
    assert run("restore", destination, "--location", tmp_path / "new", "--point", "x") == (
        1,
        "",
        f"kyanite: The backup {destination} has no restore point x. The newest one is {name}.\n",
    )
    assert run("restore", destination, "--location", store) == (
        1,
        "",
        f"kyanite: The folder {store} is not empty, so nothing is restored into it.\n",
    )


def test_stores_that_are_elsewhere(store: Path, tmp_path: Path) -> None:
    """In a bucket, or in PostgreSQL: the folder has no content, or no database."""
    shutil.rmtree(store / "extents" / "segments")
    code, out, err = run("backup", tmp_path / "backup", "--location", store)
    assert (code, out) == (1, "")
    assert err.startswith(f"kyanite: The content of the store {store} is not in its folder.")
    shutil.rmtree(store / "engine")
    code, out, err = run("backup", tmp_path / "backup", "--location", store)
    assert (code, out) == (1, "")
    assert err.startswith(f"kyanite: The store {store} has no database of its own.")


def test_stamps_that_were_added_are_known_to_the_restored_store(store: Path, tmp_path: Path) -> None:
    """With the credentials in their URLs, so the files are for their owner only."""
    added = [Stamp("west", StoreKind("postgresql://user:secret@127.0.0.1/west", "local"))]
    save_added(store, added)
    assert run("backup", tmp_path / "backup", "--location", store)[0] == 0
    save_added(store, [])
    assert run("restore", tmp_path / "backup", "--location", tmp_path / "restored")[0] == 0
    assert load_added(tmp_path / "restored") == added
    files = [*(tmp_path / "backup").rglob("stamps.json"), tmp_path / "restored" / "stamps.json"]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600] * 2


def test_two_backups_at_the_same_time(store: Path, tmp_path: Path) -> None:
    with slow_backup(store, tmp_path / "backup"):
        code, _, err = run("backup", tmp_path / "backup", "--location", store)
        assert code == 1
        assert err == f"kyanite: Another backup or restore works with {tmp_path / 'backup'} at present.\n"
