"""The client's side of a logon by NTLMv2 without SPNEGO, as Linux does it."""

import base64
import hmac
import struct

from kyanite.wire import ntlm_keys

_FLAGS = 0x62088215
_SIGNATURE = b"NTLMSSP\0"
_CLIENT_CHALLENGE = bytes(range(8))

NEGOTIATE = _SIGNATURE + struct.pack("<II", 1, _FLAGS) + bytes(16)


def authenticate(challenge: bytes, user: str, key: bytes) -> tuple[bytes, bytes]:
    """The third message, and the key of the session."""
    server_challenge = challenge[24:32]
    info_length, info_at = struct.unpack_from("<H2xI", challenge, 40)
    info = challenge[info_at : info_at + info_length]
    password = base64.b64encode(key).decode()
    response_key = ntlm_keys.response_key(ntlm_keys.nt_hash(password), user, "")
    blob = b"\1\1" + bytes(6) + bytes(8) + _CLIENT_CHALLENGE + bytes(4) + info + bytes(4)
    proof = hmac.digest(response_key, server_challenge + blob, "md5")
    session_key = hmac.digest(response_key, proof, "md5")
    fields = [b"", proof + blob, b"", user.encode("utf-16-le"), b"", b""]
    head, payload = b"", b""
    for field in fields:
        head += struct.pack("<HHI", len(field), len(field), 88 + len(payload))
        payload += field
    flags = _FLAGS & ~0x40000000  # Without key exchange: the base key is the key of the session.
    return _SIGNATURE + struct.pack("<I", 3) + head + struct.pack("<I", flags) + bytes(
        24
    ) + payload, session_key
