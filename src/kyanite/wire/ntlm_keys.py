"""What NTLMv2 proves, and the keys that come of it (MS-NLMP §3.3.2, §3.4).

MD4 and RC4 are written out, since OpenSSL 3 has them in its legacy provider only. Both see a few dozen bytes per logon.
"""

import hmac
import struct
from hashlib import md5
from typing import NamedTuple

from kyanite.wire import ntlm
from kyanite.wire.malformed import Malformed
from kyanite.wire.ntlm import AvId

_MASK = 0xFFFFFFFF
_MD4_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_MD4_ORDERS = (
    range(16),
    (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
    (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15),
)
_MD4_SHIFTS = ((3, 7, 11, 19), (3, 5, 9, 13), (3, 9, 11, 15))
_MD4_CONSTANTS = (0, 0x5A827999, 0x6ED9EBA1)

_SHORTEST_V2 = 44
"""16 bytes of proof and the 28 fixed ones of a client challenge (§2.2.2.7)."""
_PROOF_BYTES = 16
_AV_PAIRS_AT = _PROOF_BYTES + 28
_SESSION_KEY_BYTES = 16


def md4(data: bytes) -> bytes:
    """RFC 1320."""
    padded = data + b"\x80" + bytes(-(len(data) + 9) % 64) + struct.pack("<Q", len(data) * 8)
    state = _MD4_START
    for block in struct.iter_unpack("<16I", padded):
        a, b, c, d = state
        for number in range(3):
            for step, index in enumerate(_MD4_ORDERS[number]):
                if number == 0:
                    mixed = b & c | ~b & d
                elif number == 1:
                    mixed = b & c | b & d | c & d
                else:
                    mixed = b ^ c ^ d
                total = a + mixed + block[index] + _MD4_CONSTANTS[number] & _MASK
                shift = _MD4_SHIFTS[number][step % 4]
                a, b, c, d = d, (total << shift | total >> 32 - shift) & _MASK, b, c
        state = tuple(old + new & _MASK for old, new in zip(state, (a, b, c, d), strict=True))  # type: ignore[assignment]
    return struct.pack("<4I", *state)


def rc4(key: bytes, data: bytes) -> bytes:
    """The cipher of NTLM's key exchange and of its signatures."""
    box = list(range(256))
    j = 0
    for i in range(256):
        j = j + box[i] + key[i % len(key)] & 0xFF
        box[i], box[j] = box[j], box[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = i + 1 & 0xFF
        j = j + box[i] & 0xFF
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[box[i] + box[j] & 0xFF])
    return bytes(out)


def nt_hash(password: str) -> bytes:
    """NTOWFv1 (§3.3.1). It is as good as the password, and costs a millisecond: compute it once."""
    return md4(password.encode("utf-16-le"))


def response_key(password_hash: bytes, user: str, domain: str) -> bytes:
    """NTOWFv2 (§3.3.2): the user's name in capitals, the domain as it was sent."""
    return _hmac_md5(password_hash, (user.upper() + domain).encode("utf-16-le"))


class LogonMessages(NamedTuple):
    """The three messages of a logon, without SPNEGO, and the challenge that the second one holds."""

    negotiate: bytes
    challenge: bytes
    authenticate: bytes
    server_challenge: bytes


def is_well_formed(authenticate: ntlm.Authenticate) -> bool:
    """Whether the AV pairs of the response can be read, if it has any."""
    if len(authenticate.nt_response) < _SHORTEST_V2:
        return True
    try:
        ntlm.decode_av_pairs(authenticate.nt_response[_AV_PAIRS_AT:])
    except Malformed:
        return False
    return True


def session_key(
    messages: LogonMessages, authenticate: ntlm.Authenticate, password_hash: bytes
) -> bytes | None:
    """The key of the session if the message proves that its sender knows the password (§3.2.5.1.2); else None.

    ``authenticate`` is the third message, decoded. NTLMv1, LM and anonymous logons prove nothing.
    """
    response = authenticate.nt_response
    if (
        not authenticate.user
        or len(response) < _SHORTEST_V2
        or response[_PROOF_BYTES : _PROOF_BYTES + 2] != b"\1\1"
    ):
        return None
    key = response_key(password_hash, authenticate.user, authenticate.domain)
    proof = _hmac_md5(key, messages.server_challenge + response[_PROOF_BYTES:])
    if not hmac.compare_digest(proof, response[:_PROOF_BYTES]):
        return None
    exported = _exported_key(authenticate, _hmac_md5(key, proof))
    if exported is None or not _is_mic_right(messages, authenticate, exported):
        return None
    return exported


def _exported_key(authenticate: ntlm.Authenticate, base_key: bytes) -> bytes | None:
    """The client's own random key, which the base key encrypts, or the base key."""
    if not authenticate.flags & ntlm.NEGOTIATE_KEY_EXCHANGE:
        return base_key
    if len(authenticate.encrypted_session_key) != _SESSION_KEY_BYTES:
        return None
    return rc4(base_key, authenticate.encrypted_session_key)


def _is_mic_right(messages: LogonMessages, authenticate: ntlm.Authenticate, exported_key: bytes) -> bool:
    """A MIC is checked if the client's answer to the challenge, which the proof covers, says that there is one."""
    try:
        flags = ntlm.decode_av_pairs(authenticate.nt_response[_AV_PAIRS_AT:]).get(AvId.FLAGS, b"")
    except Malformed:
        return False
    if not int.from_bytes(flags, "little") & ntlm.AV_FLAG_MIC:
        return True
    if authenticate.mic is None:
        return False
    signed = messages.negotiate + messages.challenge + ntlm.without_mic(messages.authenticate)
    return hmac.compare_digest(_hmac_md5(exported_key, signed), authenticate.mic)


def client_list_mic(exported_key: bytes, flags: int, mechanism_list: bytes) -> bytes:
    """The mechListMIC that a client signs its list of mechanisms with; ``flags`` are the negotiated ones."""
    return _list_mic(exported_key, flags, mechanism_list, b"client-to-server")


def server_list_mic(exported_key: bytes, flags: int, mechanism_list: bytes) -> bytes:
    """The server's mechListMIC over the same list."""
    return _list_mic(exported_key, flags, mechanism_list, b"server-to-client")


def _list_mic(exported_key: bytes, flags: int, mechanism_list: bytes, direction: bytes) -> bytes:
    """A signature of sequence number 0 with extended session security (§3.4.4.2)."""
    sign_key = _md5(exported_key + b"session key to " + direction + b" signing key magic constant\0")
    checksum = _hmac_md5(sign_key, bytes(4) + mechanism_list)[:8]
    if flags & ntlm.NEGOTIATE_KEY_EXCHANGE:
        checksum = rc4(_seal_key(exported_key, flags, direction), checksum)
    return b"\1\0\0\0" + checksum + bytes(4)


def _seal_key(exported_key: bytes, flags: int, direction: bytes) -> bytes:
    """§3.4.5.3: clients that do not ask for 128 bits get fewer."""
    if not flags & ntlm.NEGOTIATE_128:
        exported_key = exported_key[: 7 if flags & ntlm.NEGOTIATE_56 else 5]
    return _md5(exported_key + b"session key to " + direction + b" sealing key magic constant\0")


def _md5(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).digest()


def _hmac_md5(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "md5")
