"""The built-in roles of Azure Storage as a table, and what an assignment of one grants to a caller.

A role is a list of *actions*. Their names are Azure's, without what all of them begin with: ``containers/read`` is
``Microsoft.Storage/storageAccounts/blobServices/containers/read``, ``blobs/add`` is ``…/containers/blobs/add/action``.
``blobs/*`` is every action on blobs. Which action an operation needs is a column of the operations tables; whether the
roles of a caller suffice is decided by ``authorize``.

Management roles give management actions only, and so no access to data. Conditions of assignments are not supported.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

ANYONE = "*"
"""The principal of an assignment to every caller with a valid token."""

_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


class Role(NamedTuple):
    name: str
    id: str
    service: str
    """The one service that it is for; empty for a management role."""
    actions: frozenset[str]


def _role(name: str, identifier: str, service: str, *actions: str) -> Role:
    return Role(name, identifier, service, frozenset(actions))


_BLOB_KEY = "blobServices/generateUserDelegationKey"
_QUEUE_KEY = "queueServices/generateUserDelegationKey"
_TABLE_KEY = "tableServices/generateUserDelegationKey"
_FILE_KEY = "fileServices/generateUserDelegationKey"
_READ_BACKUP = "fileServices/readFileBackupSemantics"
_WRITE_BACKUP = "fileServices/writeFileBackupSemantics"
_MANAGEMENT = (
    "blobServices/*", "containers/*", "queueServices/*", "queues/*", "tableServices/*", "tables/*",
    "fileServices/read", "fileServices/write", _FILE_KEY, "shares/*",
)  # fmt: skip
_MANAGEMENT_READ = (
    "blobServices/read", "containers/read", "queueServices/read", "queues/read", "tableServices/read", "tables/read",
    "fileServices/read", "shares/read",
)  # fmt: skip

# fmt: off
ROLES = (
    _role("Storage Blob Data Owner", "b7e6dc6d-f1e8-4753-8033-0f276bb0955b", "blob",
          "containers/*", _BLOB_KEY, "blobs/*"),
    _role("Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe", "blob",
          "containers/read", "containers/write", "containers/delete", _BLOB_KEY,
          "blobs/read", "blobs/write", "blobs/delete", "blobs/move", "blobs/add"),
    _role("Storage Blob Data Reader", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", "blob",
          "containers/read", _BLOB_KEY, "blobs/read"),
    _role("Storage Blob Delegator", "db58b8e5-c6ad-4a2a-8342-4190687cbf4a", "blob", _BLOB_KEY),
    _role("Storage Queue Data Contributor", "974c5e8b-45b9-4653-ba55-5f855dd0fb88", "queue",
          "queues/read", "queues/write", "queues/delete",
          "messages/read", "messages/write", "messages/delete", "messages/process"),
    _role("Storage Queue Data Reader", "19e7f393-937e-4f77-808e-94535e297925", "queue", "queues/read", "messages/read"),
    _role("Storage Queue Data Message Processor", "8a0f0c08-91a1-4084-bc3d-661d67233fed", "queue",
          "messages/read", "messages/process"),
    _role("Storage Queue Data Message Sender", "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a", "queue", "messages/add"),
    _role("Storage Queue Delegator", "7ee386e9-84f0-448e-80a6-f185f6533131", "queue", _QUEUE_KEY),
    _role("Storage Table Data Contributor", "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3", "table",
          "tables/read", "tables/write", "tables/delete",
          "entities/read", "entities/write", "entities/delete", "entities/add", "entities/update"),
    _role("Storage Table Data Reader", "76199698-9eea-4c19-bc75-cec21354c6b6", "table", "tables/read", "entities/read"),
    _role("Storage Table Delegator", "965033a5-c8eb-4f35-b82f-fef460a3606d", "table", _TABLE_KEY),
    _role("Storage File Data Privileged Contributor", "69566ab7-960f-475b-8e7c-b3118f30c6bd", "file",
          "files/read", "files/write", "files/delete", "files/modifypermissions", _READ_BACKUP, _WRITE_BACKUP),
    _role("Storage File Data Privileged Reader", "b8eda974-7b85-4f76-af95-65846b26df6d", "file",
          "files/read", _READ_BACKUP),
    _role("Storage File Data SMB Share Reader", "aba4ae5f-2193-4029-9191-0cb91df5e314", "file", "files/read"),
    _role("Storage File Data SMB Share Contributor", "0c867c2a-1d8c-454a-a3db-ab2ea1bdc8bb", "file",
          "files/read", "files/write", "files/delete"),
    _role("Storage File Data SMB Share Elevated Contributor", "a7264617-510b-434b-a828-9731dc254ea7", "file",
          "files/read", "files/write", "files/delete", "files/modifypermissions"),
    _role("Storage File Data SMB Admin", "bbf004e3-0e4b-4f86-ae4f-1f8fb47b357b", "file",
          "files/read", "files/write", "files/delete", "files/modifypermissions", "files/takeOwnership",
          _READ_BACKUP, _WRITE_BACKUP),
    _role("Storage File Delegator", "765a04e0-5de8-4bb2-9bf6-b2a30bc03e91", "file", _FILE_KEY),
    _role("Storage Account Contributor", "17d1049b-9a84-46fb-8f53-869881c3d3ab", "", *_MANAGEMENT),
    _role("Owner", "8e3af657-a8ff-443c-a75c-2fe8c4bcb635", "", *_MANAGEMENT),
    _role("Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c", "", *_MANAGEMENT),
    _role("Reader", "acdd72a7-3385-48ef-bd42-f606fba81ae7", "", *_MANAGEMENT_READ),
)
# fmt: on

EVERYTHING = frozenset(action for role in ROLES for action in role.actions)
"""What every caller may do where signatures of tokens are not checked."""

_BY_NAME: Mapping[str, Role] = {
    **{role.name.casefold(): role for role in ROLES},
    **{role.id: role for role in ROLES},
}


def role_of(text: str) -> Role | None:
    """The role of this name or id; None if there is none."""
    return _BY_NAME.get(text.strip().casefold())


class Assignment(NamedTuple):
    """A role that a principal has, for everything or in a scope."""

    principal: str
    """The object id, the application or a group of the caller; ``claim=value``; or ``*`` for every caller."""
    role: Role
    account: str = ""
    """The account that it is limited to, if any."""
    container: str = ""
    """The container, queue, table or share of the account that it is limited to, if any."""
    issuer: str = ""
    """The name of the issuer of whose principals this is one; empty for any."""


class Caller(msgspec.Struct, frozen=True):
    """Whom a token that was checked speaks for."""

    issuer: str
    """The name of the issuer in the configuration."""
    principal: str
    """What roles are assigned to: the object id, or what the configuration takes for it."""
    object_id: str
    """A GUID: the principal if it is one, or one derived from it."""
    tenant_id: str
    """A GUID."""
    application_id: str = ""
    groups: frozenset[str] = frozenset()
    claims: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    """Every claim with a text, or a list of texts."""


class Grant(NamedTuple):
    """What an assignment grants in one account and service."""

    actions: frozenset[str]
    container: str = ""
    """The one container, queue, table or share that it is for; empty for all."""
    role: str = ""
    """The name of the role; empty if none was assigned, because every caller may do everything."""


def grants_of(
    assignments: Iterable[Assignment], caller: Caller, account: str, service: str
) -> tuple[Grant, ...]:
    """What the caller's roles grant in a service of an account. They add up."""
    known = ids_of(caller)
    return tuple(
        Grant(given.role.actions, given.container, given.role.name)
        for given in assignments
        if given.account in {"", account}
        and given.role.service in {"", service}
        and given.issuer in {"", caller.issuer}
        and is_principal(given.principal, caller, known)
    )


def ids_of(caller: Caller) -> frozenset[str]:
    """Everything that an assignment may call the caller by."""
    return frozenset(
        normal_id(each) for each in (caller.principal, caller.application_id, *caller.groups) if each
    )


def is_principal(principal: str, caller: Caller, known: frozenset[str]) -> bool:
    """Whether an assignment to this principal is one to the caller, of whom these ids are known."""
    if principal == ANYONE:
        return True
    claim, is_claim, value = principal.partition("=")
    if is_claim:
        return any(same_id(value, each) for each in caller.claims.get(claim, ()))
    return normal_id(principal) in known


def granted_in(grants: Iterable[Grant], container: str) -> frozenset[str]:
    """The actions in a container, or at the level of the service when it is empty. Names compare without case."""
    folded = container.lower()
    return frozenset().union(
        *(grant.actions for grant in grants if not grant.container or grant.container.lower() == folded)
    )


def suffices(actions: frozenset[str], need: str) -> bool:
    """Whether the actions fulfil a need such as ``blobs/write|blobs/add`` or ``messages/delete&messages/read``."""
    return any(all(_has(actions, action) for action in each.split("&")) for each in need.split("|"))


def same_id(one: str, other: str) -> bool:
    """GUIDs are the same in either case; other texts must be equal."""
    return normal_id(one) == normal_id(other)


@lru_cache(maxsize=4096)
def normal_id(text: str) -> str:
    """GUIDs in lower case; other texts as they are."""
    return text.lower() if is_guid(text) else text


def is_guid(text: str) -> bool:
    return _GUID.fullmatch(text) is not None


def _has(actions: frozenset[str], action: str) -> bool:
    return action in actions or f"{action.partition('/')[0]}/*" in actions
