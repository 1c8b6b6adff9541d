"""SESSION_SETUP, TREE_CONNECT and the messages without contents."""

import struct

import pytest
from smbprotocol.connection import SMB2CancelRequest, SMB2Echo
from smbprotocol.session import SMB2Logoff, SMB2SessionSetupRequest, SMB2SessionSetupResponse
from smbprotocol.structure import Structure
from smbprotocol.tree import SMB2TreeConnectRequest, SMB2TreeConnectResponse, SMB2TreeDisconnect

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import session, tree
from kyanite.wire.smb2.tree import ShareType, TreeConnectResponse
from tests.wire.smb2 import oracle, recorded_logon


def test_a_session_setup_of_the_oracle() -> None:
    message = oracle.request(
        SMB2SessionSetupRequest,
        flags=1,
        security_mode=2,
        capabilities=1,
        previous_session_id=77,
        buffer=b"token",
    )
    found = session.decode_setup(message)
    assert found == (1, 2, 1, 77, memoryview(b"token"))


def test_the_session_setup_of_smbclient() -> None:
    found = session.decode_setup(memoryview(recorded_logon.FIRST_SETUP_REQUEST))
    assert (found.flags, found.security_mode, found.previous_session_id) == (0, 1, 0)
    assert bytes(found.token) == recorded_logon.FIRST_SETUP_REQUEST[88:]


def setup(size: int = 25, at: int = 88, length: int = 3, token: bytes = b"abc") -> memoryview:
    return memoryview(bytes(64) + struct.pack("<HBBIIHHQ", size, 0, 0, 0, 0, at, length, 0) + token)


@pytest.mark.parametrize(
    "message",
    [
        setup(size=24),
        setup(at=87),
        setup(at=89),
        setup(length=4),
        setup(length=0, token=b""),
        setup()[:70],
        setup()[:64],
    ],
)
def test_malformed_session_setups(message: memoryview) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        session.decode_setup(message)


def test_a_setup_response() -> None:
    token = recorded_logon.FIRST_SETUP_RESPONSE[72:]
    assert session.encode_setup(0, token) == recorded_logon.FIRST_SETUP_RESPONSE[64:]
    fields = oracle.read(SMB2SessionSetupResponse, session.encode_setup(session.SESSION_ENCRYPT_DATA, token))
    assert fields["session_flags"] == 4
    assert fields["buffer"] == token


@pytest.mark.parametrize("structure", [SMB2Logoff, SMB2TreeDisconnect, SMB2Echo, SMB2CancelRequest])
def test_messages_without_contents(structure: type[Structure]) -> None:
    session.decode_empty(oracle.request(structure))
    oracle.read(structure, session.EMPTY)


@pytest.mark.parametrize("body", ["", "04", "0400", "040000", "05000000", "00000000"])
def test_malformed_messages_without_contents(body: str) -> None:
    with pytest.raises(Malformed, match="INVALID_PARAMETER"):
        session.decode_empty(memoryview(bytes(64) + bytes.fromhex(body)))


def test_a_tree_connect_of_the_oracle() -> None:
    path = "\\\\server\\Größe"
    message = oracle.request(SMB2TreeConnectRequest, buffer=path.encode("utf-16-le"))
    found = tree.decode_connect(message)
    assert found == (0, path)
    assert found.share == "Größe"


def test_the_tree_connect_of_smbclient() -> None:
    assert tree.decode_connect(memoryview(recorded_logon.TREE_CONNECT_REQUEST)).share == "IPC$"


def connect(
    size: int = 9, flags: int = 0, at: int = 72, length: int = 4, path: str = "61006200"
) -> memoryview:
    return memoryview(bytes(64) + struct.pack("<HHHH", size, flags, at, length) + bytes.fromhex(path))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (connect(size=8), "INVALID_PARAMETER"),
        (connect(flags=4), "INVALID_PARAMETER"),
        (connect(at=74), "INVALID_PARAMETER"),
        (connect(length=6), "INVALID_PARAMETER"),
        (connect(length=3), "INVALID_PARAMETER"),
        (connect(length=0, path=""), "INVALID_PARAMETER"),
        (connect(path="00d86100"), "ILLEGAL_CHARACTER"),
    ],
)
def test_malformed_tree_connects(message: memoryview, code: str) -> None:
    with pytest.raises(Malformed, match=code):
        tree.decode_connect(message)


def test_a_tree_response() -> None:
    response = TreeConnectResponse(
        ShareType.DISK, 0x001F01FF, tree.SHARE_ENCRYPT_DATA, tree.CAPABILITY_CONTINUOUS_AVAILABILITY
    )
    fields = oracle.read(SMB2TreeConnectResponse, tree.encode_connect(response))
    assert fields == {
        "structure_size": 16,
        "share_type": 1,
        "reserved": 0,
        "share_flags": 0x8000,
        "capabilities": 0x10,
        "maximal_access": 0x001F01FF,
    }
