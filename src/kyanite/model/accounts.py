"""Storage accounts: their names, their keys, and the store that each lives in."""

from dataclasses import dataclass

from kyanite.engine.api import Engine
from kyanite.extents.api import Extents
from kyanite.membership.api import Membership
from kyanite.model.content.checked_reads import RECHECK_SECONDS, CheckedReader


class Store:
    """Where the data of an account is: rows in an engine, bulk bytes in extents. No transaction spans two stores.

    ``membership`` says which processes use the store; what belongs to one of them carries its id. Bytes of extents are
    read through ``reader``, which checks them.
    """

    __slots__ = ("engine", "extents", "membership", "reader")

    def __init__(
        self,
        engine: Engine,
        extents: Extents,
        membership: Membership,
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        self.engine = engine
        self.extents = extents
        self.membership = membership
        self.reader = CheckedReader(engine, extents, recheck_seconds)


@dataclass(frozen=True, slots=True)
class Account:
    """A storage account and its keys (decoded); either of the two opens it."""

    name: str
    keys: tuple[bytes, ...]
    store: Store
