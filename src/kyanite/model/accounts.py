"""Storage accounts: their names, their keys, and the store that each lives in."""

from dataclasses import dataclass

from kyanite.engine.api import Engine
from kyanite.extents.api import Extents
from kyanite.membership.api import Membership


@dataclass(frozen=True, slots=True)
class Store:
    """Where the data of an account is: rows in an engine, bulk bytes in extents. No transaction spans two stores.

    ``membership`` says which processes use the store; what belongs to one of them carries its id.
    """

    engine: Engine
    extents: Extents
    membership: Membership


@dataclass(frozen=True, slots=True)
class Account:
    """A storage account and its keys (decoded); either of the two opens it."""

    name: str
    keys: tuple[bytes, ...]
    store: Store
