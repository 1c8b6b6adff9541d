"""The properties of a service of an account, as they are stored.

A transaction that obeys a property reads it itself (``load``), so that it acts on the value in force when it commits.
The last writer wins, but a writer keeps the properties that it leaves out, so an update is one transaction.
"""

from collections.abc import Awaitable, Callable

import msgspec

from kyanite.engine.api import Engine, Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.records import encode
from kyanite.service_properties import INITIAL, ServiceProperties

decode_settings: Callable[[bytes], ServiceProperties] = msgspec.msgpack.Decoder(ServiceProperties).decode


def load(snap: Snapshot, account: str, service: str) -> ServiceProperties:
    """The properties in force: the initial ones until a client sets others."""
    stored = snap.get(keys.service_properties(account, service))
    return INITIAL if stored is None else decode_settings(stored)


def save(tx: Transaction, account: str, service: str, properties: ServiceProperties) -> None:
    tx.put(keys.service_properties(account, service), encode(properties))


def get(engine: Engine, account: str, service: str) -> Awaitable[ServiceProperties]:
    return engine.read(lambda snap: load(snap, account, service))


def update(
    engine: Engine,
    account: str,
    service: str,
    change: ServiceProperties,
    check: Callable[[ServiceProperties, ServiceProperties], None] | None = None,
) -> Awaitable[None]:
    """Set the properties that the change names and keep the others.

    ``check`` gets the properties before and after, and may refuse the change.
    """

    def body(tx: Transaction) -> None:
        before = load(tx, account, service)
        after = before.updated(change)
        if check is not None:
            check(before, after)
        save(tx, account, service, after)

    return engine.run(body)
