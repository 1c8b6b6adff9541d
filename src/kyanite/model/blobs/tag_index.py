"""The index of blobs by their tags: a row, or *posting*, for each tag of each base blob.

Postings are written by the transaction that changes the tags, so a search always agrees with Get Blob Tags. Snapshots
and previous versions have none. A posting has the id of the blob's container and not its name: the container can be
renamed, deleted or restored by a small transaction. A row of its own says which account and name belong to the id of a
container that has tagged blobs; a rename writes it anew (``rename``). If no container of that name has this id any
more, it was deleted: what is left of its postings is not found, and is purged together with its blobs.
"""

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.records import NamedKey
from kyanite.rules.tags import Tags


def update(
    tx: Transaction, container: NamedKey, container_id: int, name: str, before: Tags, after: Tags
) -> None:
    """Have the postings of a base blob follow its tags; none before it existed, and none after it is gone."""
    account = container.account
    for key, value in before:
        if (key, value) not in after:
            tx.delete(keys.posting(account, key, value, container_id, name))
    added = [pair for pair in after if pair not in before]
    if not added:
        return
    for key, value in added:
        tx.put(keys.posting(account, key, value, container_id, name), b"")
    _save_container(tx, container_id, container)


def rename(tx: Transaction, container_id: int, container: NamedKey) -> None:
    """A container has another name now."""
    if tx.get(keys.tagged_container(container_id)) is not None:
        _save_container(tx, container_id, container)


def purge(tx: Transaction, container_id: int, name: str, tags: Tags) -> None:
    """Delete the postings of a base blob whose container was deleted."""
    stored = tx.get(keys.tagged_container(container_id))
    if stored is not None:
        account = decode_container_key(stored).account
        for key, value in tags:
            tx.delete(keys.posting(account, key, value, container_id, name))


def purge_container(tx: Transaction, container_id: int) -> None:
    """After the last blob of a deleted container."""
    tx.delete(keys.tagged_container(container_id))


def _save_container(tx: Transaction, container_id: int, container: NamedKey) -> None:
    key, value = keys.tagged_container(container_id), f"{container.account}\0{container.name}".encode()
    if tx.get(key) != value:
        tx.put(key, value)


def decode_container_key(value: bytes) -> NamedKey:
    account, name = value.decode().split("\0")
    return NamedKey(account, name)
