"""``kyanite verify`` on a store that a real server has written."""

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import uvloop
from azure.storage.blob import BlobServiceClient, ContainerClient
from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.engine.clock import wall_clock
from kyanite.model import store_format
from kyanite.model.content.references import decode_extent
from kyanite.model.records import encode
from kyanite.model.store_format import FORMAT, StoreFormat
from kyanite.server.store.api import StoreKind
from kyanite.server.store.factory import factory_of
from tests.server.store.test_damaged_store import clients, database_of, flip
from tests.server_process import ServerFailed, ServerProcess
from tests.stores.recorded import unpack

ARCHIVE = Path(__file__).parents[2] / "stores" / "394e107.tar.xz"


def verify(location: Path, *more: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(location), *more]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    with ServerProcess("--workers", "1", location=folder) as server:
        credential = {"account_name": server.account, "account_key": server.account_key}
        with BlobServiceClient(server.endpoints["blob"], credential=credential) as client:
            container = client.create_container("verified")
            for size in (100, 100_000, 200_000):
                container.upload_blob(f"of {size}", bytes(size))
        assert server.stop() == 0
    return folder


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    """A stopped store with one inline blob and two in extents."""
    return copy_of(original, tmp_path)


def copy_of(original: Path, folder: Path) -> Path:
    """The copy is in use by no process: pipes and locks stay behind."""
    return shutil.copytree(
        original, folder / "store", ignore=shutil.ignore_patterns("bells", "*.lock", "*.sock")
    )


def test_a_sound_store(store: Path) -> None:
    out = "8 rows and 2 extents with 300000 bytes, all as they were written.\n"
    assert verify(store) == (0, out, "")


def segment_of(store: Path) -> Path:
    (segment,) = (path for path in (store / "extents" / "segments").rglob("*") if path.is_file())
    return segment


def test_bytes_that_have_changed(store: Path) -> None:
    with segment_of(store).open("r+b") as file:
        file.seek(50_000)
        file.write(b"!")
    code, out, err = verify(store)
    assert code == 1
    lines = out.splitlines()
    assert re.fullmatch(r"The CRC of (extent [0-9a-f]+\+0) is wrong\.", lines[0])
    name = "blob devstoreaccount1/verified/of 100000"
    extent = lines[0][len("The CRC of ") : -len(" is wrong.")]
    assert lines[1] == f"{name}: 100000 bytes from 0 are damaged ({extent})."
    assert lines[2:] == [
        "8 rows and 2 extents with 300000 bytes were read. "
        "Stretches of rows that cannot be read: 0; damaged bytes: 100000."
    ]
    assert err == f"kyanite: Findings in the store {store}: 1.\n"


def test_a_segment_that_is_too_short(store: Path) -> None:
    os.truncate(segment_of(store), 200_000)
    code, out, _ = verify(store)
    assert code == 1
    assert out.startswith("Bytes of extent ")
    assert "blob devstoreaccount1/verified/of 200000: 200000 bytes from 0 are damaged" in out


def test_a_missing_segment(store: Path) -> None:
    segment_of(store).unlink()
    code, out, err = verify(store)
    assert code == 1
    assert out.count("The file of extent ") == 2
    assert err == f"kyanite: Findings in the store {store}: 2.\n"


def test_a_segment_without_rows_is_no_damage(store: Path) -> None:
    segment = segment_of(store)
    segment.with_name("000000ff").write_bytes(bytes(8192))
    code, out, err = verify(store)
    assert (code, err) == (0, "")
    assert out.startswith("1 segments with 8192 bytes that no row refers to can be reclaimed.\n8 rows")


def test_rows_that_are_damaged(store: Path) -> None:
    """A record, a count of references and an unknown row: one line each, and the rest is read all the same."""
    uvloop.run(damage(store))
    code, out, err = verify(store)
    assert code == 1
    lines = out.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["unknown", "container", "extent", "container", "9"]
    assert lines[3] == "container devstoreaccount1/verified: its record is damaged."
    assert lines[2].endswith("5 references by its own count, but 1 in fact.")
    assert err == f"kyanite: Findings in the store {store}: 3.\n"


def test_a_long_value_that_belongs_to_no_row(store: Path) -> None:
    """Nobody reads it, and nothing would ever remove it."""
    with closing(sqlite3.connect(database_of(store))) as database, database:
        database.execute("INSERT INTO long (key, value) VALUES (?, ?)", (b"n", bytes(3000)))
        assert database.execute("SELECT count(*) FROM kv WHERE typeof(value) = 'integer'").fetchone() == (0,)
    code, out, err = verify(store)
    assert code == 1
    assert "1 long values with 3000 bytes belong to no row" in out
    assert err == f"kyanite: Findings in the store {store}: 1.\n"


def test_a_long_value_that_is_not_there(store: Path) -> None:
    """The row that it belongs to is damaged, and named."""
    with serving(store) as container:
        container.get_blob_client("of 100").set_blob_metadata({"long": "x" * 4000})
    assert verify(store)[0] == 0
    with closing(sqlite3.connect(database_of(store))) as database, database:
        assert database.execute("DELETE FROM long").rowcount == 1
    code, out, _ = verify(store)
    assert code == 1
    assert "blob devstoreaccount1/verified/of 100" in out


@contextmanager
def serving(store: Path) -> Iterator[ContainerClient]:
    with ServerProcess("--workers", "1", location=store) as server:
        with BlobServiceClient.from_connection_string(server.connection_string) as client:
            yield client.get_container_client("verified")
        assert server.stop() == 0


async def damage(store: Path) -> None:
    def body(tx: Transaction) -> None:
        key, value = next(tx.scan(b"x", b"y"))
        tx.put(key, encode(replace(decode_extent(value), references=5)))
        key, _ = next(tx.scan(b"c", b"d"))
        tx.put(key, b"damaged")
        tx.put(b"?", b"")

    engine = factory_of(StoreKind(), store).open_engine(wall_clock)
    await engine.run(body)
    await engine.close()


def test_a_newer_store_is_refused(store: Path) -> None:
    uvloop.run(make_newer(store))
    code, out, err = verify(store)
    assert (code, out) == (1, "")
    assert (
        err == f"kyanite: The store {store} has format {FORMAT + 1}, "
        f"and this version of Kyanite knows format {FORMAT} at most.\n"
    )
    with pytest.raises(ServerFailed) as refused:
        ServerProcess("--workers", "1", location=store).start()
    assert refused.value.code == 1
    assert refused.value.errors == err


async def make_newer(store: Path) -> None:
    engine = factory_of(StoreKind(), store).open_engine(wall_clock)
    await engine.run(lambda tx: store_format.save(tx, StoreFormat(FORMAT + 1)))
    await engine.close()


def test_a_store_in_use(tmp_path: Path) -> None:
    with ServerProcess("--workers", "1", location=tmp_path):
        code, _, err = verify(tmp_path)
    assert (code, err) == (1, f"kyanite: The store {tmp_path} is in use by another Kyanite server.\n")


# Stores whose database is damaged: one line for each finding, never a traceback

PAGE = 8192


@pytest.fixture(scope="module")
def rich_original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rich")
    with ServerProcess("--workers", "1", location=folder) as server:
        with clients(server) as (blobs, queues, tables):
            container = blobs.create_container("box")
            for number in range(100):
                container.upload_blob(
                    f"{number:03}",
                    b"body-%03d" % number + bytes(500),
                    metadata={"text": f"meta-{number:03}" * 40},
                )
            container.upload_blob("long", bytes(300_000))
            queue = queues.create_queue("orders")
            queue.send_message("text-of-a-message" + "x" * 5000)
            table = tables.create_table("people")
            table.create_entity({"PartitionKey": "p", "RowKey": "r", "Value": "value-of-an-entity"})
        assert server.stop() == 0
    with sqlite3.connect(database_of(folder)) as connection:
        connection.execute("VACUUM")  # So that the bytes of a row are in one page only.
    connection.close()
    return folder


@pytest.fixture
def rich(rich_original: Path, tmp_path: Path) -> Path:
    """A stopped store with rows of all services in many pages."""
    return copy_of(rich_original, tmp_path)


def findings(store: Path) -> list[str]:
    """What verify prints, when it ends as it should."""
    code, out, err = verify(store)
    assert code == 1
    assert re.fullmatch(rf"kyanite: Findings in the store {store}: \d+\.\n", err)
    return out.splitlines()


def test_bodies_messages_and_entities_that_have_changed(rich: Path) -> None:
    for stored in (b"body-042", b"text-of-a-message", b"value-of-an-entity"):
        flip(rich, stored)
    lines = findings(rich)
    assert sum(line.endswith(": it cannot be read.") for line in lines) == 3
    assert any(
        re.fullmatch(
            r"blob devstoreaccount1/box/042: 508 bytes from 0 are damaged \(inline body \d+\)\.", line
        )
        for line in lines
    )
    assert any(
        re.fullmatch(r"message devstoreaccount1/orders/[-0-9a-f]+: it is damaged \(inline body \d+\)\.", line)
        for line in lines
    )
    assert "entity devstoreaccount1/people('p', 'r'): its record is damaged." in lines
    assert "References are not counted, because rows are missing." in lines
    assert "Stretches of rows that cannot be read: 3;" in lines[-1]


def test_a_malformed_page(rich: Path) -> None:
    """What is in other pages is read all the same."""
    path = database_of(rich)
    content = bytearray(path.read_bytes())
    at = content.index(b"meta-050") // PAGE * PAGE
    content[at : at + PAGE] = random.Random(1).randbytes(PAGE)
    path.write_bytes(content)
    lines = findings(rich)
    assert lines[0].startswith("The engine is damaged: ")
    assert any(line.startswith("Rows from blob ") and line.endswith("cannot be read.") for line in lines)
    assert any(
        re.fullmatch(r"blob devstoreaccount1/box/0\d\d: what follows it cannot be read\.", line)
        for line in lines
    )
    rows = int(lines[-1].split(" ")[0])
    assert 100 < rows < 210
    assert "1 extents with 300000 bytes were read" in lines[-1]


@pytest.mark.parametrize("kept_bytes", [0, 100, PAGE, 5 * PAGE])
def test_a_database_that_is_cut_off(rich: Path, kept_bytes: int) -> None:
    path = database_of(rich)
    path.write_bytes(path.read_bytes()[:kept_bytes])
    code, out, err = verify(rich)
    assert code == 1
    assert out
    assert err.startswith("kyanite: ")
    assert err.count("\n") == 1


def test_random_bytes_instead_of_a_database(rich: Path) -> None:
    path = database_of(rich)
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))
    code, out, err = verify(rich)
    assert (code, out) == (1, "The engine is damaged: file is not a database.\n")
    assert err == f"kyanite: The store {rich} cannot be opened. SQLite: file is not a database\n"


def test_a_missing_database(rich: Path) -> None:
    """A new one must not be made in its place, as if nothing had ever been stored."""
    database_of(rich).unlink()
    code, out, err = verify(rich)
    assert (code, out) == (1, "The engine is damaged: the file store.sqlite3 is missing or empty.\n")
    assert err == f"kyanite: Findings in the store {rich}: 1.\n"
    with pytest.raises(ServerFailed) as refused:
        ServerProcess("--workers", "1", location=rich).start()
    assert refused.value.errors.count("\n") == 1
    assert not database_of(rich).exists()
    assert segment_of(rich).stat().st_size > 0


@pytest.fixture(scope="module")
def killed_original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    with ServerProcess("--workers", "1", location=folder) as server:
        with clients(server) as (blobs, _, _):
            container = blobs.create_container("box")
            for number in range(30):
                container.upload_blob(f"{number:03}", bytes(5000))
        server.kill9()
    return folder


@pytest.mark.parametrize("kept", [None, 0.0, 0.3, 0.9])
def test_a_log_that_is_missing_or_cut_off(killed_original: Path, tmp_path: Path, kept: float | None) -> None:
    """The last commits are gone. The rest is sound, or there is nothing left that could be opened."""
    store = copy_of(killed_original, tmp_path)
    log = store / "engine" / "store.sqlite3-wal"
    size = log.stat().st_size
    assert size > 0
    if kept is None:
        log.unlink()
    else:
        os.truncate(log, int(size * kept))
    code, out, err = verify(store)
    assert (code, err) == (0, ""), out


def test_a_damaged_log(killed_original: Path, tmp_path: Path) -> None:
    """SQLite has checksums of its own there, and takes the first commit that is damaged for the end of the log."""
    store = copy_of(killed_original, tmp_path)
    log = store / "engine" / "store.sqlite3-wal"
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    code, out, err = verify(store)
    assert (code, err) == (0, ""), out


def test_a_file_instead_of_the_engine(store: Path) -> None:
    shutil.rmtree(store / "engine")
    (store / "engine").touch()
    assert findings(store) == ["The engine is damaged: the file store.sqlite3 is missing or empty."]


def test_other_files_among_the_segments(store: Path) -> None:
    (store / "extents" / "segments" / "lost+found").mkdir()
    (segment_of(store).parent / "notes.txt").touch()
    assert verify(store)[0] == 0


def test_the_folder_of_the_segments_is_gone(store: Path) -> None:
    shutil.rmtree(store / "extents")
    lines = findings(store)
    assert sum(line.startswith("The file of extent ") for line in lines) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to the superuser")
def test_a_folder_that_cannot_be_read(store: Path) -> None:
    (store / "engine").chmod(0)
    try:
        code, _, err = verify(store)
    finally:
        (store / "engine").chmod(0o700)
    assert code == 1
    assert err.startswith("kyanite: ")
    assert err.count("\n") == 1


def test_findings_as_json(store: Path) -> None:
    with segment_of(store).open("r+b") as file:
        file.seek(50_000)
        file.write(b"!")
    code, out, _ = verify(store, "--json")
    assert code == 1
    finding, hurt, totals = map(json.loads, out.splitlines())
    assert finding.keys() == {"finding"}
    assert hurt["hurt"].startswith(
        "blob devstoreaccount1/verified/of 100000: 100000 bytes from 0 are damaged"
    )
    assert totals["totals"]["damaged_bytes"] == 100_000


def test_a_damaged_store_of_an_older_format_is_not_upgraded(tmp_path: Path) -> None:
    unpack(ARCHIVE, tmp_path)
    path = database_of(tmp_path)
    content = bytearray(path.read_bytes())
    content[-PAGE:] = random.Random(1).randbytes(PAGE)
    path.write_bytes(content)
    code, out, err = verify(tmp_path)
    assert code == 1
    assert out.startswith("The engine is damaged: ")
    assert err.endswith("is damaged, so it is not upgraded and cannot be verified further.\n")


def test_beside_a_server_that_is_being_written(tmp_path: Path) -> None:
    """All rows are read in one snapshot, and content that is deleted meanwhile is no damage."""
    with (
        ServerProcess("--workers", "2", location=tmp_path) as server,
        clients(server) as (blobs, queues, tables),
    ):
        container = blobs.create_container("container")
        tables.create_table("table")
        queue = queues.create_queue("queue")
        ended = threading.Event()

        def write() -> None:
            number = 0
            while not ended.is_set():
                container.upload_blob(f"{number}", os.urandom(50_000))
                if number >= 4:
                    container.delete_blob(f"{number - 4}")
                page = container.get_blob_client(f"pages {number % 2}")
                page.create_page_blob(1 << 20)
                page.upload_page(bytes(512), offset=512 * (number % 100), length=512)
                page.create_snapshot()
                queue.send_message("text")
                number += 1

        writers = [threading.Thread(target=write)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(3):
                code, out, err = verify(tmp_path, "--served")
                assert (code, err) == (0, ""), out
                assert out.endswith("all as they were written.\n")
        finally:
            ended.set()
            for writer in writers:
                writer.join()
        segment = max(
            (path for path in (tmp_path / "extents" / "segments").rglob("*") if path.is_file()),
            key=lambda path: path.stat().st_size,
        )
        with segment.open("r+b") as file:
            file.write(os.urandom(segment.stat().st_size))
        code, out, err = verify(tmp_path, "--served")
        assert code == 1
        assert "The CRC of extent" in out
        assert "blob devstoreaccount1/container/" in out
