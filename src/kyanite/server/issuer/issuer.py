"""The development issuer: its name, its key, its clients, and the tokens that it makes for them."""

from collections.abc import Callable
from dataclasses import dataclass

from kyanite.server.issuer.clients import FEDERATION_AUDIENCE, AssertionSource, Client, Clients, Identity
from kyanite.server.issuer.signing_key import SigningKey
from kyanite.server.issuer.tokens import TokenTerms, claims_of, issuer_text, signed
from kyanite.values import Instant, unix_seconds


@dataclass(frozen=True, slots=True)
class IssuedToken:
    text: str
    begins: int
    """Seconds since 1970."""
    seconds: int

    @property
    def ends(self) -> int:
        return self.begins + self.seconds


@dataclass(frozen=True, slots=True)
class Issuer:
    base: str
    """``https://`` and the address of its port."""
    tenants: tuple[str, ...]
    """The first is the one that storage trusts."""
    key: SigningKey
    clients: Clients
    clock: Callable[[], Instant]
    """The time of the services, which judge tokens by it. That of a testing server may be ahead of the real one."""
    wall_clock: Callable[[], Instant]
    """The real time, by which clients and other issuers make assertions."""
    token_seconds: int

    @property
    def tenant(self) -> str:
        return self.tenants[0]

    @property
    def now(self) -> int:
        return unix_seconds(self.clock())

    @property
    def real_now(self) -> int:
        return unix_seconds(self.wall_clock())

    def issue(self, identity: Identity, tenant: str, audience: str, proof: str = "") -> IssuedToken:
        terms = TokenTerms(tenant, audience, self.now, self.token_seconds)
        claims = claims_of(self.base, identity, terms, proof)
        return IssuedToken(signed(self.key, claims), terms.now, terms.seconds)

    def assertion_sources(self, client: Client, token_endpoints: tuple[str, ...]) -> list[AssertionSource]:
        """Who may vouch for a client. ``token_endpoints`` are the URLs of the endpoint that was asked."""
        own_keys = tuple(("", key) for key in client.certificates)
        by_issuer = AssertionSource(
            issuer_text(self.base, self.tenant),
            client.identity.oid,
            (FEDERATION_AUDIENCE,),
            ((self.key.id, self.key.private.public_key()),),
            is_this_issuer=True,
        )
        return [
            AssertionSource(client.id, client.id, token_endpoints, own_keys),
            by_issuer,
            *client.federated,
        ]
