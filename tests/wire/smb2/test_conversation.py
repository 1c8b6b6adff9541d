"""A real client, smbprotocol, talks to a server made of the codecs: it checks hashes, keys, signatures and layouts."""

import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from smbprotocol import Dialects
from smbprotocol.connection import Ciphers, Connection, SigningAlgorithms
from smbprotocol.create_contexts import CreateContextName, SMB2CreateContextRequest
from smbprotocol.exceptions import LogonFailure
from smbprotocol.file_info import FileInformationClass
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
    ShareAccess,
)
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

from kyanite.wire.smb2.frame import Kind
from tests.wire.smb2.toy_server import ToyServer

PASSWORD = "cGFzc3dvcmQ="
DATA = bytes(range(256)) * 1024


@contextmanager
def connected(**how: Any) -> Iterator[tuple[ToyServer, Connection]]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = ToyServer(PASSWORD)
    thread = threading.Thread(target=lambda: server.serve(listener.accept()[0]), daemon=True)
    thread.start()
    connection = Connection(uuid.UUID(int=5), "127.0.0.1", listener.getsockname()[1], require_signing=True)
    try:
        connection.connect(timeout=20, **how)
        yield server, connection
    finally:
        connection.disconnect(close=False)
        thread.join(20)
        listener.close()


CASES = [
    ("2.1, HMAC-SHA256", {"dialect": Dialects.SMB_2_1_0}, False),
    ("3.0, CMAC", {"dialect": Dialects.SMB_3_0_0}, False),
    ("3.0.2, AES-128-CCM", {"dialect": Dialects.SMB_3_0_2}, True),
    (
        "3.1.1, CMAC",
        {"dialect": Dialects.SMB_3_1_1, "preferred_signing_algos": [SigningAlgorithms.AES_CMAC]},
        False,
    ),
    (
        "3.1.1, HMAC-SHA256",
        {"dialect": Dialects.SMB_3_1_1, "preferred_signing_algos": [SigningAlgorithms.HMAC_SHA256]},
        False,
    ),
    (
        "3.1.1, GMAC",
        {"dialect": Dialects.SMB_3_1_1, "preferred_signing_algos": [SigningAlgorithms.AES_GMAC]},
        False,
    ),
    *(
        (f"3.1.1, {name}", {"dialect": Dialects.SMB_3_1_1, "preferred_encryption_algos": [cipher]}, True)
        for name, cipher in {
            "AES-128-CCM": Ciphers.AES_128_CCM,
            "AES-128-GCM": Ciphers.AES_128_GCM,
            "AES-256-CCM": Ciphers.AES_256_CCM,
            "AES-256-GCM": Ciphers.AES_256_GCM,
        }.items()
    ),
]


@pytest.mark.parametrize(("how", "encrypts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_file_is_written_and_read(how: dict[str, Any], encrypts: bool) -> None:
    with connected(**how) as (server, connection):
        # "ntlm" is NTLMSSP without SPNEGO.
        protocol = "negotiate" if encrypts else "ntlm"
        session = Session(
            connection, "account", PASSWORD, require_encryption=encrypts, auth_protocol=protocol
        )
        session.connect()
        tree = TreeConnect(session, "\\\\127.0.0.1\\share")
        tree.connect()
        opened = Open(tree, "file")
        contexts = opened.create(
            ImpersonationLevel.Impersonation,
            FilePipePrinterAccessMask.GENERIC_ALL,
            0,
            ShareAccess.FILE_SHARE_READ,
            CreateDisposition.FILE_OPEN_IF,
            CreateOptions.FILE_NON_DIRECTORY_FILE,
            [_maximal_access()],
        )
        assert contexts[0]["maximal_access"].get_value() == 0x001F01FF
        assert opened.write(DATA, 0) == len(DATA)
        opened.flush()
        assert server.content == DATA
        assert opened.read(5, 100) == DATA[5:105]
        assert opened.read(0, len(DATA)) == DATA
        listed = opened.query_directory("*", FileInformationClass.FILE_ID_BOTH_DIRECTORY_INFORMATION)
        assert [each["file_name"].get_value().decode("utf-16-le") for each in listed] == ["file", "other"]
        opened.close(get_attributes=True)
        assert opened.end_of_file == len(DATA)
        tree.disconnect()
        session.disconnect(close=False)
        assert (Kind.ENCRYPTED in server.kinds) is encrypts


def _maximal_access() -> SMB2CreateContextRequest:
    context = SMB2CreateContextRequest()
    context["buffer_name"] = CreateContextName.SMB2_CREATE_QUERY_MAXIMAL_ACCESS_REQUEST
    return context


def test_a_wrong_password() -> None:
    with connected(dialect=Dialects.SMB_3_1_1) as (_, connection):
        session = Session(connection, "account", PASSWORD[:-1], auth_protocol="ntlm")
        with pytest.raises(LogonFailure):
            session.connect()


def test_a_compound() -> None:
    with connected(dialect=Dialects.SMB_3_1_1) as (server, connection):
        session = Session(connection, "account", PASSWORD, auth_protocol="negotiate")
        session.connect()
        tree = TreeConnect(session, "\\\\127.0.0.1\\share")
        tree.connect()
        server.content += b"hello"
        opened = Open(tree, "file")
        sent = [
            opened.create(
                ImpersonationLevel.Impersonation,
                FilePipePrinterAccessMask.GENERIC_READ,
                0,
                ShareAccess.FILE_SHARE_READ,
                CreateDisposition.FILE_OPEN,
                CreateOptions.FILE_NON_DIRECTORY_FILE,
                send=False,
            ),
            opened.read(0, 5, send=False),
            opened.close(False, send=False),
        ]
        requests = connection.send_compound(
            [each[0] for each in sent], session.session_id, tree.tree_connect_id, related=True
        )
        sent[0][1](requests[0])
        assert sent[1][1](requests[1]) == b"hello"
        sent[2][1](requests[2])
