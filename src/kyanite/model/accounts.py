"""Storage accounts: their names, their keys, and the store that each lives in."""

from dataclasses import dataclass

from kyanite.engine.api import Engine
from kyanite.extents.api import Extents


@dataclass(frozen=True, slots=True)
class Store:
    """Where the data of an account is: rows in an engine, bulk bytes in extents. No transaction spans two stores."""

    engine: Engine
    extents: Extents


@dataclass(frozen=True, slots=True)
class Account:
    """A storage account and its keys (decoded); either of the two opens it."""

    name: str
    keys: tuple[bytes, ...]
    store: Store
