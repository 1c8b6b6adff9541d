"""What the server does for SMB beside files: encryption on demand, metrics, logs, garbage, and how it stops."""

import json
import os
import socket
import struct
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.storage.fileshare import (
    ShareProtocolSettings,
    ShareServiceClient,
    ShareSmbSettings,
    SmbEncryptionInTransit,
)
from smbprotocol.exceptions import SMBException

from tests.server_process import ServerProcess, eventually
from tests.smb.messages import connected
from tests.smb.shares import KyaniteShare
from tests.smb.smbclient import SmbClient, SmbClientFailed

CREATE = 2
DELETE_ON_CLOSE = 0x1000
PLAIN = ("--client-protection=sign",)
ENCRYPTED = ("--client-protection=encrypt",)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--workers", "2", "--admin-port", "0", "--log-requests", location=tmp_path) as started:
        yield started


def require_encryption(server: ServerProcess, is_required: bool) -> None:
    service = ShareServiceClient(server.endpoints["file"], credential=server.account_key)
    smb = ShareSmbSettings(encryption_in_transit=SmbEncryptionInTransit(required=is_required))
    service.set_service_properties(protocol=ShareProtocolSettings(smb=smb))


@pytest.mark.parametrize("dialect", ["3.0", "3.1.1"])
def test_encryption_is_required_by_a_property(
    own_server: ServerProcess, tmp_path: Path, dialect: str
) -> None:
    share = KyaniteShare(own_server, "share")
    client = SmbClient(share, tmp_path)
    client("ls", dialect="2.1", options=PLAIN)
    require_encryption(own_server, True)
    client("ls", dialect=dialect, options=ENCRYPTED)
    # A client that does not insist on encryption learns from the session that it has to encrypt.
    client("ls", dialect=dialect, options=PLAIN)
    with pytest.raises(SmbClientFailed, match="NT_STATUS_ACCESS_DENIED"):
        client("ls", dialect="2.1", options=PLAIN)
    require_encryption(own_server, False)
    client("ls", dialect="2.1", options=PLAIN)


def test_encryption_is_required_by_an_option(tmp_path: Path) -> None:
    with ServerProcess("--in-memory", "--smb-encryption", "required") as server:
        client = SmbClient(KyaniteShare(server, "share"), tmp_path)
        client("ls", options=PLAIN)
        with pytest.raises(SmbClientFailed, match="NT_STATUS_ACCESS_DENIED"):
            client("ls", dialect="2.1", options=PLAIN)


def test_requests_are_counted_and_logged(own_server: ServerProcess, tmp_path: Path) -> None:
    SmbClient(KyaniteShare(own_server, "share"), tmp_path)("ls")

    def is_counted() -> bool:
        with urllib.request.urlopen(own_server.endpoints["admin"] + "/metrics") as response:
            text: str = response.read().decode()
        return 'service="smb",operation="TREE_CONNECT",status="SUCCESS"' in text

    eventually(is_counted)
    logged = [line for line in own_server.log if line.get("service") == "smb"]
    operations = {line["operation"] for line in logged}
    assert {"NEGOTIATE", "SESSION_SETUP", "TREE_CONNECT", "CREATE", "QUERY_DIRECTORY"} <= operations
    assert {line["account"] for line in logged} == {"", own_server.account}
    assert own_server.account_key not in json.dumps(own_server.log)


def test_a_stop_closes_what_is_open(own_server: ServerProcess) -> None:
    share = KyaniteShare(own_server, "share")
    share.put("kept.txt", b"kept")
    with connected(share.login, share.name) as client:
        client.create("kept.txt", sharing=0)
        client.create("gone.txt", disposition=CREATE, options=DELETE_ON_CLOSE)
        assert share.names() == ["gone.txt", "kept.txt"]
        assert own_server.stop() == 0
        with pytest.raises((SMBException, OSError)):
            client.create("kept.txt")
    own_server.start()
    again = KyaniteShare(own_server, "other")
    service = ShareServiceClient(own_server.endpoints["file"], credential=own_server.account_key)
    kept = service.get_share_client("share")
    assert [entry.name for entry in kept.list_directories_and_files()] == ["kept.txt"]
    kept.get_file_client("kept.txt").delete_file()
    assert again.names() == []


GARBAGE = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": b"\x16\x03\x01\x00\xa5" + bytes(165),
    "NetBIOS session request": b"\x81\0\0\x44" + bytes(68),
    "an endless message": struct.pack(">I", 0xFFFFFF) + bytes(1000),
    "an SMB1 request": b"\0\0\0\x23\xffSMB\x75" + bytes(30),
    "noise": os.urandom(3000),
    "a message of zeros": struct.pack(">I", 100) + bytes(100),
    "an encrypted message": struct.pack(">I", 120) + b"\xfdSMB" + bytes(116),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_ends_its_connection_only(server: ServerProcess, share: KyaniteShare, what: str) -> None:
    address = urlsplit(server.endpoints["smb"])
    with socket.create_connection((address.hostname, address.port), timeout=20) as garbage:
        garbage.sendall(GARBAGE[what])
        with suppress(ConnectionResetError):
            assert garbage.recv(1000) == b""
    with connected(share.login, share.name) as client:
        client.create("file", disposition=CREATE)
