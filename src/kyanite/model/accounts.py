"""Storage accounts: their names, their keys, and the store that each lives in.

An ``Account`` is what requests work with. It is never changed: when a key or a setting changes, every process replaces
it by another one. What is stored of an account is in ``account_rows.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kyanite.engine.api import Engine
from kyanite.extents.api import Extents
from kyanite.membership.api import Membership
from kyanite.model.content.checked_reads import RECHECK_SECONDS, CheckedReader
from kyanite.model.content.fetched_reads import FetchingReader
from kyanite.model.records import Record


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
        reader = CheckedReader if extents.has_files else FetchingReader
        self.reader = reader(engine, extents, recheck_seconds)


class SasPolicy(Record, frozen=True):
    """How long the shared access signatures of an account may be valid."""

    seconds: int
    blocks: bool = False
    """Whether a longer one is refused; otherwise it is only logged."""


class AccountSettings(Record, frozen=True):
    """What an operator sets for an account, as far as every request obeys it. By default nothing is restricted.

    Settings of a service, such as versioning and soft delete of blobs, are in ``model/settings.py``: transactions read
    them there.
    """

    kind: str = "StorageV2"
    sku: str = "Standard_RAGRS"
    shared_key_access: bool = True
    """Whether account keys, and the signatures made with them, open the account."""
    public_access: bool = True
    """Whether containers may be public."""
    require_https: bool = False
    sas_policy: SasPolicy | None = None
    last_access_tracking: bool = False
    """Whether the time of the last access to a block blob is kept."""
    version_level_immutability: bool = False
    """Whether new containers have it."""
    read_only: bool = False
    """Whether clients may only read, as on the secondary: while the account moves to another store."""


DEFAULT_SETTINGS = AccountSettings()


@dataclass(frozen=True, slots=True)
class Account:
    """A storage account and its keys (decoded); either of the two opens it."""

    name: str
    keys: tuple[bytes, ...]
    store: Store
    settings: AccountSettings = DEFAULT_SETTINGS
    fixed: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Settings that the operator has stated when the server was started, and where: nothing else changes them."""
