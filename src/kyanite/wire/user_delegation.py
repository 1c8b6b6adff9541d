"""The key with which a user delegation SAS is signed: the documents of Get User Delegation Key, and its derivation.

A key is not stored. It is the HMAC of everything that it states under a secret of the account, so the server computes
it again from a token that repeats these fields. A new secret revokes all keys that were given out.
"""

import hmac
from base64 import b64encode

import msgspec

from kyanite.values import TICKS_PER_SECOND, Instant
from kyanite.wire import iso_time, xml

SERVICES = {"blob": "b", "dfs": "b", "queue": "q", "file": "f", "table": "t"}
"""The letter of each service in a key."""


class DelegationKey(msgspec.Struct, frozen=True):
    """What a user delegation key states. Its times have whole seconds."""

    object_id: str
    tenant_id: str
    starts_at: Instant
    expires_at: Instant
    service: str
    """A letter of ``bqtf``."""
    version: str
    user_tenant_id: str = ""
    """The tenant of the only user that a token may be for, if it is not the delegator's."""

    def value(self, secret: bytes) -> bytes:
        """The key itself, which the delegator signs tokens with."""
        stated = (
            self.object_id, self.tenant_id, str(self.starts_at), str(self.expires_at), self.service, self.version,
            self.user_tenant_id,
        )  # fmt: skip
        return hmac.digest(secret, "\n".join(("user delegation key", *stated)).encode("utf-8"), "sha256")


class KeyInfo(msgspec.Struct, frozen=True):
    """What a key is requested for."""

    starts_at: Instant | None
    expires_at: Instant
    user_tenant_id: str


def decode_key_info(document: bytes) -> KeyInfo:
    root = xml.decode(document, "KeyInfo")
    expires_at = _time(root, "Expiry")
    if expires_at is None:
        raise xml.missing_node("Expiry")
    return KeyInfo(_time(root, "Start"), expires_at, root.optional_text("DelegatedUserTid") or "")


def encode_key(key: DelegationKey, value: bytes) -> bytes:
    user_tenant = xml.element("SignedDelegatedUserTid", key.user_tenant_id) if key.user_tenant_id else ""
    return xml.document(
        xml.wrapped(
            "UserDelegationKey",
            xml.element("SignedOid", key.object_id)
            + xml.element("SignedTid", key.tenant_id)
            + xml.element("SignedStart", seconds_text(key.starts_at))
            + xml.element("SignedExpiry", seconds_text(key.expires_at))
            + xml.element("SignedService", key.service)
            + xml.element("SignedVersion", key.version)
            + user_tenant
            + xml.element("Value", b64encode(value).decode("ascii")),
        )
    )


def whole_seconds(instant: Instant) -> Instant:
    return Instant(instant - instant % TICKS_PER_SECOND)


def seconds_text(instant: Instant) -> str:
    """``2024-05-01T12:34:56Z``: clients copy it into their tokens, some after having parsed it."""
    return f"{iso_time.encode(instant)[:19]}Z"


def _time(root: xml.Element, name: str) -> Instant | None:
    text = root.optional_text(name)
    if text is None:
        return None
    instant = iso_time.decode(text)
    if instant is None:
        raise xml.bad_node(name, text)
    return whole_seconds(instant)
