"""Sessions of browsers. A session is a signed cookie, so every worker and every node knows it, and nothing is stored.

    account . kind . expires . nonce . signature

The signature of a session that began with a key of an account covers that key, so the session ends when the key is
changed or the account removed. No key is in the cookie, nor anything that a key could be found from. A session without
an account belongs to a browser that needs no sign-in; its forms are tied to it just the same.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum

from kyanite.model.accounts import Account
from kyanite.values import TICKS_PER_SECOND, Instant, unix_seconds

SECONDS = 12 * 3600


class Kind(StrEnum):
    OPEN = "o"
    """Of a browser that has not signed in."""
    KEY = "k"
    TOKEN = "t"


@dataclass(frozen=True, slots=True)
class Session:
    account: str
    kind: Kind
    expires: int
    """Seconds since 1970."""
    nonce: str
    signature: str

    @property
    def cookie(self) -> str:
        return ".".join((self.account, self.kind.value, str(self.expires), self.nonce, self.signature))


def begin(
    secret: bytes,
    account: str,
    kind: Kind,
    nonce: str,
    now: Instant,
    *,
    key: bytes = b"",
    seconds: int = SECONDS,
) -> Session:
    expires = unix_seconds(Instant(now + seconds * TICKS_PER_SECOND))
    return Session(account, kind, expires, nonce, _signature(secret, account, kind, expires, nonce, key))


def load(secret: bytes, cookie: str, account: Account | None, now: Instant) -> Session | None:
    """The session of a cookie; None if it is forged, over, or was begun with a key that is no longer the account's.

    ``account`` is the one that the cookie names, if there is one.
    """
    parts = cookie.split(".")
    if len(parts) != 5 or not parts[2].isascii() or not parts[2].isdigit() or parts[1] not in tuple(Kind):
        return None
    name, kind, expires, nonce, signature = parts[0], Kind(parts[1]), int(parts[2]), parts[3], parts[4]
    if expires <= unix_seconds(now) or not signature.isascii():
        return None
    if kind is not Kind.OPEN and account is None:
        return None
    proofs = account.keys if account is not None and kind is Kind.KEY else (b"",)
    if kind is Kind.KEY and account is not None and not account.settings.shared_key_access:
        return None
    for proof in proofs:
        if hmac.compare_digest(_signature(secret, name, kind, expires, nonce, proof), signature):
            return Session(name, kind, expires, nonce, signature)
    return None


def account_of(cookie: str) -> str:
    return cookie.partition(".")[0]


def form_token(secret: bytes, session: Session) -> str:
    """What every form of a session carries, so that no other site can make the browser send it."""
    return _text(hmac.digest(secret, b"form\n" + session.cookie.encode(), hashlib.sha256))


def is_form_token(secret: bytes, session: Session, given: str) -> bool:
    return given.isascii() and hmac.compare_digest(form_token(secret, session), given)


def _signature(secret: bytes, account: str, kind: Kind, expires: int, nonce: str, key: bytes) -> str:
    key_digest = hashlib.sha256(key).digest()
    text = f"session\n{account}\n{kind.value}\n{expires}\n{nonce}\n".encode() + key_digest
    return _text(hmac.digest(secret, text, hashlib.sha256))


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
