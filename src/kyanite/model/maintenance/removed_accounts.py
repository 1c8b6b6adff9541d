"""Deleting what a removed account has by name: its containers, queues, tables and shares, their settings, and user
delegation keys.

Each becomes what a deleted one is, whose content is purged by its own task. No request of the account is in progress
any more, and none can begin, so what is deleted stays so. When nothing is left the name can be used again.
"""

from collections.abc import Callable

from kyanite.engine.api import Transaction
from kyanite.model import account_rows, keys
from kyanite.model.blobs import deleted_containers
from kyanite.model.blobs.records import decode_container
from kyanite.model.files import deleted_shares
from kyanite.model.files.share import decode_share
from kyanite.model.queues.records import decode_queue
from kyanite.model.tables.table import decode_table

ROWS_PER_STEP = 500

_SERVICE_PROPERTIES = keys.SERVICE_PROPERTIES + b"%b\0"

_Mark = Callable[[bytes], bytes]
"""The key of the mark that lets the content be purged, by the record."""

_MARKS: dict[Callable[[str], bytes], _Mark] = {
    keys.containers: lambda value: keys.deleted_container(decode_container(value).id),
    keys.retired_containers: lambda value: keys.deleted_container(deleted_containers.decode(value).record.id),
    keys.queues: lambda value: keys.discarded_messages(decode_queue(value).message_set_id),
    keys.tables: lambda value: keys.deleted_table(decode_table(value).id),
    keys.shares: lambda value: keys.deleted_share(decode_share(value).id),
    keys.retired_shares: lambda value: keys.deleted_share(deleted_shares.decode(value).record.id),
}


def purge(tx: Transaction, mark: bytes) -> None:
    name = keys.account_of_removal(mark)
    left = ROWS_PER_STEP
    for prefix in account_rows.DATA:
        base = prefix(name)
        for key, value in list(tx.scan(base, keys.after(base), limit=left)):
            tx.put(_MARKS[prefix](value), b"")
            tx.delete(key)
            if prefix is keys.retired_containers:
                tx.delete(keys.expiry(deleted_containers.decode(value).expires_at, key))
            left -= 1
        if not left:
            return
    for base in (keys.delegators(name), _SERVICE_PROPERTIES % name.encode()):
        for key, _ in list(tx.scan(base, keys.after(base), limit=left)):
            tx.delete(key)
            left -= 1
        if not left:
            return
    tx.delete(keys.delegation_secret(name))
    tx.delete(mark)
    account_rows.delete(tx, name)
