"""Immutability policies and legal holds over REST: the operations, and what other requests and answers have of them."""

from kyanite.model.blobs import protection
from kyanite.model.blobs.records import ContainerRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.rules.authorization import Access, AccessedResource, authorize
from kyanite.rules.immutability import NOT_PROTECTED, BlobProtection
from kyanite.rules.preconditions import Conditions
from kyanite.services.blob import features
from kyanite.services.rest.blob_paths import readable_key_of
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import conditions_of, flag_of, one_of, required
from kyanite.values import Instant
from kyanite.wire import http_date
from kyanite.wire.http import Response
from kyanite.wire.malformed import bad_header, missing_header

_UNTIL, _MODE, _LEGAL_HOLD = features.IMMUTABILITY_HEADERS
_LOCKED, _UNLOCKED = "Locked", "Unlocked"

IMMUTABILITY = Access(account="o i", service="i", writes=True, role="blobs/immutableStorage/runAsSuperUser")
"""What a caller needs to set a policy or a hold."""


async def set_immutability_policy(context: RequestContext) -> Response:
    """On a base blob, a version or a snapshot. Of the conditions only If-Unmodified-Since is supported."""
    required(context.headers, _UNTIL)
    until = _until_of(context.headers)
    is_locked = one_of(context.headers, _MODE, (_UNLOCKED, _LOCKED), _UNLOCKED) == _LOCKED
    since = conditions_of(context.headers).if_unmodified_since
    changed = await protection.set_policy(
        context.store.engine,
        _key_of(context),
        until,
        is_locked=is_locked,
        conditions=Conditions(if_unmodified_since=since),
    )
    return Response(200, _policy_headers(changed))


async def delete_immutability_policy(context: RequestContext) -> Response:
    await protection.delete_policy(context.store.engine, _key_of(context))
    return Response(200)


async def set_legal_hold(context: RequestContext) -> Response:
    required(context.headers, _LEGAL_HOLD)
    held = flag_of(context.headers, _LEGAL_HOLD)
    await protection.set_legal_hold(context.store.engine, _key_of(context), held)
    return Response(200, [(_LEGAL_HOLD, "true" if held else "false")])


def protection_of(context: RequestContext) -> BlobProtection | None:
    """What a request that creates a blob asks for. The caller needs the permission to set it."""
    headers = context.headers
    if headers.keys().isdisjoint(features.IMMUTABILITY_HEADERS):
        return None
    authorize(context.principal, IMMUTABILITY, AccessedResource("blob", context.is_read_only))
    mode = one_of(headers, _MODE, (_UNLOCKED, _LOCKED))
    held = flag_of(headers, _LEGAL_HOLD)
    if not mode and not headers.get(_UNTIL):
        return BlobProtection(has_legal_hold=held)
    for name in (_UNTIL, _MODE):
        if not headers.get(name):
            raise missing_header(name)
    return BlobProtection(_until_of(headers), mode == _LOCKED, held)


def protection_headers(found: BlobProtection) -> list[tuple[str, str]]:
    """Of Get Blob and Get Blob Properties."""
    headers = _policy_headers(found)
    return [*headers, (_LEGAL_HOLD, "true")] if found.has_legal_hold else headers


def container_headers(record: ContainerRecord) -> list[tuple[str, str]]:
    has_policy, has_legal_hold, is_version_level = _flags_of(record)
    return [
        ("x-ms-has-immutability-policy", has_policy),
        ("x-ms-has-legal-hold", has_legal_hold),
        ("x-ms-immutable-storage-with-versioning-enabled", is_version_level),
    ]


def container_elements(record: ContainerRecord) -> str:
    """The same in a listing."""
    has_policy, has_legal_hold, is_version_level = _flags_of(record)
    return (
        f"<HasImmutabilityPolicy>{has_policy}</HasImmutabilityPolicy><HasLegalHold>{has_legal_hold}</HasLegalHold>"
        f"<ImmutableStorageWithVersioningEnabled>{is_version_level}</ImmutableStorageWithVersioningEnabled>"
    )


def blob_elements(found: BlobProtection, *, with_policy: bool, with_legal_hold: bool) -> str:
    """In a listing that includes policies, holds or both."""
    elements = ""
    if with_policy and found.until is not None:
        elements = (
            f"<ImmutabilityPolicyUntilDate>{http_date.encode(found.until)}</ImmutabilityPolicyUntilDate>"
            f"<ImmutabilityPolicyMode>{_mode(found)}</ImmutabilityPolicyMode>"
        )
    if with_legal_hold and found.has_legal_hold:
        elements += "<LegalHold>true</LegalHold>"
    return elements


def _key_of(context: RequestContext) -> BlobKey:
    features.check(context, may_protect=True)
    return readable_key_of(context)


def _until_of(headers: dict[str, str]) -> Instant:
    until = http_date.decode(headers[_UNTIL])
    if until is None:
        raise bad_header(_UNTIL, headers[_UNTIL])
    return until


def _policy_headers(found: BlobProtection | None) -> list[tuple[str, str]]:
    if found is None or found.until is None:
        return []
    return [(_UNTIL, http_date.encode(found.until)), (_MODE, _mode(found))]


def _mode(found: BlobProtection) -> str:
    return "locked" if found.is_locked else "unlocked"


def _flags_of(record: ContainerRecord) -> tuple[str, str, str]:
    """Whether it has a policy, legal holds, and version-level immutability."""
    found = record.protection or NOT_PROTECTED
    flags = (found.policy is not None, bool(found.legal_hold_tags), found.is_version_level)
    has_policy, has_legal_hold, is_version_level = ("true" if flag else "false" for flag in flags)
    return has_policy, has_legal_hold, is_version_level
