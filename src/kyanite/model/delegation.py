"""User delegation keys of an account: the secret that they are derived from, and who was given one.

A token that is signed with such a key allows what the roles of its delegator allow when it is used. It names the
delegator by its object id alone, so what roles may be assigned to besides (applications, groups, claims) is kept from
the token with which the key was requested, until the key expires.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.records import Record, encode
from kyanite.values import Instant

WALK_EVERY_SECONDS = 24 * 3600.0
_PAGE_ROWS = 1000


class DelegationSecret(Record, frozen=True):
    """What all keys of an account are derived from."""

    secret: bytes
    revoked_at: Instant | None = None
    """When all keys before were revoked, if ever."""


class Delegator(Record, frozen=True):
    """A caller that was given a key, as its token described it."""

    issuer: str
    principal: str
    application_id: str
    groups: tuple[str, ...]
    claims: tuple[tuple[str, tuple[str, ...]], ...]
    expires_at: Instant
    """When its last key expires."""


class Delegation(NamedTuple):
    """What a token is checked against."""

    secret: bytes | None
    """None if no key was ever given out."""
    delegator: Delegator | None


decode_secret: Callable[[bytes], DelegationSecret] = msgspec.msgpack.Decoder(DelegationSecret).decode
decode_delegator: Callable[[bytes], Delegator] = msgspec.msgpack.Decoder(Delegator).decode


def give(
    engine: Engine, account: str, tenant_id: str, object_id: str, delegator: Delegator, new_secret: bytes
) -> Awaitable[bytes]:
    """Keep who is given a key. Returns the secret to derive it from: the new one, if the account has none yet."""

    def body(tx: Transaction) -> bytes:
        secret_key, delegator_key = (
            keys.delegation_secret(account),
            keys.delegator(account, tenant_id, object_id),
        )
        stored, known = tx.get_many([secret_key, delegator_key])
        secret = new_secret if stored is None else decode_secret(stored).secret
        if stored is None:
            tx.put(secret_key, encode(DelegationSecret(new_secret)))
        until = delegator.expires_at
        if known is not None:
            until = max(until, decode_delegator(known).expires_at)
        kept = msgspec.structs.replace(delegator, expires_at=until)
        if known is None or decode_delegator(known) != kept:
            tx.put(delegator_key, encode(kept))
        return secret

    return engine.run(body)


def find(engine: Engine, account: str, tenant_id: str, object_id: str) -> Awaitable[Delegation]:
    def body(snap: Snapshot) -> Delegation:
        secret, delegator = snap.get_many(
            [keys.delegation_secret(account), keys.delegator(account, tenant_id, object_id)]
        )
        found = None if delegator is None else decode_delegator(delegator)
        if found is not None and found.expires_at <= snap.now:
            found = None
        return Delegation(None if secret is None else decode_secret(secret).secret, found)

    return engine.read(body)


def revoke(engine: Engine, account: str, new_secret: bytes) -> Awaitable[Instant]:
    """Revoke all keys of the account, and with them every token that was signed with one. Returns when."""

    def body(tx: Transaction) -> Instant:
        tx.put(keys.delegation_secret(account), encode(DelegationSecret(new_secret, tx.now)))
        return tx.now

    return engine.run(body)


def find_expired(snap: Snapshot, start: bytes) -> tuple[list[bytes], bytes]:
    """Delegators without a valid key among a page of rows, and where the next page begins."""
    rows = list(snap.scan(start or keys.DELEGATORS, keys.after(keys.DELEGATORS), limit=_PAGE_ROWS + 1))
    expired = [key for key, value in rows[:_PAGE_ROWS] if decode_delegator(value).expires_at <= snap.now]
    return expired, rows[_PAGE_ROWS][0] if len(rows) > _PAGE_ROWS else b""


def remove_expired(tx: Transaction, found: list[bytes]) -> None:
    for key, value in zip(found, tx.get_many(found), strict=True):
        if value is not None and decode_delegator(value).expires_at <= tx.now:
            tx.delete(key)
