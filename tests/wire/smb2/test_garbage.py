"""Any bytes give a value or Malformed; no decoder raises anything else."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire import ntlm, ntlm_keys, spnego
from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import (
    change_notify,
    close,
    compound,
    create,
    create_contexts,
    frame,
    fsctl,
    header,
    ioctl,
    lock,
    negotiate,
    negotiate_contexts,
    oplock_break,
    query_directory,
    read_write,
    rpc,
    session,
    srvsvc,
    transform,
    tree,
)
from kyanite.wire.smb2.ciphers import EncryptionKey, SigningKey
from kyanite.wire.smb2.crypto import CipherId, SigningAlgorithm
from kyanite.wire.smb2.info import changes, messages, security
from kyanite.wire.smb2.status import Status
from tests.wire.smb2 import recorded_logon

CODES = Status.__members__

BODIES: list[tuple[int, Callable[[memoryview], object]]] = [
    (36, negotiate.decode),
    (25, session.decode_setup),
    (4, session.decode_empty),
    (9, tree.decode_connect),
    (57, create.decode),
    (24, close.decode_close),
    (24, close.decode_flush),
    (49, read_write.decode_read),
    (49, read_write.decode_write),
    (48, lock.decode),
    (57, ioctl.decode),
    (33, query_directory.decode),
    (32, change_notify.decode),
    (41, messages.decode_query),
    (33, messages.decode_set),
    (24, oplock_break.decode),
    (36, oplock_break.decode),
]
"""The StructureSize of each request and what decodes it."""

KEY = bytes(16)
PARTS: list[Callable[[memoryview], object]] = [
    lambda data: frame.decode_prefix(data, 1 << 20),
    frame.kind_of,
    frame.decode_smb1_negotiate,
    lambda data: frame.decode_smb1_negotiate(b"\xffSMB\x72" + bytes(27) + data),
    header.decode,
    transform.decode,
    compound.split,
    lambda data: negotiate_contexts.decode(data, 5),
    create_contexts.decode,
    fsctl.decode_validate_negotiate,
    fsctl.decode_copy_chunks,
    fsctl.decode_zero_data,
    fsctl.decode_allocated_ranges,
    fsctl.decode_set_sparse,
    changes.decode_basic,
    lambda data: changes.decode_rename(10, data),
    lambda data: changes.decode_rename(65, data),
    lambda data: changes.decode_disposition(13, data),
    lambda data: changes.decode_disposition(64, data),
    changes.decode_size,
    changes.decode_mode,
    lambda data: security.select(data, 0xF),
    rpc.decode,
    srvsvc.decode_share_enum,
    srvsvc.decode_share_get_info,
    spnego.decode,
    lambda data: ntlm.decode_negotiate(bytes(data)),
    lambda data: ntlm.decode_authenticate(bytes(data)),
    lambda data: ntlm.decode_av_pairs(bytes(data)),
]


def check(decode: Callable[[memoryview], object], data: bytes) -> None:
    code = "SUCCESS"
    try:
        decode(memoryview(data))
    except Malformed as malformed:
        code = malformed.code
    assert code in CODES


SMALL = st.sampled_from([0, 1, 2, 4, 8, 16, 24, 56, 64, 72, 88, 96, 104, 112, 120, 128, 0xFFFF, 0xFFFFFFFF])
LIKELY = st.lists(
    st.one_of(
        st.binary(max_size=8),
        SMALL.map(lambda number: number.to_bytes(4, "little")),
        SMALL.map(lambda number: (number & 0xFFFF).to_bytes(2, "little")),
        st.sampled_from([b"MxAc", b"RqLs", b"DH2Q", b"a\0b\0", b"\x11\x03", bytes(8)]),
    ),
    max_size=24,
).map(b"".join)


@pytest.mark.parametrize(("size", "decode"), BODIES)
@given(rest=st.one_of(st.binary(max_size=200), LIKELY))
def test_bodies(size: int, decode: Callable[[memoryview], object], rest: bytes) -> None:
    check(decode, bytes(64) + size.to_bytes(2, "little") + rest)


@pytest.mark.parametrize("decode", [decode for _, decode in BODIES] + PARTS)
@given(data=st.one_of(st.binary(max_size=200), LIKELY))
def test_anything(decode: Callable[[memoryview], object], data: bytes) -> None:
    check(decode, data)


CAPTURED: list[tuple[Callable[[memoryview], object], bytes]] = [
    (negotiate.decode, recorded_logon.NEGOTIATE_REQUEST),
    (session.decode_setup, recorded_logon.FIRST_SETUP_REQUEST),
    (session.decode_setup, recorded_logon.LAST_SETUP_REQUEST),
    (tree.decode_connect, recorded_logon.TREE_CONNECT_REQUEST),
    (compound.split, recorded_logon.TREE_CONNECT_REQUEST),
    (spnego.decode, recorded_logon.FIRST_SETUP_REQUEST[88:]),
    (spnego.decode, recorded_logon.LAST_SETUP_REQUEST[88:]),
    (
        lambda data: ntlm.decode_authenticate(bytes(data)),
        recorded_logon.LAST_SETUP_REQUEST[recorded_logon.LAST_SETUP_REQUEST.index(b"NTLMSSP") :],
    ),
]


@pytest.mark.parametrize(("decode", "captured"), CAPTURED)
@given(data=st.data())
def test_captured_messages_with_changed_bytes(
    decode: Callable[[memoryview], object], captured: bytes, data: st.DataObject
) -> None:
    changed = bytearray(captured)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(
            st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])
        )
    check(decode, bytes(changed))


@pytest.mark.parametrize(("decode", "captured"), CAPTURED)
def test_captured_messages_cut_short(decode: Callable[[memoryview], object], captured: bytes) -> None:
    for length in range(len(captured)):
        check(decode, captured[:length])


@given(st.binary(max_size=200), st.binary(min_size=8, max_size=8))
def test_logons(response: bytes, challenge: bytes) -> None:
    message = ntlm.Authenticate(b"", bytes(16) + b"\1\1" + response, "", "u", "", b"", 0xFFFFFFFF, None)
    messages_ = ntlm_keys.LogonMessages(b"", b"", b"", challenge)
    assert ntlm_keys.session_key(messages_, message, bytes(16)) is None


@pytest.mark.parametrize("cipher", CipherId)
@given(st.binary(min_size=52, max_size=200))
def test_encrypted_messages(cipher: CipherId, data: bytes) -> None:
    key = EncryptionKey(cipher, KEY * (2 if cipher >= CipherId.AES_256_CCM else 1))
    message = bytearray(data)
    message[:4], message[42:44] = b"\xfdSMB", b"\1\0"
    message[36:40] = (len(message) - 52).to_bytes(4, "little")
    with pytest.raises(Malformed):
        key.decrypt(transform.decode(message), memoryview(message))


@pytest.mark.parametrize("algorithm", SigningAlgorithm)
@given(st.binary(min_size=60, max_size=200))
def test_signed_messages(algorithm: SigningAlgorithm, data: bytes) -> None:
    message = b"\xfeSMB\x40\0" + data
    assert not SigningKey(algorithm, KEY).is_signed(header.decode(message), memoryview(message))
