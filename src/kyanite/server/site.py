"""Where a running server is reached, and where its data is: what it says when it is ready, and to commands that ask."""

from collections.abc import Mapping
from pathlib import Path

import msgspec


class Site(msgspec.Struct, frozen=True):
    folder: Path
    """Of the store, with the management socket in it."""
    services: Mapping[str, str]
    """The URL of each service that is offered, without an account: ``http://127.0.0.1:10000``."""
    others: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What else is there: the admin port, the issuer, …"""
    is_in_memory: bool = False
    certificate: Path | None = None
    """What the server shows to TLS clients, PEM."""


class ServedAccount(msgspec.Struct, frozen=True):
    name: str
    has_development_key: bool = False
    """Whether the published key opens it, which is no secret."""


class ServerDescription(msgspec.Struct, frozen=True):
    """What the management command ``server describe`` returns."""

    services: dict[str, str]
    others: dict[str, str]
    accounts: list[ServedAccount]
    location: str
    is_in_memory: bool = False
    certificate: str = ""
    """The file with what the server shows to TLS clients; empty without TLS."""

    def endpoint(self, service: str, account: str) -> str:
        """The URL of a service for an account, path style. SMB has the account in its user name."""
        base = self.services[service]
        return f"{base}/" if base.startswith("smb:") else f"{base}/{account}"
