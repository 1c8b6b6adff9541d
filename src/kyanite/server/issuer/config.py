"""The configuration of the built-in development issuer, in the table ``[identity]``:

    tenant = "…"                              # a GUID; default: the development tenant
    other_tenants = ["…"]                     # tenants whose tokens it gives out too, but that storage does not trust
    token_seconds = 3599                      # how long a token is good
    identity_header = "…"                     # what App Service calls IDENTITY_HEADER

    [[identity.clients]]                      # default: the development client
    id = "…"
    name = "backup job"
    secret = "…"                              # or secrets = ["…", "…"], or secret_file
    object_id = "…"                           # default: a GUID that follows from the tenant and the id
    groups = ["…"]
    app_roles = ["…"]                         # of the application, which are no roles of storage
    certificate = "client.pem"                # a certificate or public key for assertions that the client signs
    managed_identity = true                   # whether the managed identity endpoints give out its tokens
    resource_id = "/subscriptions/…"          # how a client may name it there

    [[identity.clients.federated]]            # assertions of another issuer that stand for a secret
    issuer = "https://cluster.example.org"
    subject = "system:serviceaccount:default:app"
    audiences = ["api://AzureADTokenExchange"]
    jwks_file = "cluster.json"

    [[identity.users]]                        # for kyanite token
    name = "alice"
    object_id = "…"
    groups = ["…"]

Roles are given to clients, users and groups by ``[[identity.roles]]``. Without clients there is the development client,
which has every role.
"""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kyanite.server.failures import BadUsage
from kyanite.server.identity.tables import ConfigTable
from kyanite.server.issuer.clients import (
    DEVELOPMENT_IDENTITY_HEADER,
    DEVELOPMENT_TENANT,
    FEDERATION_AUDIENCE,
    AssertionSource,
    Client,
    Identity,
)

if TYPE_CHECKING:
    # A server without an issuer needs nothing of what this imports.
    from kyanite.server.issuer.public_keys import PublicKey

ISSUER_KEYS = ("tenant", "other_tenants", "token_seconds", "identity_header", "clients", "users")
DEFAULT_TOKEN_SECONDS = 3599
TOKEN_SECONDS_MIN, TOKEN_SECONDS_MAX = 60, 86_400
_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_CLIENT_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerConfig:
    tenant: str = DEVELOPMENT_TENANT
    other_tenants: tuple[str, ...] = ()
    token_seconds: int = DEFAULT_TOKEN_SECONDS
    identity_header: str = field(default=DEVELOPMENT_IDENTITY_HEADER, repr=False)
    clients: tuple[Client, ...] = ()
    """Empty for the development client."""
    users: tuple[Identity, ...] = ()


DEFAULT = IssuerConfig()


def parse_issuer(top: ConfigTable) -> IssuerConfig:
    """Take the keys of the issuer out of the table ``[identity]``."""
    tenant = top.guid("tenant") or DEVELOPMENT_TENANT
    seconds = top.number("token_seconds", DEFAULT_TOKEN_SECONDS)
    if not TOKEN_SECONDS_MIN <= seconds <= TOKEN_SECONDS_MAX:
        raise BadUsage(f"{top.path}.token_seconds must be from {TOKEN_SECONDS_MIN} to {TOKEN_SECONDS_MAX}.")
    header = top.text("identity_header") or DEVELOPMENT_IDENTITY_HEADER
    if _HEADER.fullmatch(header) is None:
        raise BadUsage(f"{top.path}.identity_header must be what a header can be: ASCII on one line.")
    clients = tuple(_client(each, tenant) for each in top.tables("clients"))
    users = tuple(_user(each) for each in top.tables("users"))
    everyone = [client.identity for client in clients] + list(users)
    _check_once(top, "clients", "id", [client.id for client in clients])
    _check_once(
        top, "clients", "resource_id", [each.resource_id.lower() for each in clients if each.resource_id]
    )
    _check_once(top, "clients or users", "object_id", [each.oid for each in everyone])
    _check_once(top, "clients or users", "name", [each.name for each in everyone if each.name])
    return IssuerConfig(
        tenant=tenant,
        other_tenants=top.guids("other_tenants"),
        token_seconds=seconds,
        identity_header=header,
        clients=clients,
        users=users,
    )


def _client(table: ConfigTable, tenant: str) -> Client:
    client_id = table.required("id").lower()
    if _CLIENT_ID.fullmatch(client_id) is None:
        raise BadUsage(f"{table.path}.id must be a GUID, or letters, digits, dots and hyphens.")
    identity = Identity(
        oid=table.guid("object_id") or str(uuid.uuid5(uuid.UUID(tenant), client_id)),
        client_id=client_id,
        groups=table.texts("groups"),
        app_roles=table.texts("app_roles"),
        name=table.text("name"),
    )
    certificate = table.file("certificate")
    client = Client(
        identity,
        secrets=_secrets(table),
        certificates=_certificates(table, certificate) if certificate else (),
        federated=tuple(_federated(each) for each in table.tables("federated")),
        is_managed_identity=table.flag("managed_identity"),
        resource_id=table.text("resource_id"),
    )
    table.finish()
    return client


def _user(table: ConfigTable) -> Identity:
    oid = table.guid("object_id")
    if not oid:
        raise BadUsage(f"{table.path}.object_id is missing.")
    user = Identity(oid=oid, groups=table.texts("groups"), name=table.text("name"))
    table.finish()
    return user


def _secrets(table: ConfigTable) -> tuple[str, ...]:
    given = [secret for secret in (table.text("secret"), *table.texts("secrets")) if secret]
    if path := table.file("secret_file"):
        secret = _read(table, "secret_file", path).decode("utf-8", "replace").strip()
        if not secret:
            raise BadUsage(f"{table.path}.secret_file is empty.")
        given.append(secret)
    return tuple(given)


def _certificates(table: ConfigTable, path: Path) -> "tuple[PublicKey, ...]":
    from kyanite.server.issuer.public_keys import key_in_pem

    key = key_in_pem(_read(table, "certificate", path))
    if key is None:
        raise BadUsage(f"{table.path}.certificate has no RSA or P-256 key: {path}.")
    return (key,)


def _federated(table: ConfigTable) -> AssertionSource:
    from kyanite.server.issuer.public_keys import keys_in_jwks

    path = table.file("jwks_file")
    if path is None:
        raise BadUsage(f"{table.path}.jwks_file is missing.")
    keys = keys_in_jwks(_read(table, "jwks_file", path))
    if not keys:
        raise BadUsage(f"{table.path}.jwks_file has no RSA or P-256 public key: {path}.")
    source = AssertionSource(
        table.required("issuer"),
        table.required("subject"),
        table.texts("audiences") or (FEDERATION_AUDIENCE,),
        keys,
    )
    table.finish()
    return source


def _read(table: ConfigTable, key: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadUsage(f"{table.path}.{key} cannot be read: {path}: {error.strerror}.") from None


def _check_once(top: ConfigTable, key: str, what: str, texts: Sequence[str]) -> None:
    for text in texts:
        if texts.count(text) > 1:
            raise BadUsage(f"{top.path}.{key} has the {what} {text!r} twice.")
