"""One flipped byte on the disk of a real server: an error or a reset connection, never a wrong byte."""

import http.client
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.damaged import flip, segment_files
from tests.faults.client import token_of
from tests.server_process import ServerProcess, eventually
from tests.stores.recorded import Client, load, unpack
from tests.stores.test_golden_stores import STORES, differences

KIB = 1024
MIB = 1024 * KIB
BLOCK_BYTES = 256 * KIB
SIZE = 70 * MIB
"""More than one extent."""
BYTES = random.Random(12).randbytes(SIZE)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    options = ("--workers", "1", "--admin-port", "0")
    with ServerProcess(*options, location=tmp_path / "store") as started:
        yield started


def request(
    server: ServerProcess, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes]:
    """The status and the body, which is not whole if the server has reset the connection."""
    parts = urlsplit(server.endpoints["blob"])
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
        joint = "&" if "?" in path else "?"
        connection.request(method, f"{parts.path}{path}{joint}{token_of(server)}", body, sent)
        response = connection.getresponse()
        received = bytearray()
        try:
            while piece := response.read(64 * KIB):
                received += piece
        except (ConnectionError, http.client.IncompleteRead):
            assert response.length, "It says that more was to come."
        return response.status, bytes(received)


@pytest.mark.parametrize(
    "at", [100, 34 * MIB, 65 * MIB, SIZE - 64], ids=["first", "middle", "second", "last"]
)
def test_a_flipped_byte_is_never_part_of_a_whole_response(
    server: ServerProcess, tmp_path: Path, at: int
) -> None:
    request(server, "PUT", "/box?restype=container")
    assert request(server, "PUT", "/box/b", BYTES, x_ms_blob_type="BlockBlob")[0] == 201
    flip(tmp_path, BYTES[at : at + 64])
    for _ in range(2):
        status, received = request(server, "GET", "/box/b")
        if at < BLOCK_BYTES:
            assert status == 500
            assert b"damaged" in received
        else:
            assert status == 200
            assert len(received) <= at
            assert received == BYTES[: len(received)]
    start = at // BLOCK_BYTES * BLOCK_BYTES
    assert request(server, "GET", "/box/b", x_ms_range=f"bytes={start}-{start + 9}")[0] == 500
    beside = start + BLOCK_BYTES if at < BLOCK_BYTES else start - 10
    expected = 206, BYTES[beside : beside + 10]
    assert request(server, "GET", "/box/b", x_ms_range=f"bytes={beside}-{beside + 9}") == expected
    lines = [line for line in server.log if line["level"] == "error"]
    assert [line["message"] for line in lines] == ["damaged"], "One line for one block."
    assert "of extent" in str(lines[0]["damage"])
    assert lines[0]["path"] == "/devstoreaccount1/box/b"
    eventually(lambda: b"\nkyanite_damaged_reads_total 3\n" in metrics(server))


@pytest.mark.parametrize(("minutes", "status"), [("0", 500), ("10", 200)])
def test_how_long_bytes_count_as_checked_is_an_option(tmp_path: Path, minutes: str, status: int) -> None:
    options = ("--workers", "1", "--recheck-minutes", minutes)
    with ServerProcess(*options, location=tmp_path) as server:
        request(server, "PUT", "/box?restype=container")
        request(server, "PUT", "/box/b", BYTES[:MIB], x_ms_blob_type="BlockBlob")
        assert request(server, "GET", "/box/b")[0] == 200
        flip(tmp_path, BYTES[:64])
        assert request(server, "GET", "/box/b")[0] == status


def metrics(server: ServerProcess) -> bytes:
    with closing(http.client.HTTPConnection(urlsplit(server.endpoints["admin"]).netloc, timeout=60)) as admin:
        admin.request("GET", "/metrics")
        return admin.getresponse().read()


@pytest.mark.parametrize("archive", STORES, ids=lambda path: path.name)
def test_a_store_of_an_earlier_version_is_checked_too(archive: Path, tmp_path: Path) -> None:
    """Every answer is as it was, or says that something is damaged."""
    unpack(archive, tmp_path)
    for path in segment_files(tmp_path):
        with path.open("r+b") as file:
            data = bytearray(file.read())
            for at in range(1000, len(data), 50_000):
                data[at] ^= 0xFF
            file.seek(0)
            file.write(data)
    recording = load(archive.with_name(archive.name.replace(".tar.xz", ".json.xz")))
    long = [each for each in recording.reads if each.request.method == "GET"]
    with ServerProcess(*recording.server_options(), location=tmp_path) as server:
        damaged = 0
        for each in long:
            with Client(server.endpoints, recording.accounts) as client:
                try:
                    different = differences(client, [each])
                except (ConnectionError, http.client.IncompleteRead):
                    damaged += 1
                    continue
            if different:
                assert "because it is damaged on the server" in different[0]
                damaged += 1
        assert damaged
        assert {line["message"] for line in server.log if line["level"] == "error"} == {"damaged"}
