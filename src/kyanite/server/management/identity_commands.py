"""The commands about identity."""

import os

import msgspec

from kyanite.model import delegation
from kyanite.server.management.command import Command, CommandRequest, Management
from kyanite.values import iso_text

_SECRET_BYTES = 32


class RevokeDelegationKeys(CommandRequest, frozen=True):
    account: str


class Revocation(msgspec.Struct, frozen=True):
    """What was revoked, and when."""

    account: str
    revoked_at: str


async def revoke_delegation_keys(management: Management, request: RevokeDelegationKeys) -> Revocation:
    """Every worker reads the secret of an account for every token, so none accepts an old one any more."""
    account = management.account(request.account)
    revoked_at = await delegation.revoke(account.store.engine, account.name, os.urandom(_SECRET_BYTES))
    return Revocation(account.name, iso_text(revoked_at))


COMMANDS = (Command("identity revoke-delegation-keys", RevokeDelegationKeys, revoke_delegation_keys),)
