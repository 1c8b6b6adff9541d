"""Keys, signatures and encryption against a captured logon and against vectors of two other libraries."""

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.kbkdf import KBKDFHMAC, CounterLocation, Mode
from hypothesis import given
from hypothesis import strategies as st

from kyanite.wire.malformed import Malformed
from kyanite.wire.smb2 import crypto, header, transform
from kyanite.wire.smb2.ciphers import EncryptionKey, SigningKey
from kyanite.wire.smb2.crypto import CipherId, SigningAlgorithm
from kyanite.wire.smb2.header import Command, Header
from kyanite.wire.smb2.negotiate import Dialect
from tests.wire.smb2 import recorded_logon

KEY = bytes.fromhex("0b7e9c5cac36c0f6ea9ab275298cedce")
ECHO_HEAD = bytes.fromhex(
    "fe534d4240000100000000000d00010008000000000000000500000000000000fffe0000000000008877665544332211"
)
SIGNATURES = {
    SigningAlgorithm.HMAC_SHA256: bytes.fromhex("35fe8d6c16aae4f7b9cb27c069e6dffd"),
    SigningAlgorithm.AES_CMAC: bytes.fromhex("1bc3712418d2bf6e3662cd064b993dfd"),
    SigningAlgorithm.AES_GMAC: bytes.fromhex("4cde9cc082d4810f585e9692506fa6e5"),
}
ECHO_BODY = bytes.fromhex("04000000")
PLAIN_ECHO = ECHO_HEAD[:16] + bytes(4) + ECHO_HEAD[20:] + bytes(16) + ECHO_BODY
ENCRYPTED = {
    CipherId.AES_128_CCM: bytes.fromhex(
        "fd534d4257206a52db5197718c204212181b7b4c0102030405060708090a0b0000000000440000000000010088776655"
        "443322119cb66bc5af914d33787ea04250c57fc7197f5b360f93b743913e3e57dc2eaa90a4a997ae4542e677470dbe28"
        "b8d9eda3ee993b4920b5734e0b0f7c4c8a17ec1da8ec3796"
    ),
    CipherId.AES_128_GCM: bytes.fromhex(
        "fd534d427ca2b4995d7c0c21f5c2ce03216bdfd20102030405060708090a0b0c00000000440000000000010088776655"
        "44332211bcd02c55654bdf2d8694e5313345d7a84a3eb89bf009e8ac3964c0178738ab51cf4689bc20a020fa7e329fda"
        "d66afd63987d35767454b15c42ee0f9adb1d378df5201a9d"
    ),
}
SESSION_ID = 0x1122334455667788


def test_the_hash_of_a_logon() -> None:
    hashed = crypto.NO_HASH
    messages = (
        recorded_logon.NEGOTIATE_REQUEST,
        recorded_logon.NEGOTIATE_RESPONSE,
        recorded_logon.FIRST_SETUP_REQUEST,
        recorded_logon.FIRST_SETUP_RESPONSE,
        recorded_logon.LAST_SETUP_REQUEST,
    )
    for message, expected in zip(messages, recorded_logon.HASHES, strict=True):
        hashed = crypto.extend_hash(hashed, message[:64], memoryview(message)[64:])
        assert hashed[:16] == expected
    assert hashed == recorded_logon.FINAL_HASH


@pytest.mark.parametrize(
    ("dialect", "cipher", "signing", "client_to_server", "server_to_client", "application"),
    [
        (
            Dialect.SMB_3_1_1,
            CipherId.AES_128_GCM,
            recorded_logon.SIGNING_KEY.hex(),
            "3808a0f1c2c2afd4eaac093693b141ea",
            "8f538a1bb9cbb7689df7932d5fdc6e55",
            "215a49da0894206bf69973b694f14b14",
        ),
        (
            Dialect.SMB_3_1_1,
            CipherId.AES_256_CCM,
            recorded_logon.SIGNING_KEY.hex(),
            "bfbd8ca24a47ad047daa5cd5a20dcb45ec00f1406acb91c1c4b1689827b9962f",
            "de8ab209331e64a1264c371375a7ca2323b666b7ba0f4714016671c8541c44ce",
            "215a49da0894206bf69973b694f14b14",
        ),
        (
            Dialect.SMB_3_0,
            CipherId.AES_128_CCM,
            "6dab18e1c271fb71ba13867bc3a52901",
            "5d66ffb1477373461367d6dda91a4459",
            "66870ef7917067b79281930b7d39afa8",
            "a92e285779eb5c7fab08fc19daabeccd",
        ),
        (
            Dialect.SMB_2_1,
            CipherId.AES_128_CCM,
            recorded_logon.EXPORTED_KEY.hex(),
            "",
            "",
            recorded_logon.EXPORTED_KEY.hex(),
        ),
    ],
)
def test_the_keys_of_a_session(
    dialect: int, cipher: int, signing: str, client_to_server: str, server_to_client: str, application: str
) -> None:
    keys = crypto.session_keys(dialect, recorded_logon.EXPORTED_KEY, recorded_logon.FINAL_HASH, cipher)
    expected = (signing, client_to_server, server_to_client, application)
    assert tuple(key.hex() for key in keys) == expected


@given(
    st.binary(min_size=1, max_size=40),
    st.binary(max_size=20),
    st.binary(max_size=70),
    st.sampled_from([128, 256]),
)
def test_derivation_is_that_of_the_library(key: bytes, label: bytes, context: bytes, bits: int) -> None:
    library = KBKDFHMAC(
        SHA256(), Mode.CounterMode, bits // 8, 4, 4, CounterLocation.BeforeFixed, label, context, None
    )
    assert crypto.derive_key(key, label, context, bits) == library.derive(key)


def test_the_algorithm_where_none_is_negotiated() -> None:
    assert crypto.default_signing(Dialect.SMB_2_1) is SigningAlgorithm.HMAC_SHA256
    assert crypto.default_signing(Dialect.SMB_3_0) is SigningAlgorithm.AES_CMAC
    assert crypto.default_signing(Dialect.SMB_3_1_1) is SigningAlgorithm.AES_CMAC


@pytest.mark.parametrize("algorithm", SigningAlgorithm)
def test_the_signature_of_a_request(algorithm: SigningAlgorithm) -> None:
    message = memoryview(ECHO_HEAD + SIGNATURES[algorithm] + ECHO_BODY)
    key = SigningKey(algorithm, KEY)
    assert key.is_signed(header.decode(message), message)
    for index in (20, 47, 50, 67):
        changed = bytearray(message)
        changed[index] ^= 1
        assert not key.is_signed(header.decode(changed), memoryview(changed))
    assert not SigningKey(algorithm, KEY[::-1]).is_signed(header.decode(message), message)


def test_the_signatures_of_a_logon() -> None:
    key = SigningKey(SigningAlgorithm.AES_GMAC, recorded_logon.SIGNING_KEY)
    connect = memoryview(recorded_logon.TREE_CONNECT_REQUEST)
    assert key.is_signed(header.decode(connect), connect)
    found = header.decode(recorded_logon.LAST_SETUP_RESPONSE)
    unsigned = header.encode(found._replace(signature=header.NO_SIGNATURE))
    assert key.sign(found, [unsigned, recorded_logon.LAST_SETUP_RESPONSE[64:]]) == found.signature


@pytest.mark.parametrize("algorithm", SigningAlgorithm)
@pytest.mark.parametrize("size", [0, 100, 70_000])
def test_it_does_not_matter_how_a_response_is_cut(algorithm: SigningAlgorithm, size: int) -> None:
    key = SigningKey(algorithm, KEY)
    response = Header(Command.READ, 5, flags=header.RESPONSE | header.SIGNED)
    whole = bytes(header.encode(response)) + bytes(size)
    signature = key.sign(response, [whole])
    assert key.sign(response, [bytearray(whole[:64]), memoryview(whole)[64:80], whole[80:]]) == signature


def test_a_cancel_has_a_nonce_of_its_own() -> None:
    """MS-SMB2 §3.1.4.1: one CANCEL may carry the message id of the request that it ends."""
    request = Header(Command.CANCEL, 5, flags=header.SIGNED)
    message = bytearray(header.encode(request)) + ECHO_BODY
    nonce = (5).to_bytes(8, "little") + (2).to_bytes(4, "little")
    message[48:64] = AESGCM(KEY).encrypt(nonce, b"", bytes(message))
    key = SigningKey(SigningAlgorithm.AES_GMAC, KEY)
    assert key.is_signed(header.decode(message), memoryview(message))


@pytest.mark.parametrize("cipher", ENCRYPTED)
def test_encryption(cipher: CipherId) -> None:
    key = EncryptionKey(cipher, KEY)
    nonce = bytes(range(1, key.nonce_bytes + 1))
    encrypted = ENCRYPTED[cipher]
    assert b"".join(key.encrypt(SESSION_ID, nonce, [PLAIN_ECHO])) == encrypted
    assert b"".join(key.encrypt(SESSION_ID, nonce, [PLAIN_ECHO[:9], memoryview(PLAIN_ECHO)[9:]])) == encrypted
    assert key.decrypt(transform.decode(encrypted), memoryview(encrypted)) == PLAIN_ECHO


@pytest.mark.parametrize("cipher", CipherId)
@pytest.mark.parametrize("size", [1, 100, 70_000, 200_000])
def test_encryption_and_back(cipher: CipherId, size: int) -> None:
    key = EncryptionKey(cipher, KEY * (2 if cipher >= CipherId.AES_256_CCM else 1))
    text = bytes(range(256)) * (size // 256) + bytes(size % 256)
    encrypted = bytearray(b"".join(key.encrypt(1, bytes(key.nonce_bytes), [text[:50], text[50:]])))
    found = transform.decode(encrypted)
    assert found.session_id == 1
    assert key.decrypt(found, memoryview(bytes(encrypted))) == text
    assert key.decrypt(found, memoryview(bytearray(encrypted))) == text
    for index in (4, 20, 45, 52, len(encrypted) - 1):
        changed = bytearray(encrypted)
        changed[index] ^= 0x80
        with pytest.raises(Malformed):
            key.decrypt(transform.decode(changed), memoryview(changed))


def test_a_nonce_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="nonce"):
        EncryptionKey(CipherId.AES_128_GCM, KEY).encrypt(1, bytes(11), [b"text"])


@pytest.mark.parametrize("cipher", [CipherId.AES_128_GCM, CipherId.AES_256_GCM])
def test_a_long_message_is_encrypted_and_decrypted_where_it_is(cipher: CipherId) -> None:
    key = EncryptionKey(cipher, KEY * 2 if cipher is CipherId.AES_256_GCM else KEY)
    head, text = bytes(64), bytes(range(256)) * 1000
    expected = b"".join(key.encrypt(1, bytes(12), [head, text]))
    buffer = bytearray(text)
    header, first, second = key.encrypt(1, bytes(12), [head, memoryview(buffer)])
    assert b"".join((header, first, second)) == expected
    assert buffer == second != text
    message = bytearray(expected)
    found = key.decrypt(transform.decode(message), memoryview(message))
    assert found == head + text
    assert message.endswith(head + text)


def test_an_encrypted_message_of_nothing_is_refused() -> None:
    key = EncryptionKey(CipherId.AES_128_GCM, KEY)
    empty = b"".join(key.encrypt(1, bytes(12), []))
    with pytest.raises(Malformed):
        key.decrypt(transform.decode(empty), memoryview(empty))
