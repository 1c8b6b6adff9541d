"""Numbers of more digits than Python converts, wherever a request may have one: refused, and no failure."""

import base64
from urllib.parse import quote

import pytest

from tests.services.files.builders import make
from tests.services.harness import Harness
from tests.services.queue import requests as of_queue
from tests.services.table import requests as of_table

LONG = "9" * 5000
BLOB = {"x-ms-blob-type": "BlockBlob"}
PAGE = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("PUT", "/box/new", PAGE | {"x-ms-blob-content-length": LONG}),
        ("PUT", "/box/new", PAGE | {"x-ms-blob-sequence-number": LONG}),
        ("PUT", "/box/page?comp=properties", {"x-ms-blob-content-length": LONG}),
        ("PUT", "/box/page?comp=seal", {"x-ms-blob-condition-appendpos": f"-{LONG}"}),
        ("PUT", "/box/page?comp=lease", {"x-ms-lease-action": "acquire", "x-ms-lease-duration": LONG}),
        ("GET", f"/box/page?comp=pagelist&maxresults=-{LONG}", {}),
        ("GET", f"/box?restype=container&comp=list&marker=1!{LONG}", {}),
        ("GET", f"/box?restype=container&comp=list&maxresults={LONG}", {}),
        ("GET", f"/box/page?timeout=-{LONG}", {}),
    ],
)
async def test_blobs(blobs: Harness, method: str, target: str, headers: dict[str, str]) -> None:
    await blobs("PUT", "/box?restype=container")
    assert (await blobs("PUT", "/box/page", PAGE)).status == 201
    assert (await blobs(method, target, headers)).status == 400


async def test_the_marker_of_page_ranges_may_be_behind_the_end(blobs: Harness) -> None:
    await blobs("PUT", "/box?restype=container")
    assert (await blobs("PUT", "/box/page", PAGE)).status == 201
    for number in (LONG, str(2**64)):
        answer = await blobs("GET", f"/box/page?comp=pagelist&marker={number}&maxresults={number}")
        assert (answer.status, answer.code) == (416, "InvalidRange")


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("PUT", "/box/new", {"x-ms-type": "file", "x-ms-content-length": LONG}),
        ("PUT", "/box/new", {"x-ms-type": "file", "x-ms-content-length": f"-{LONG}"}),
        ("PUT", "/box/f?comp=properties", {"x-ms-content-length": LONG}),
        ("PUT", "/box?restype=share&comp=properties", {"x-ms-share-quota": LONG}),
        ("PUT", "/box?restype=share&comp=properties", {"x-ms-share-provisioned-iops": LONG}),
        ("PUT", "/box/f?comp=properties", {"x-ms-file-permission-key": f"{LONG}*{LONG}"}),
        ("GET", f"/box/f?comp=rangelist&maxresults=-{LONG}", {}),
        ("GET", f"/box?comp=listhandles&marker={LONG}", {}),
    ],
)
async def test_files(files: Harness, method: str, target: str, headers: dict[str, str]) -> None:
    await make(files)
    assert (await files(method, target, headers)).status == 400


async def test_the_marker_of_ranges_may_be_behind_the_end(files: Harness) -> None:
    await make(files, data=b"x" * 1000)
    for number in (LONG, str(2**64)):
        answer = await files("GET", f"/box/f?comp=rangelist&marker={number}&maxresults={number}")
        assert answer.status == 200, answer.code
        assert answer.xml.find("Range") is None


async def test_a_marker_of_shares(files: Harness) -> None:
    """Markers come from the server, but a client may send any."""
    await make(files)
    for position in (LONG, str(2**64), "x"):
        marker = of_marker(f"box\0{position}")
        assert (await files("GET", f"/?comp=list&marker={marker}&include=deleted")).status == 400


async def test_queues_and_tables(queues: Harness, tables: Harness) -> None:
    await of_queue.create(queues)
    await of_table.create(tables)
    for name in ("numofmessages", "visibilitytimeout"):
        assert (await queues("GET", f"/work/messages?{name}={LONG}")).status == 400
    for wanted in (f"Number eq {LONG}", f"Number eq {LONG}L", f"Number eq {LONG}.5"):
        answer = await tables("GET", f"/things()?$filter={quote(wanted)}", of_table.JSON)
        assert answer.status in {200, 400}
    assert (await tables("GET", f"/things()?$top={LONG}", of_table.JSON)).status == 400
    for value, edm_type in ((LONG, "Edm.Int32"), (LONG, "Edm.Int64"), (LONG, "Edm.DateTime")):
        body = f'{{"PartitionKey":"p","RowKey":"r","N":"{value}","N@odata.type":"{edm_type}"}}'.encode()
        assert (await tables("POST", "/things", of_table.JSON, body)).status == 400
    body = f'{{"PartitionKey":"p","RowKey":"r","N":{LONG}}}'.encode()
    assert (await tables("POST", "/things", of_table.JSON, body)).status == 400


def of_marker(name: str) -> str:
    return "1!" + base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")
