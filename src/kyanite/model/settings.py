"""The properties of a service of an account: analytics, CORS rules, retention, the default version.

They are kept in the form in which clients write them; the service that owns them reads and merges it. The last writer
wins, but a writer that leaves parts out keeps the others' parts, so setting is one transaction.
"""

from collections.abc import Awaitable, Callable

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys


def load(engine: Engine, account: str, service: str) -> Awaitable[bytes | None]:
    """The stored properties, or None while nobody has set any."""
    key = keys.service_properties(account, service)

    def body(snap: Snapshot) -> bytes | None:
        return snap.get(key)

    return engine.read(body)


def merge(
    engine: Engine, account: str, service: str, merged: Callable[[bytes | None], bytes]
) -> Awaitable[None]:
    """Replace the properties by what ``merged``, a pure function, makes of the present ones."""
    key = keys.service_properties(account, service)

    def body(tx: Transaction) -> None:
        tx.put(key, merged(tx.get(key)))

    return engine.run(body)
