"""The table of operations that name a second resource, through the server: what opens it, and what does not."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareSasPermissions,
    generate_file_sas,
    generate_share_sas,
)

from tests.sdk.raw_http import Answer, fetch, signed_lite
from tests.server_process import ServerProcess
from tests.services.test_second_resources import BLOCK, DATA, ROWS, Row

NFS = {"x-ms-enabled-protocols": "NFS"}


def send(
    server: ServerProcess,
    service: str,
    method: str,
    target: str,
    headers: Mapping[str, str],
    data: bytes = b"",
) -> Answer:
    url = server.endpoints[service] + target
    signed = signed_lite(url, method, headers, account=server.account, key=server.account_key)
    return fetch(url, method, signed, data)


def furnish(server: ServerProcess) -> None:
    pages = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
    sized = {"x-ms-type": "file", "x-ms-content-length": "512"}
    send(server, "blob", "PUT", "/box?restype=container", {})
    send(server, "blob", "PUT", "/box/src", BLOCK, DATA)
    send(server, "blob", "PUT", "/box/log", {"x-ms-blob-type": "AppendBlob"})
    send(server, "blob", "PUT", "/box/pages", pages)
    send(server, "file", "PUT", "/box?restype=share", {})
    send(server, "file", "DELETE", "/box/dst", {})
    send(server, "file", "DELETE", "/box/dst?restype=directory", {})
    send(server, "file", "PUT", "/box/folder?restype=directory", {})
    send(server, "file", "PUT", "/box/into", sized)
    assert send(server, "file", "PUT", "/box/src", sized).status == 201


def token(server: ServerProcess, service: str, name: str, letters: str) -> str:
    """A token for a blob or file; for the whole share if there is no name."""
    account, key, expiry = server.account, server.account_key, datetime.now(UTC) + timedelta(hours=1)
    if service == "blob":
        allowed = BlobSasPermissions.from_string(letters)
        return str(
            generate_blob_sas(account, "box", name, account_key=key, permission=allowed, expiry=expiry)
        )
    if not name:
        whole = ShareSasPermissions.from_string(letters)
        return str(generate_share_sas(account, "box", key, permission=whole, expiry=expiry))
    single = FileSasPermissions.from_string(letters)
    return str(generate_file_sas(account, "box", [name], key, permission=single, expiry=expiry))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operation}, {row.source}")
def test_second_resources(server: ServerProcess, row: Row) -> None:
    _, name = row.source.split()
    service, target = row.target.split()
    right = name if row.takes_single else ""
    attempts = [
        ("", row.key_suffices),
        (token(server, row.service, right, row.letters), True),
        (token(server, row.service, right, "d"), False),
        (token(server, row.service, "other", "rwd"), False),
        *((token(server, row.service, right, letter), len(row.letters) == 1) for letter in row.letters),
    ]
    for given, expected in attempts:
        furnish(server)
        url = f"{server.endpoints[row.service]}/box/{name}?{given}"
        answer = send(server, service, "PUT", target, row.headers | {row.named_by: url})
        assert (answer.status < 300) == expected, (given, answer)
        assert expected or answer.code == "CannotVerifyCopySource"


def test_a_link_opens_no_other_file(server: ServerProcess) -> None:
    send(server, "file", "PUT", "/linked?restype=share", NFS)
    sized = {"x-ms-type": "file", "x-ms-content-length": "3"}
    assert send(server, "file", "PUT", "/linked/secret", sized).status == 201
    single = generate_file_sas(
        server.account,
        "linked",
        ["mine"],
        server.account_key,
        permission=FileSasPermissions.from_string("rcwd"),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    target = {"x-ms-file-target-file": "secret", "x-ms-version": "2025-05-05"}
    url = f"{server.endpoints['file']}/linked/mine"
    refused = fetch(f"{url}?restype=hardlink&{single}", "PUT", target)
    assert (refused.status, refused.code) == (403, "AuthenticationFailed")
    assert fetch(f"{url}?{single}").status == 404
    assert send(server, "file", "PUT", "/linked/mine?restype=hardlink", target).status == 201
