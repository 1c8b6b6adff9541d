"""What a caller may do: ``authorize(principal, operation, resource)`` returns or refuses.

The *principal* is what the caller has proved to be: the account key, an account SAS, a service SAS, a bearer token's
caller with the roles that were assigned to it (``roles.py``), a user delegation SAS, or nothing at all (anonymous). The
*operation* is a column of the operations tables, written with the letters of the REST reference:

    Access(account="o cw", service="cw", writes=True)   # Put Blob: on an object, create or write
    Access(account="o a&u", service="a&u", writes=True) # Insert Or Merge Entity: add and update, both
    Access(account="o r", service="r", public="blob")   # Get Blob: also anonymous, if the container allows it
    Access(account="c w", writes=True)                  # Set Container Metadata: never with a service SAS
    Access(account="* *", service="*")                  # Get Account Information: any valid token
    Access()                                            # Get Container ACL: the key only
    Access(…, role="blobs/write|blobs/add")             # Put Blob: an OAuth caller with a role that has either action

The *resource* is what the request names. When, from where and over which protocol a token may be used is
``sas_terms.py``; that comes first. The refusals and their order are those of the service: service, resource type,
permission, then the entities that a token names, then whether it can only be read.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, assert_never

from kyanite.edm import SasKeyRange
from kyanite.rules import entities
from kyanite.rules.refusals import AuthenticationProblem, Reason, Refused
from kyanite.rules.roles import Caller, Grant, granted_in, suffices

ANY: Final = "*"

_SERVICE_LETTERS: Final = {"blob": "b", "dfs": "b", "queue": "q", "table": "t", "file": "f"}
_ACCOUNT_SAS, _SERVICE_SAS = "account SAS", "service SAS"
_WHOLE_CONTAINERS: Final = frozenset(("c", "s", ""))

# Since this version a request without credentials is challenged; before, the resource is not found.
_CHALLENGED_SINCE: Final = {
    "blob": "2019-12-12",
    "queue": "2019-12-12",
    "table": "2020-12-06",
    "file": "2022-11-02",
    "dfs": "2017-11-09",
}


# Since which version a bearer token is accepted. The reference says 2020-12-06 for tables, but the Python client sends
# tokens with its version 2019-02-02, and is served.
_TOKENS_SINCE: Final = {
    "blob": "2017-11-09",
    "queue": "2017-11-09",
    "table": "2017-11-09",
    "file": "2022-11-02",
    "dfs": "2017-11-09",
}
_CHANGE_ENTITIES: Final = "entities/write|entities/add|entities/update|entities/delete"


@dataclass(frozen=True)
class Access:
    """What an operation needs. None: such a principal is never enough."""

    account: str | None = None
    """The resource type (s, c, o) and the letters an account SAS needs: any of them, or all when joined by
    ``&``.
    """
    service: str | None = None
    """The letters a service SAS needs."""
    public: str | None = None
    """The least public access level at which an anonymous caller may: ``blob`` or ``container``."""
    writes: bool = False
    """Neither on the secondary nor in an account that is read-only."""
    whole_container: bool = False
    """A service SAS must be for the whole container, queue, table or share."""
    in_directory: bool = False
    """A service SAS for a directory is enough on the container: its signature covers the prefix of the list."""
    role: str | None = None
    """The actions that the roles of an OAuth caller must have: alternatives joined by ``|``, of actions joined by
    ``&``; or ``*`` for any role at all.
    """
    role_since: str = ""
    """The version since which roles are enough."""
    bearer_only: bool = False
    """Whether neither the key nor a signature is enough."""

    @cached_property
    def account_need(self) -> tuple[str, str]:
        """The resource type and the letters, apart."""
        resource_type, _, letters = (self.account or "").partition(" ")
        return resource_type, letters


class AccessedResource(NamedTuple):
    """What a request names, as far as authorisation depends on it."""

    service: str
    """The service that the request was sent to: blob, queue, table, file."""
    is_read_only: bool = False
    """Whether it was addressed at the secondary, or is in an account that is read-only."""
    entity: tuple[str, str] | None = None
    """Partition key and row key, once they are known."""


@dataclass(frozen=True, slots=True)
class KeyPrincipal:
    """The account's own key opens everything."""


@dataclass(frozen=True, slots=True)
class AccountSasPrincipal:
    services: str
    resource_types: str
    permissions: str


@dataclass(frozen=True, slots=True)
class ServiceSasPrincipal:
    """A service SAS whose signature fits the resource of the request."""

    resource: str
    """What was shared: b, bs, bv, c, d, f or s; empty for a queue or table."""
    permissions: str
    keys: SasKeyRange | None = None
    """Which entities of a table were shared; None for anything else, and for all of them."""


@dataclass(frozen=True, slots=True)
class AnonymousPrincipal:
    """No credentials."""

    public_access: str = ""
    """What the container allows anyone: empty, ``blob`` or ``container``."""
    refusal: Reason = Reason.NO_AUTHENTICATION_INFORMATION


@dataclass(frozen=True, slots=True)
class RolePrincipal:
    """A caller with a bearer token."""

    caller: Caller
    grants: tuple[Grant, ...]
    """What its roles grant in the service and account of the request."""
    container: str
    """The container, queue, table or share of the request; empty at the level of the service."""
    version: str
    """The version of the request."""


@dataclass(frozen=True, slots=True)
class UserDelegationPrincipal:
    """A user delegation SAS: it allows what it says, as far as its delegator's roles allow it now."""

    sas: ServiceSasPrincipal
    delegator: RolePrincipal


Principal = (
    KeyPrincipal
    | AccountSasPrincipal
    | ServiceSasPrincipal
    | AnonymousPrincipal
    | RolePrincipal
    | UserDelegationPrincipal
)

ACCOUNT_KEY: Final = KeyPrincipal()


class AccessFacts(NamedTuple):
    """A shared access signature that does not allow an operation."""

    kind: str
    """``account SAS`` or ``service SAS``."""
    field: str
    """The field that does not; empty if no such signature is ever enough."""
    given: str
    needed: str
    """The letters that would be enough: any of them, or all when joined by ``&``."""


class RoleFacts(NamedTuple):
    """A caller whose roles do not allow an operation."""

    caller: Caller
    container: str
    grants: tuple[Grant, ...]
    """Of its roles in this service and account, for any container."""
    needed: str
    """As in ``Access.role``; empty if roles are never enough."""


class SignatureFacts(NamedTuple):
    """A signature that is not the one that the server has computed."""

    kind: str
    string_to_sign: str
    account: str = ""
    """The account that the client has named, if it is another one than that of the URL."""
    has_key: bool = True
    """Whether there is any key that the signature could be of."""


class PublicFacts(NamedTuple):
    """A request without credentials."""

    level: str
    """The public access level of the container."""
    needed: str | None
    """The level that would be enough; None if none is."""


def authorize(principal: Principal, operation: Access, resource: AccessedResource) -> None:
    """Refuse what the principal may not do."""
    if operation.bearer_only:
        _check_bearer(principal)
    match principal:
        case KeyPrincipal():
            pass
        case AccountSasPrincipal():
            _check_account_sas(principal, operation, resource.service)
        case ServiceSasPrincipal():
            _check_service_sas(principal, operation)
            if resource.entity is not None:
                entities.check_within(principal.keys, *resource.entity)
        case AnonymousPrincipal():
            if not _is_public(principal.public_access, operation.public):
                raise Refused(principal.refusal, facts=PublicFacts(principal.public_access, operation.public))
        case RolePrincipal():
            _check_roles(principal, operation)
        case UserDelegationPrincipal():
            _check_service_sas(principal.sas, operation)
            _check_roles(principal.delegator, operation)
        case _:
            assert_never(principal)
    if operation.writes and resource.is_read_only:
        raise Refused(Reason.WRITE_ON_SECONDARY)


def may_overwrite(principal: Principal) -> bool:
    """Whether what exists may be replaced: create without write makes new things only."""
    match principal:
        case KeyPrincipal():
            return True
        case AccountSasPrincipal() | ServiceSasPrincipal():
            return "w" in principal.permissions
        case AnonymousPrincipal():
            return False
        case RolePrincipal():
            return _allows(principal, "blobs/write|files/write")
        case UserDelegationPrincipal():
            return "w" in principal.sas.permissions and _allows(
                principal.delegator, "blobs/write|files/write"
            )
        case _:
            assert_never(principal)


def may_change_entities(principal: Principal) -> bool:
    """Whether the principal may change any entities at all."""
    match principal:
        case KeyPrincipal():
            return True
        case AccountSasPrincipal() | ServiceSasPrincipal():
            return not set("aud").isdisjoint(principal.permissions)
        case RolePrincipal():
            return any(suffices(grant.actions, _CHANGE_ENTITIES) for grant in principal.grants)
        case AnonymousPrincipal() | UserDelegationPrincipal():
            return False
        case _:
            assert_never(principal)


def within(principal: Principal, container: str) -> Principal:
    """The same principal for another container, queue, table or share of the same service and account.

    Only a role is limited to one. What a signature is for is checked against the resource of the request.
    """
    if not isinstance(principal, RolePrincipal):
        return principal
    return RolePrincipal(principal.caller, principal.grants, container, principal.version)


def may_read_uncommitted(principal: Principal) -> bool:
    """Whether blocks that no list has committed may be listed: public access is to what was published."""
    return not isinstance(principal, AnonymousPrincipal)


def shared_keys(principal: Principal) -> SasKeyRange | None:
    """The entities that a token is limited to; None when there is no limit."""
    return principal.keys if isinstance(principal, ServiceSasPrincipal) else None


def refusal_without_credentials(service: str, version: str, *, may_be_public: bool = True) -> Reason:
    """How a request that has no credentials and needs some is refused.

    ``may_be_public``: whether the account permits containers to be public, which only those of blobs can be.
    """
    if version >= _CHALLENGED_SINCE[service]:
        return Reason.NO_AUTHENTICATION_INFORMATION
    if service == "blob" and not may_be_public:
        return Reason.PUBLIC_ACCESS_NOT_PERMITTED
    return Reason.RESOURCE_NOT_FOUND


def refused_token(refusal: Refused, service: str, version: str) -> Refused:
    """How a bad bearer token is refused: versions without a challenge answer as for a wrong signature."""
    if refusal.reason is Reason.INVALID_AUTHENTICATION_INFO and version < _CHALLENGED_SINCE[service]:
        return Refused(Reason.AUTHENTICATION_FAILED, refusal.detail, refusal.facts)
    return refusal


def check_token_version(service: str, version: str) -> None:
    """Refuse a bearer token in a request of a version that has none."""
    if version < _TOKENS_SINCE[service]:
        raise Refused(
            Reason.AUTHENTICATION_FAILED,
            AuthenticationProblem("Authentication scheme Bearer is not supported in this version."),
        )


def _check_bearer(principal: Principal) -> None:
    if not isinstance(principal, RolePrincipal | AnonymousPrincipal):
        raise Refused(
            Reason.AUTHENTICATION_FAILED,
            AuthenticationProblem("Only authentication scheme Bearer is supported."),
        )


def _check_roles(principal: RolePrincipal, operation: Access) -> None:
    if operation.role is None or principal.version < operation.role_since:
        raise Refused(Reason.AUTHORIZATION_FAILURE, facts=_role_facts(principal, ""))
    if not _allows(principal, operation.role):
        raise Refused(Reason.PERMISSION_MISMATCH, facts=_role_facts(principal, operation.role))


def _role_facts(principal: RolePrincipal, needed: str) -> RoleFacts:
    return RoleFacts(principal.caller, principal.container, principal.grants, needed)


def _allows(principal: RolePrincipal, need: str) -> bool:
    if need == ANY:
        return bool(principal.grants)
    return suffices(granted_in(principal.grants, principal.container), need)


def _check_account_sas(principal: AccountSasPrincipal, operation: Access, service: str) -> None:
    if operation.account is None:
        raise Refused(Reason.AUTHORIZATION_FAILURE, facts=AccessFacts(_ACCOUNT_SAS, "", "", ""))
    letter = _SERVICE_LETTERS[service]
    if letter not in principal.services:
        raise Refused(
            Reason.SERVICE_MISMATCH, facts=AccessFacts(_ACCOUNT_SAS, "ss", principal.services, letter)
        )
    resource_type, letters = operation.account_need
    if resource_type not in principal.resource_types and resource_type != ANY:
        given = principal.resource_types
        raise Refused(
            Reason.RESOURCE_TYPE_MISMATCH, facts=AccessFacts(_ACCOUNT_SAS, "srt", given, resource_type)
        )
    if not _has(principal.permissions, letters):
        raise Refused(
            Reason.PERMISSION_MISMATCH, facts=AccessFacts(_ACCOUNT_SAS, "sp", principal.permissions, letters)
        )


def _check_service_sas(principal: ServiceSasPrincipal, operation: Access) -> None:
    if operation.service is None:
        raise Refused(Reason.AUTHORIZATION_FAILURE, facts=AccessFacts(_SERVICE_SAS, "", "", ""))
    on_container = operation.account is not None and operation.account[0] == "c"
    if operation.in_directory and principal.resource == "d":
        on_container = False
    if (on_container or operation.whole_container) and principal.resource not in _WHOLE_CONTAINERS:
        raise Refused(
            Reason.AUTHENTICATION_FAILED,
            AuthenticationProblem("The specified signed resource is not allowed for this resource level"),
            AccessFacts(_SERVICE_SAS, "sr", principal.resource, "c or s"),
        )
    if not _has(principal.permissions, operation.service):
        given, needed = principal.permissions, operation.service
        raise Refused(Reason.PERMISSION_MISMATCH, facts=AccessFacts(_SERVICE_SAS, "sp", given, needed))


def _has(permissions: str, letters: str) -> bool:
    if letters in permissions or letters == ANY:
        return True
    if "&" in letters:
        return all(letter in permissions for letter in letters.split("&"))
    return any(letter in permissions for letter in letters)


def _is_public(level: str, needed: str | None) -> bool:
    return (
        level == "container" if needed == "container" else needed == "blob" and level in {"blob", "container"}
    )
