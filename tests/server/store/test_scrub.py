"""The scrub of real stores: one that an older version has written, and one that a server serves."""

import http.client
import re
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvloop
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from kyanite.engine.clock import wall_clock
from kyanite.extents.api import BLOCK_BYTES
from kyanite.model.content.references import decode_extent
from kyanite.model.maintenance import scrub
from kyanite.model.maintenance.pace import Pace
from kyanite.model.maintenance.scrub import FoundDamage, Scrub
from kyanite.server.store.api import Store, StoreKind
from kyanite.server.store.factory import factory_of
from kyanite.server.store.format import prepare
from tests.server.store.test_verify import segment_of, verify
from tests.server.test_testing_clock import advance
from tests.server_process import ServerProcess, eventually
from tests.stores.recorded import unpack

ARCHIVE = Path(__file__).parents[2] / "stores" / "394e107.tar.xz"
SIZE = 3 * BLOCK_BYTES + 1000


async def no_sleep(_seconds: float) -> None: ...


async def scrubbed(store: Store) -> list[FoundDamage]:
    """What a pass over the store finds."""
    found: list[FoundDamage] = []
    pace = Pace(1e15, clock=time.monotonic, sleep=no_sleep)
    work = Scrub(store.engine, store.extents, pace, found.append)
    assert await work.step()
    return found


def test_a_store_of_an_older_version_gets_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(ARCHIVE, tmp_path)
    monkeypatch.setattr(scrub, "BEGIN_AFTER_SECONDS", 0.0)

    async def run() -> None:
        store = factory_of(StoreKind(), tmp_path).open(wall_clock)
        try:
            await prepare(store.engine, tmp_path, is_testing=None)
            before = dict(await store.engine.read(lambda snap: list(snap.scan(b"", b"\xff"))))
            without = await store.engine.read(lambda snap: snap.without_checksum(b"", b"\xff"))
            assert len(without) > 100
            assert await scrubbed(store) == []
            assert await store.engine.read(lambda snap: snap.without_checksum(b"", b"\xff")) == []
            after = dict(await store.engine.read(lambda snap: list(snap.scan(b"", b"\xff"))))
        finally:
            await store.close()
        del after[b"2"]
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        long = [key for key in before if key[:1] == b"x" and decode_extent(before[key]).length > BLOCK_BYTES]
        assert sorted(changed) == sorted(long)
        assert all(decode_extent(after[key]).checksums for key in long)

    uvloop.run(run())
    code, out, err = verify(tmp_path)
    assert (code, err) == (0, ""), out


def test_a_server_finds_damage_once_and_names_it(tmp_path: Path) -> None:
    """One of two workers scrubs. Its clock is moved, because it begins a minute after the start."""
    options = ("--workers", "2", "--testing", "--admin-port", "0", "--scrub-mib-per-second", "1000")
    with ServerProcess(*options, location=tmp_path) as server:
        with BlobServiceClient.from_connection_string(server.connection_string, retry_total=0) as client:
            container = client.create_container("photos")
            container.upload_blob("2026/a.jpg", bytes(SIZE))
            assert metric(server, "kyanite_scrub_passes_total") == 0
            with segment_of(tmp_path).open("r+b") as file:
                file.seek(BLOCK_BYTES + 17)
                file.write(b"!")
            advance(server, 61)
            eventually(lambda: metric(server, "kyanite_scrub_passes_total") == 1)
            assert metric(server, "kyanite_damaged_extents") == 1
            assert metric(server, "kyanite_damaged_rows") == 0
            assert metric(server, "kyanite_scrub_bytes_total") >= SIZE
            with pytest.raises(HttpResponseError):
                container.download_blob("2026/a.jpg").readall()
        lines = [line for line in server.log if line.get("logger") == "kyanite.scrub"]
        assert server.stop() == 0
    (line,) = lines
    assert (line["message"], line["level"], line["process"]) == ("damaged", "error", "worker 1")
    assert line["hurt_count"] == 1
    assert re.search(
        rf"'blob devstoreaccount1/photos/2026/a\.jpg: {BLOCK_BYTES} bytes from {BLOCK_BYTES} are damaged "
        r"\(extent [0-9a-f]{32}\+0\)\.'",
        str(line["hurt"]),
    )


def test_no_scrub(tmp_path: Path) -> None:
    options = ("--workers", "1", "--testing", "--admin-port", "0", "--scrub-mib-per-second", "0")
    with ServerProcess(*options, location=tmp_path) as server:
        eventually(lambda: "kyanite_workers" in metrics(server))
        assert "kyanite_scrub" not in metrics(server)


def metrics(server: ServerProcess) -> str:
    connection = http.client.HTTPConnection(urlsplit(server.endpoints["admin"]).netloc, timeout=10)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def metric(server: ServerProcess, name: str) -> float:
    found = re.search(rf"^{name} (.+)$", metrics(server), re.MULTILINE)
    return -1 if found is None else float(found[1])
