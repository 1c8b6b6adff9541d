"""Which containers of an account are protected: by policies, by legal holds, or by version-level immutability.

What an account must not lose while it has such containers is refused by reading one of these rows.
"""

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.records import NamedKey
from kyanite.rules.immutability import ContainerProtection

_AS_A_WHOLE, _VERSION_LEVEL = b"c", b"v"


def replace(
    tx: Transaction, key: NamedKey, before: ContainerProtection | None, after: ContainerProtection | None
) -> None:
    """Write and delete the row of a container. None for one that is not protected, or does not exist."""
    old, new = row_of(key, before), row_of(key, after)
    if old != new:
        if old is not None:
            tx.delete(old)
        if new is not None:
            tx.put(new, b"")


def row_of(key: NamedKey, protection: ContainerProtection | None) -> bytes | None:
    if protection is None:
        return None
    letter = _VERSION_LEVEL if protection.is_version_level else _AS_A_WHOLE
    return keys.protected_container(key.account, letter, key.name)


def first(snap: Snapshot, account: str, *, version_level_only: bool = False) -> str | None:
    """The name of one of them, if the account has any."""
    prefix = keys.protected_containers(account, _VERSION_LEVEL if version_level_only else b"")
    skipped = len(keys.protected_containers(account, _VERSION_LEVEL))
    for key, _ in snap.scan(prefix, keys.after(prefix), limit=1):
        return key[skipped:].decode()
    return None
