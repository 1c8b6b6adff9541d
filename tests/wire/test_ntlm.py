"""NTLM against MS-NLMP §4.2, a captured logon, and pyspnego as a client."""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import pytest
import spnego as client_library
from hypothesis import given
from hypothesis import strategies as st
from spnego._ntlm_raw import crypto as oracle
from spnego._ntlm_raw import messages as oracle_messages
from spnego._ntlm_raw.md4 import md4

from kyanite.wire import ntlm, ntlm_keys, spnego
from kyanite.wire.malformed import Malformed
from kyanite.wire.ntlm import AvId
from kyanite.wire.ntlm_keys import LogonMessages
from tests.wire.smb2 import recorded_logon


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (b"a", "bde52cb31de33e46245e05fbdbd6fb24"),
        (b"abc", "a448017aaf21d8525fc10ae87aa6729d"),
        (b"message digest", "d9130a8164549fe818874806e1c7014b"),
        (b"abcdefghijklmnopqrstuvwxyz", "d79e1c308aa5bbcdeea8ed63df412da9"),
        (
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "043f8582f241db351ce627e153e7f0e4",
        ),
        (b"1234567890" * 8, "e33b4ddc9c38f2199c3e7b164fcc0536"),
    ],
)
def test_md4_of_rfc_1320(data: bytes, digest: str) -> None:
    assert ntlm_keys.md4(data).hex() == digest


@given(st.binary(max_size=300))
def test_md4_of_anything(data: bytes) -> None:
    assert ntlm_keys.md4(data) == md4(data)


@pytest.mark.parametrize(
    ("key", "data", "encrypted"),
    [
        (b"Key", b"Plaintext", "bbf316e8d940af0ad3"),
        (b"Wiki", b"pedia", "1021bf0420"),
        (b"Secret", b"Attack at dawn", "45a01f645fc35b383552544b9bf5"),
    ],
)
def test_rc4(key: bytes, data: bytes, encrypted: str) -> None:
    assert ntlm_keys.rc4(key, data).hex() == encrypted


class Logon(NamedTuple):
    messages: LogonMessages
    authenticate: ntlm.Authenticate
    mechanism_list: bytes


def captured() -> Logon:
    first = spnego.decode(recorded_logon.FIRST_SETUP_REQUEST[88:])
    answer = spnego.decode(recorded_logon.FIRST_SETUP_RESPONSE[72:])
    last = spnego.decode(recorded_logon.LAST_SETUP_REQUEST[88:])
    assert isinstance(first, spnego.NegTokenInit)
    assert isinstance(answer, spnego.NegTokenResp)
    assert isinstance(last, spnego.NegTokenResp)
    assert first.token is not None
    assert answer.token is not None
    assert last.token is not None
    messages = LogonMessages(first.token, answer.token, last.token, recorded_logon.SERVER_CHALLENGE)
    return Logon(messages, ntlm.decode_authenticate(last.token), first.mechanism_list)


CAPTURED = captured()


def test_the_messages_of_smbclient() -> None:
    assert ntlm.decode_negotiate(CAPTURED.messages.negotiate).flags == 0x62088215
    found = CAPTURED.authenticate
    assert (found.user, found.domain, found.workstation) == ("kyatest", "WORKGROUP", "VM")
    assert found.encrypted_session_key.hex() == "44324098071c06dcb93cdfdf64d103dc"
    assert found.mic == recorded_logon.NTLM_MIC


def test_the_challenge_of_smbd_is_written_alike() -> None:
    at = CAPTURED.messages.challenge.index(bytes.fromhex("07000800")) + 4
    now = int.from_bytes(CAPTURED.messages.challenge[at : at + 8], "little")
    info = ntlm.encode_target_info(
        computer="KYATEST", domain="KYATEST", dns_computer="vm", dns_domain="", now=now
    )
    written = ntlm.encode_challenge(
        flags=ntlm.challenge_flags(0x62088215),
        server_challenge=recorded_logon.SERVER_CHALLENGE,
        target_name="KYATEST",
        target_info=info,
    )
    assert written == CAPTURED.messages.challenge


def test_the_keys_of_smbclient() -> None:
    password_hash = ntlm_keys.nt_hash(recorded_logon.PASSWORD)
    assert password_hash == recorded_logon.NT_HASH
    assert ntlm_keys.response_key(password_hash, "kyatest", "WORKGROUP") == recorded_logon.RESPONSE_KEY
    key = ntlm_keys.session_key(CAPTURED.messages, CAPTURED.authenticate, password_hash)
    assert key == recorded_logon.EXPORTED_KEY
    flags = CAPTURED.authenticate.flags
    assert ntlm_keys.client_list_mic(key, flags, CAPTURED.mechanism_list) == recorded_logon.CLIENT_LIST_MIC
    assert ntlm_keys.server_list_mic(key, flags, CAPTURED.mechanism_list) == recorded_logon.SERVER_LIST_MIC


def test_the_vectors_of_the_document() -> None:
    """MS-NLMP §4.2.4."""
    key = ntlm_keys.response_key(ntlm_keys.nt_hash("Password"), "User", "Domain")
    assert key.hex() == "0c868a403bfd7a93a3001ef22ef02e3f"
    pairs = ntlm.encode_av_pairs([(2, "Domain".encode("utf-16-le")), (1, "Server".encode("utf-16-le"))])
    temporary = bytes.fromhex("0101000000000000") + bytes(8) + b"\xaa" * 8 + bytes(4) + pairs + bytes(4)
    proof = bytes.fromhex("68cd0ab851e51c96aabc927bebef6a1c")
    base_key = bytes.fromhex("8de40ccadbc14a82f15cb0ad0de95ca3")
    message = ntlm.Authenticate(
        b"", proof + temporary, "Domain", "User", "", b"", ntlm.NEGOTIATE_UNICODE, None
    )
    messages = LogonMessages(b"", b"", b"", bytes.fromhex("0123456789abcdef"))
    assert ntlm_keys.session_key(messages, message, ntlm_keys.nt_hash("Password")) == base_key
    encrypted = bytes.fromhex("c5dad2544fc9799094ce1ce90bc9d03e")
    assert ntlm_keys.rc4(base_key, b"\x55" * 16) == encrypted
    exchanged = message._replace(flags=ntlm.NEGOTIATE_KEY_EXCHANGE, encrypted_session_key=encrypted)
    assert ntlm_keys.session_key(messages, exchanged, ntlm_keys.nt_hash("Password")) == b"\x55" * 16


def _changed(response: bytes, at: int) -> bytes:
    return response[:at] + bytes([response[at] ^ 1]) + response[at + 1 :]


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message._replace(user=""),
        lambda message: message._replace(user="other"),
        lambda message: message._replace(domain="workgroup"),
        lambda message: message._replace(nt_response=b""),
        lambda message: message._replace(nt_response=message.nt_response[:24]),
        lambda message: message._replace(nt_response=message.nt_response[:43]),
        lambda message: message._replace(nt_response=_changed(message.nt_response, 0)),
        lambda message: message._replace(nt_response=_changed(message.nt_response, 16)),
        lambda message: message._replace(nt_response=_changed(message.nt_response, 100)),
        lambda message: message._replace(encrypted_session_key=b""),
        lambda message: message._replace(encrypted_session_key=bytes(16)),
        lambda message: message._replace(mic=None),
        lambda message: message._replace(mic=bytes(16)),
    ],
)
def test_what_proves_nothing(change: Callable[[ntlm.Authenticate], ntlm.Authenticate]) -> None:
    assert (
        ntlm_keys.session_key(CAPTURED.messages, change(CAPTURED.authenticate), recorded_logon.NT_HASH)
        is None
    )


@pytest.mark.parametrize("field", ["negotiate", "challenge", "authenticate"])
def test_the_mic_covers_all_three_messages(field: str) -> None:
    changed = CAPTURED.messages._replace(**{field: getattr(CAPTURED.messages, field) + b"\0"})
    assert ntlm_keys.session_key(changed, CAPTURED.authenticate, recorded_logon.NT_HASH) is None


def test_a_name_counts_in_capitals() -> None:
    message = CAPTURED.authenticate._replace(user="KyaTest")
    assert (
        ntlm_keys.session_key(CAPTURED.messages, message, recorded_logon.NT_HASH)
        == recorded_logon.EXPORTED_KEY
    )


@pytest.mark.parametrize("password", ["pa55", "öäü€", "k" * 88])
def test_a_client_logs_on(password: str) -> None:
    """The whole exchange with pyspnego, in SPNEGO."""
    client = client_library.client("DOM\\Account", password, hostname="host", service="cifs", protocol="ntlm")
    first = client.step()
    assert first is not None
    requested = ntlm.decode_negotiate(first).flags
    info = ntlm.encode_target_info(computer="C", domain="D", dns_computer="c.d", dns_domain="d", now=1 << 56)
    challenge = ntlm.encode_challenge(
        flags=ntlm.challenge_flags(requested), server_challenge=b"8 bytes!", target_name="C", target_info=info
    )
    read = oracle_messages.Challenge.unpack(challenge)
    assert read.server_challenge == b"8 bytes!"
    assert read.target_name == "C"
    last = client.step(challenge)
    assert last is not None
    message = ntlm.decode_authenticate(last)
    assert (message.user, message.domain) == ("Account", "DOM")
    assert message.mic is not None
    messages = LogonMessages(first, challenge, last, b"8 bytes!")
    key = ntlm_keys.session_key(messages, message, ntlm_keys.nt_hash(password))
    assert key == client.session_key
    assert ntlm_keys.session_key(messages, message, ntlm_keys.nt_hash(password + "x")) is None
    mechanisms = b"a list"
    assert ntlm_keys.client_list_mic(key, message.flags, mechanisms) == client.sign(mechanisms)
    client.verify(mechanisms, ntlm_keys.server_list_mic(key, message.flags, mechanisms))


@pytest.mark.parametrize(
    ("flags", "seal_bytes"),
    [(ntlm.NEGOTIATE_KEY_EXCHANGE | ntlm.NEGOTIATE_56, 7), (ntlm.NEGOTIATE_KEY_EXCHANGE, 5), (0, None)],
)
def test_list_signatures_with_weaker_keys(flags: int, seal_bytes: int | None) -> None:
    key = bytes(range(16))
    sign_key = hashlib.md5(key + b"session key to client-to-server signing key magic constant\0").digest()
    checksum = oracle.hmac_md5(sign_key, bytes(4) + b"list")[:8]
    if seal_bytes is not None:
        magic = b"session key to client-to-server sealing key magic constant\0"
        checksum = ntlm_keys.rc4(hashlib.md5(key[:seal_bytes] + magic).digest(), checksum)
    assert ntlm_keys.client_list_mic(key, flags, b"list") == b"\1\0\0\0" + checksum + bytes(4)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"NTLMSSP\0\1\0\0\0",
        b"NTLMSSX\0\1\0\0\0\1\0\x08\0",
        b"NTLMSSP\0\2\0\0\0\1\0\x08\0",
        b"NTLMSSP\0\1\0\0\0\1\0\0\0",
        b"NTLMSSP\0\1\0\0\0\0\0\x08\0",
    ],
)
def test_malformed_negotiations(message: bytes) -> None:
    with pytest.raises(Malformed, match="LOGON_FAILURE"):
        ntlm.decode_negotiate(message)


WHOLE = CAPTURED.messages.authenticate


@pytest.mark.parametrize(
    "message",
    [
        b"",
        WHOLE[:63],
        WHOLE[:-1],
        b"X" + WHOLE[1:],
        WHOLE[:8] + b"\1" + WHOLE[9:],
        WHOLE[:60] + b"\0" + WHOLE[61:],
        WHOLE[:36] + b"\x0f" + WHOLE[37:],
        WHOLE[:16] + b"\x3f" + WHOLE[17:],
        WHOLE[:40] + b"\xff\xff\xff\xff" + WHOLE[44:],
    ],
)
def test_malformed_authentications(message: bytes) -> None:
    with pytest.raises(Malformed, match="LOGON_FAILURE"):
        ntlm.decode_authenticate(message)


def test_a_message_without_room_for_a_mic() -> None:
    user = "u".encode("utf-16-le")
    fields = b"".join(
        len(value).to_bytes(2, "little") * 2 + (64).to_bytes(4, "little")
        for value in (b"", b"", b"", user, b"", b"")
    )
    message = b"NTLMSSP\0\3\0\0\0" + fields + b"\1\0\0\0" + user
    assert ntlm.decode_authenticate(message) == (b"", b"", "", "u", "", b"", 1, None)


AV_PAIRS = {AvId.NB_DOMAIN_NAME: b"d\0", AvId.FLAGS: b"\2\0\0\0", AvId.TIMESTAMP: bytes(8), 99: b""}


def test_av_pairs_both_ways() -> None:
    written = ntlm.encode_av_pairs(AV_PAIRS.items())
    assert ntlm.decode_av_pairs(written) == AV_PAIRS
    assert ntlm.decode_av_pairs(written + b"behind") == AV_PAIRS
    for length in range(len(written)):
        with pytest.raises(Malformed):
            ntlm.decode_av_pairs(written[:length])
    with pytest.raises(Malformed):
        ntlm.decode_av_pairs(b"\1\0\0\0" * 100)
