"""What the server hands to every service: the store, the accounts, and the sources of time and chance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kyanite.engine.api import Engine
from kyanite.extents.api import Extents
from kyanite.values import Instant


@dataclass(frozen=True, slots=True)
class Account:
    """A storage account and its keys (decoded); either of the two opens it."""

    name: str
    keys: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Environment:
    engine: Engine
    extents: Extents
    accounts: Mapping[str, Account]
    clock: Callable[[], Instant]
    """The wall clock, for dates in requests; whatever is stored takes its time from the transaction."""
    fresh_guid: Callable[[], str]
    """A new random GUID in its canonical spelling."""
    services_by_port: Mapping[int, str] = field(default_factory=dict)
    """The words of the services that this server offers, by the ports they listen on."""
