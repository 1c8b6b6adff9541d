"""``kyanite verify`` on a store that a real server has written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop
from azure.storage.blob import BlobServiceClient
from msgspec.structs import replace

from kyanite.engine.api import Transaction
from kyanite.engine.clock import wall_clock
from kyanite.model import store_format
from kyanite.model.content.references import decode_extent
from kyanite.model.records import encode
from kyanite.model.store_format import FORMAT, StoreFormat
from kyanite.server.store.api import StoreKind
from kyanite.server.store.factory import factory_of
from tests.server_process import ServerFailed, ServerProcess


def verify(location: Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "kyanite.server.cli", "verify", "--location", str(location)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A stopped store with one inline blob and two in extents."""
    with ServerProcess("--workers", "1", location=tmp_path) as server:
        credential = {"account_name": server.account, "account_key": server.account_key}
        with BlobServiceClient(server.endpoints["blob"], credential=credential) as client:
            container = client.create_container("verified")
            for size in (100, 100_000, 200_000):
                container.upload_blob(f"of {size}", bytes(size))
        assert server.stop() == 0
    return tmp_path


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
        "0 stretches of rows cannot be read, and 100000 bytes are damaged."
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


async def damage(store: Path) -> None:
    def body(tx: Transaction) -> None:
        key, value = next(tx.scan(b"x", b"y"))
        tx.put(key, encode(replace(decode_extent(value), references=5)))
        key, _ = next(tx.scan(b"c", b"d"))
        tx.put(key, b"damaged")
        tx.put(b"?", b"")

    engine = factory_of(StoreKind.EMBEDDED, store).open_engine(wall_clock)
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
    engine = factory_of(StoreKind.EMBEDDED, store).open_engine(wall_clock)
    await engine.run(lambda tx: store_format.save(tx, StoreFormat(FORMAT + 1)))
    await engine.close()


def test_a_store_in_use(tmp_path: Path) -> None:
    with ServerProcess("--workers", "1", location=tmp_path):
        code, _, err = verify(tmp_path)
    assert (code, err) == (1, f"kyanite: The store {tmp_path} is in use by another Kyanite server.\n")
