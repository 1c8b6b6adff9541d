"""The built-in issuer of a server that is about to start: its files, its ports, and the trust in it."""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext

from kyanite.engine.clock import wall_clock
from kyanite.rules.roles import ROLES, Assignment
from kyanite.rules.token_claims import Trust
from kyanite.server.config import Config
from kyanite.server.identity.config import BUILTIN_ISSUER, FixedJwks, IdentityConfig, TrustedIssuer
from kyanite.server.issuer import discovery, private_files, published, signing_key
from kyanite.server.issuer.clients import DEVELOPMENT_CLIENT, Clients
from kyanite.server.issuer.issuer import Issuer
from kyanite.server.issuer.published import Published
from kyanite.server.issuer.tokens import issuer_text
from kyanite.server.processes.issuer_process import IssuerProcess
from kyanite.server.sockets import address_of, open_listener
from kyanite.server.store.api import Clock


@dataclass(frozen=True, slots=True)
class BuiltinIssuer:
    process: IssuerProcess
    identity: IdentityConfig
    """What was configured, with the issuer trusted."""
    endpoints: dict[str, str]
    """For the ready line."""


def open_issuer(
    config: Config, location: Path, tls: SSLContext, clock: Clock, at_end: ExitStack
) -> BuiltinIssuer:
    """``location`` is the store's folder, whose lock the caller holds; ``clock`` that of the services."""
    folder = private_files.make_identity_folder(location)
    listener = at_end.enter_context(open_listener(config.host, config.identity_port, "the identity port"))
    plain = at_end.enter_context(
        open_listener(config.host, config.managed_identity_port, "the managed identity port")
    )
    issuer = _issuer(config, folder, clock, "https://{}:{}".format(*address_of(listener)))
    endpoints = {"identity": issuer.base, "managed_identity": "http://{}:{}".format(*address_of(plain))}
    known = (*(client.identity for client in issuer.clients), *config.identity.builtin.users)
    published.write(folder, Published(issuer.base, issuer.tenant, known))
    return BuiltinIssuer(
        IssuerProcess(issuer, config.identity.builtin.identity_header, tls, listener, plain),
        _trusting(config.identity, issuer),
        endpoints,
    )


def _issuer(config: Config, folder: Path, clock: Clock, base: str) -> Issuer:
    builtin = config.identity.builtin
    return Issuer(
        base,
        (builtin.tenant, *builtin.other_tenants),
        signing_key.load_or_make(folder),
        Clients(builtin.clients or (DEVELOPMENT_CLIENT,)),
        clock=clock,
        wall_clock=wall_clock,
        token_seconds=builtin.token_seconds,
    )


def _trusting(config: IdentityConfig, issuer: Issuer) -> IdentityConfig:
    """The development client, which everybody knows, may do everything; configured ones what the roles say."""
    trust = Trust(name=BUILTIN_ISSUER, issuer=issuer_text(issuer.base, issuer.tenant), tenant=issuer.tenant)
    trusted = TrustedIssuer(
        trust,
        FixedJwks(json.dumps(discovery.keys(issuer))),
        authorization_uri=f"{issuer.base}/{issuer.tenant}/oauth2/authorize",
    )
    assignments = (
        []
        if config.builtin.clients
        else [Assignment(DEVELOPMENT_CLIENT.identity.oid, role, issuer=BUILTIN_ISSUER) for role in ROLES]
    )
    return config.with_issuer(trusted, assignments)
