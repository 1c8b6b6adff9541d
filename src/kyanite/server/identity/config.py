"""The configuration of identity: which issuers of bearer tokens are trusted, and which roles their principals have.

It is the table ``[identity]`` of the configuration file, and ``--dev-identity``:

    [identity]
    dev = "builtin"                       # or "any"; both are for development and on loopback only
                                          # server/issuer/config.py has the keys of the built-in issuer

    [[identity.issuers]]
    name = "entra"
    issuer = "https://sts.windows.net/<tenant>/"        # the exact text of the claim iss
    jwks_url = "https://login.microsoftonline.com/<tenant>/discovery/keys"    # or discovery_url, or jwks_file
    audiences = ["https://storage.azure.com"]           # default: those of the storage service
    principal_claim = "oid"                             # default: oid, or sub in a token without
    group_claim = "groups"
    tenant = "<tenant>"
    tolerance_seconds = 300
    authorization_uri = "https://…/oauth2/authorize"    # for the challenge

    [[identity.roles]]
    principal = "<object id, application id, group id, claim=value, or *>"
    role = "Storage Blob Data Contributor"              # or its id
    scope = "lake/photos"                               # an account, or one container of it; default: everything
    issuer = "entra"                                    # needed where several issuers are trusted; "*" for any

Anything unknown, of the wrong type or contradictory is one ``BadUsage`` with the path of the key.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import msgspec

from kyanite.rules.roles import ANYONE, Assignment, role_of
from kyanite.rules.token_claims import STORAGE_AUDIENCE, Trust
from kyanite.server.failures import BadUsage
from kyanite.server.identity.tables import ConfigTable
from kyanite.server.issuer.config import DEFAULT, ISSUER_KEYS, IssuerConfig, parse_issuer

ASSIGNMENTS_MAX = 2000
"""All of them are compared for every request with a token."""
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_TOLERANCE_SECONDS_MAX = 3600
_CHALLENGE = "Bearer authorization_uri={} resource_id={}"
_COMMON_AUTHORITY = "https://login.microsoftonline.com/common/oauth2/authorize"
_ENTRA_AUTHORITIES = {
    "sts.windows.net": "login.microsoftonline.com",
    "sts.chinacloudapi.cn": "login.partner.microsoftonline.cn",
    "sts.microsoftonline.de": "login.microsoftonline.de",
}


class Development(Enum):
    """What a server for development accepts besides the tokens of trusted issuers."""

    OFF = ""
    ANY = "any"
    """Any well-formed token, without checking its signature; every caller may do everything."""
    BUILTIN = "builtin"
    """The tokens of its own issuer."""


class JwksFile(msgspec.Struct, frozen=True):
    """The public keys of an issuer in a file, a JSON Web Key Set. It is read again when a key is not found."""

    path: Path


class JwksUrl(msgspec.Struct, frozen=True):
    """The address of an issuer's JSON Web Key Set."""

    url: str


class DiscoveryUrl(msgspec.Struct, frozen=True):
    """The address of an issuer's OpenID configuration, which names that of its keys."""

    url: str


class FixedJwks(msgspec.Struct, frozen=True):
    """Keys that the server knows already: those of its own issuer. The text of a JSON Web Key Set."""

    document: str


KeySource = JwksFile | JwksUrl | DiscoveryUrl | FixedJwks


class TrustedIssuer(msgspec.Struct, frozen=True):
    trust: Trust
    keys: KeySource
    authorization_uri: str = ""
    """Where a client can ask for a token, for the challenge."""

    @property
    def challenge(self) -> str:
        """The value of WWW-Authenticate. Clients ask the tenant in it for a token for the resource in it."""
        resource = next(iter(self.trust.audiences), STORAGE_AUDIENCE)
        return _CHALLENGE.format(self.authorization_uri or _authority_of(self.trust.issuer), resource)


class IdentityConfig(msgspec.Struct, frozen=True, kw_only=True):
    development: Development = Development.OFF
    issuers: tuple[TrustedIssuer, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    builtin: IssuerConfig = DEFAULT
    """The built-in issuer, where that is on."""

    @property
    def is_on(self) -> bool:
        return self.development is not Development.OFF or bool(self.issuers)

    @property
    def challenge(self) -> str:
        """That of the first issuer; without one, that of Microsoft's public cloud."""
        if self.issuers:
            return self.issuers[0].challenge
        return _CHALLENGE.format(_COMMON_AUTHORITY, STORAGE_AUDIENCE)

    def with_issuer(self, issuer: TrustedIssuer, assignments: Sequence[Assignment] = ()) -> Self:
        """The same, trusting the server's own issuer first."""
        return msgspec.structs.replace(
            self, issuers=(issuer, *self.issuers), assignments=(*self.assignments, *assignments)
        )


OFF = IdentityConfig()


def parse_identity(
    table: Mapping[str, object], development: str | None = None, folder: Path = Path()
) -> IdentityConfig:
    """Read the table ``[identity]`` of a file in this folder.

    ``development`` is what ``--dev-identity`` says, which counts before what is in the table.
    """
    top = ConfigTable("identity", table, folder)
    stated = top.text("dev")
    dev = stated if development is None else development
    try:
        mode = Development(dev)
    except ValueError:
        raise BadUsage(f'identity.dev must be "builtin" or "any", not {dev!r}.') from None
    issuers = tuple(_issuer(each) for each in top.tables("issuers"))
    _check_once("issuers", [each.trust.name for each in issuers])
    _check_once("issuers", [each.trust.issuer for each in issuers])
    builtin = parse_issuer(top)
    names = [each.trust.name for each in issuers] + ([BUILTIN_ISSUER] if mode is Development.BUILTIN else [])
    assignments = tuple(_assignment(each, names) for each in top.tables("roles"))
    if len(assignments) > ASSIGNMENTS_MAX:
        raise BadUsage(f"identity.roles has more than {ASSIGNMENTS_MAX} entries: give roles to groups.")
    config = IdentityConfig(
        development=mode,
        issuers=issuers,
        assignments=assignments,
        builtin=builtin,
    )
    top.finish()
    _check_modes(config)
    return config


BUILTIN_ISSUER = "builtin"
"""The name of the built-in issuer in role assignments."""


def check_loopback(config: IdentityConfig, *, host: str, is_loopback: bool) -> None:
    """The modes for development open the server to everyone who can reach it."""
    if config.development is not Development.OFF and not is_loopback:
        raise BadUsage(
            f"--dev-identity {config.development.value} would let in everyone who can reach {host}: "
            "it is for loopback only."
        )


def _check_modes(config: IdentityConfig) -> None:
    if config.development is Development.ANY and (config.issuers or config.assignments):
        raise BadUsage(
            'identity.dev = "any" checks no issuer and lets every caller do everything, so it takes neither '
            "issuers nor roles."
        )
    if config.assignments and not config.is_on:
        raise BadUsage("identity.roles are given, but identity.issuers is missing.")
    if config.builtin != DEFAULT and config.development is not Development.BUILTIN:
        raise BadUsage(
            f"{', '.join(f'identity.{key}' for key in ISSUER_KEYS)} are those of the built-in issuer: "
            'set identity.dev = "builtin".'
        )


def _issuer(table: ConfigTable) -> TrustedIssuer:
    sources: list[KeySource] = []
    if path := table.file("jwks_file"):
        sources.append(JwksFile(path))
    if url := table.url("jwks_url"):
        sources.append(JwksUrl(url))
    if url := table.url("discovery_url"):
        sources.append(DiscoveryUrl(url))
    if len(sources) != 1:
        raise BadUsage(f"{table.path} needs one of jwks_file, jwks_url and discovery_url.")
    tolerance = table.number("tolerance_seconds", 300)
    if not 0 <= tolerance <= _TOLERANCE_SECONDS_MAX:
        raise BadUsage(f"{table.path}.tolerance_seconds must be from 0 to {_TOLERANCE_SECONDS_MAX}.")
    trust = Trust(
        name=table.required("name"),
        issuer=table.required("issuer"),
        audiences=table.texts("audiences"),
        principal_claim=table.text("principal_claim"),
        group_claim=table.text("group_claim") or "groups",
        tenant=table.guid("tenant"),
        tolerance_seconds=tolerance,
    )
    if trust.name in {BUILTIN_ISSUER, ANYONE}:
        raise BadUsage(f"{table.path}.name must not be {trust.name!r}.")
    issuer = TrustedIssuer(trust, sources[0], table.url("authorization_uri"))
    table.finish()
    return issuer


def _assignment(table: ConfigTable, issuers: Sequence[str]) -> Assignment:
    text = table.required("role")
    role = role_of(text)
    if role is None:
        raise BadUsage(f"{table.path}.role names no built-in role of Azure Storage: {text!r}.")
    principal = table.required("principal")
    if principal.startswith("=") or principal.endswith("="):
        raise BadUsage(f"{table.path}.principal must be an id, claim=value or *, not {principal!r}.")
    account, slash, container = table.text("scope").partition("/")
    if (account or slash) and not _ACCOUNT.fullmatch(account):
        raise BadUsage(f"{table.path}.scope must be an account or account/container.")
    if slash and (not container or "/" in container):
        raise BadUsage(f"{table.path}.scope must be an account or account/container.")
    if container and not role.service:
        raise BadUsage(f"{table.path}.scope: the role {role.name} is for whole accounts.")
    issuer = table.text("issuer")
    if not issuer and len(issuers) > 1:
        raise BadUsage(f"{table.path}.issuer must say whose principal it is: {', '.join(issuers)}, or *.")
    if issuer and issuer != ANYONE and issuer not in issuers:
        raise BadUsage(f"{table.path}.issuer names no trusted issuer: {issuer!r}.")
    table.finish()
    return Assignment(principal, role, account, container, "" if issuer == ANYONE else issuer)


def _check_once(name: str, texts: Sequence[str]) -> None:
    for text in texts:
        if texts.count(text) > 1:
            raise BadUsage(f"identity.{name} has {text!r} twice.")


def _authority_of(issuer: str) -> str:
    """Where an issuer of Microsoft's clouds authorises; for others, the customary place below the issuer."""
    parts = urlsplit(issuer)
    host = _ENTRA_AUTHORITIES.get(parts.netloc, parts.netloc)
    path = parts.path.rstrip("/").removesuffix("/v2.0")
    return f"{parts.scheme}://{host}{path}/oauth2/authorize"
