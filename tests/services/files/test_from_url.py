"""Put Range From URL: bytes of a file or blob of this server, with what the request says of them."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from azure.storage.fileshare import FileSasPermissions, generate_file_sas

from kyanite.services.blob.service import blob_service
from kyanite.wire import crc64
from tests.services.files.builders import ACQUIRE, ID, make
from tests.services.harness import ACCOUNT, Answer, Harness

HERE = "http://localhost:10000/acme"
KEY = base64.b64encode(ACCOUNT.keys[0]).decode()
RIGHT, WRONG = (crc64.encode(crc64.compute(data)) for data in (b"2345", b"2346"))
WRITTEN_AT = "x-ms-file-last-write-time"


def later(files: Harness) -> datetime:
    return datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=files.clock.now // 10, hours=1)


def token(files: Harness, name: str = "source", permission: str = "r") -> str:
    allowed = FileSasPermissions.from_string(permission)
    return str(generate_file_sas("acme", "box", [name], KEY, permission=allowed, expiry=later(files)))


async def fill(files: Harness, headers: dict[str, str] | None = None) -> Answer:
    """Put bytes 2 to 5 of the source at the beginning of the target."""
    sent = {
        "x-ms-write": "update",
        "x-ms-range": "bytes=0-3",
        "x-ms-source-range": "bytes=2-5",
        "x-ms-copy-source": f"{HERE}/box/source?{token(files)}",
    }
    return await files("PUT", "/box/target?comp=range", sent | (headers or {}))


async def make_both(files: Harness) -> None:
    await make(files, "source", b"0123456789")
    await make(files, "target", b"x" * 10)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ms-source-content-crc64": RIGHT},
        {"x-ms-source-if-match-crc64": RIGHT},
        {"x-ms-source-if-none-match-crc64": WRONG},
    ],
)
async def test_bytes_come_with_their_checksum(files: Harness, headers: dict[str, str]) -> None:
    await make_both(files)
    filled = await fill(files, headers)
    assert (filled.status, filled.headers["x-ms-content-crc64"]) == (201, RIGHT)
    assert (await files("GET", "/box/target")).body == b"2345xxxxxx"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"x-ms-source-content-crc64": WRONG}, 400, "Crc64Mismatch"),
        ({"x-ms-source-content-crc64": "AA=="}, 400, "InvalidHeaderValue"),
        ({"x-ms-source-if-match-crc64": WRONG}, 412, "SourceConditionNotMet"),
        ({"x-ms-source-if-none-match-crc64": RIGHT}, 412, "SourceConditionNotMet"),
        ({"x-ms-source-range": "bytes=8-11"}, 400, "InvalidHeaderValue"),
        ({"x-ms-source-range": "bytes=0-4"}, 400, "InvalidHeaderValue"),
        ({"x-ms-source-range": "(absent)"}, 400, "MissingRequiredHeader"),
        ({"x-ms-range": "bytes=8-11"}, 416, "InvalidRange"),
        ({"x-ms-range": "(absent)"}, 400, "MissingRequiredHeader"),
        ({"x-ms-write": "clear"}, 400, "InvalidHeaderValue"),
        ({"x-ms-copy-source": f"{HERE}/box/source"}, 401, "CannotVerifyCopySource"),
        ({"x-ms-copy-source": "nowhere"}, 400, "InvalidHeaderValue"),
        ({"x-ms-lease-id": ID}, 412, "LeaseNotPresentWithFileOperation"),
    ],
)
async def test_what_does_not_fit_changes_nothing(
    files: Harness, headers: dict[str, str], status: int, code: str
) -> None:
    await make_both(files)
    refused = await fill(files, headers)
    assert (refused.status, refused.code) == (status, code)
    assert (await files("GET", "/box/target")).body == b"x" * 10


async def test_the_source_answers_for_itself(files: Harness) -> None:
    await make_both(files)
    for name, permission, status, code in (
        ("source", "w", 403, "AuthorizationPermissionMismatch"),
        ("missing", "r", 404, "CannotVerifyCopySource"),
    ):
        source = {"x-ms-copy-source": f"{HERE}/box/{name}?{token(files, name, permission)}"}
        refused = await fill(files, source)
        assert refused.status == status
        assert code in {refused.code, refused.headers.get("x-ms-copy-source-error-code")}


async def test_the_time_of_the_last_write_may_stay(files: Harness) -> None:
    await make_both(files)
    before = (await files("HEAD", "/box/target")).headers[WRITTEN_AT]
    assert (await fill(files, {WRITTEN_AT: "preserve"})).status == 201
    assert (await files("HEAD", "/box/target")).headers[WRITTEN_AT] == before
    filled = await fill(files, {WRITTEN_AT: "now"})
    found = await files("HEAD", "/box/target")
    assert found.headers[WRITTEN_AT] == filled.headers[WRITTEN_AT] > before


async def test_a_leased_target_needs_its_lease(files: Harness) -> None:
    await make_both(files)
    await files("PUT", "/box/target?comp=lease", ACQUIRE)
    assert (await fill(files)).code == "LeaseIdMissing"
    assert (await fill(files, {"x-ms-lease-id": ID})).status == 201


async def test_bytes_come_from_a_blob_as_well(files: Harness) -> None:
    await make_both(files)
    blobs = files.beside(blob_service, "blob")
    await blobs("PUT", "/bag?restype=container")
    await blobs("PUT", "/bag/b", {"x-ms-blob-type": "BlockBlob"}, b"abcdefghij")
    allowed = BlobSasPermissions(read=True)
    signed = generate_blob_sas("acme", "bag", "b", account_key=KEY, permission=allowed, expiry=later(files))
    address = f"http://acme.blob.localhost:10000/bag/b?{signed}"
    filled = await fill(files, {"x-ms-copy-source": address})
    assert filled.status == 201, filled.code
    assert (await files("GET", "/box/target")).body == b"cdefxxxxxx"
