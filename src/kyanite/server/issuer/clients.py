"""Whom the development issuer knows: applications with their credentials, and the identities in their tokens."""

import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A server without an issuer reads this module too, and needs nothing of what that one imports.
    from kyanite.server.issuer.public_keys import PublicKey

DEVELOPMENT_TENANT = "11111111-1111-4111-8111-111111111111"
DEVELOPMENT_IDENTITY_HEADER = "kyanite-development"
FEDERATION_AUDIENCE = "api://AzureADTokenExchange"
"""The audience of an assertion that a workload exchanges for a token."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a token is for."""

    oid: str
    client_id: str = ""
    """Empty for a user, who is no application."""
    groups: tuple[str, ...] = ()
    app_roles: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class AssertionSource:
    """Who may vouch for a client: a signed assertion with this issuer and subject stands for its secret."""

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    keys: "tuple[tuple[str, PublicKey], ...]" = field(repr=False)
    """Each with its ``kid``, which may be empty."""
    is_this_issuer: bool = False


@dataclass(frozen=True, slots=True)
class Client:
    """An application that may ask for tokens."""

    identity: Identity
    secrets: tuple[str, ...] = field(default=(), repr=False)
    certificates: "tuple[PublicKey, ...]" = field(default=(), repr=False)
    """Keys whose assertions stand for a secret, as those of ``CertificateCredential``."""
    federated: tuple[AssertionSource, ...] = ()
    is_managed_identity: bool = False
    """Whether the managed identity endpoints give out its tokens, without any credential."""
    resource_id: str = ""
    """How Azure's resource manager would call the managed identity."""

    @property
    def id(self) -> str:
        return self.identity.client_id

    def has_secret(self, given: str) -> bool:
        """Compares in a time that tells nothing of the secrets."""
        text = given.encode()
        matches = [hmac.compare_digest(secret.encode(), text) for secret in self.secrets]
        return any(matches)


DEVELOPMENT_CLIENT = Client(
    Identity(
        oid="33333333-3333-4333-8333-333333333333",
        client_id="22222222-2222-4222-8222-222222222222",
        name="development",
    ),
    # It is no secret: it is in the documentation, and serves on loopback only.
    secrets=("kyanite-development-secret",),
    is_managed_identity=True,
)


class Clients:
    """All clients, found by what a request names."""

    def __init__(self, clients: Iterable[Client]) -> None:
        self._all: Sequence[Client] = tuple(clients)
        self._by_id = {client.id: client for client in self._all}

    def __iter__(self) -> Iterator[Client]:
        return iter(self._all)

    def find(self, client_id: str) -> Client | None:
        return self._by_id.get(client_id.lower())

    def managed_identity(self, *, client_id: str = "", oid: str = "", resource_id: str = "") -> Client | None:
        """The one that is named; without a name the first, as the one that the system assigned."""
        for client in self._all:
            if (
                client.is_managed_identity
                and client_id.lower() in ("", client.id)
                and oid.lower() in ("", client.identity.oid)
                and resource_id.lower() in ("", client.resource_id.lower())
            ):
                return client
        return None
