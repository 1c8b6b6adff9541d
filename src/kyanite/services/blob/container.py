"""Containers over REST."""

from collections.abc import Awaitable, Callable
from typing import Final

from kyanite.model.blobs import container, deleted_containers
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.records import ContainerRecord
from kyanite.rules import leases, names, system_containers
from kyanite.rules.preconditions import Conditions
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.blob import features
from kyanite.services.blob.immutability import container_headers
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import (
    conditions_of,
    lease_id_of,
    metadata_headers,
    metadata_of,
    one_of,
    required,
)
from kyanite.services.rest.leases import lease_answer, lease_request_of
from kyanite.services.rest.policies import policies_document, policies_of
from kyanite.services.rest.restoring import deletion_of
from kyanite.services.rest.sources import BLOB_SOURCE, container_of
from kyanite.values import ETag, Instant
from kyanite.wire import http_date
from kyanite.wire.http import Response

_PUBLIC_LEVELS: Final = ("container", "blob")
_SOURCE_NAME: Final = "x-ms-source-container-name"


def key_of(context: RequestContext) -> ContainerKey:
    return ContainerKey(context.account.name, context.container)


def version_headers(etag: ETag, modified_at: Instant) -> list[tuple[str, str]]:
    """ETag and Last-Modified, which every answer about one resource has."""
    return [("ETag", f'"{etag}"'), ("Last-Modified", http_date.encode(modified_at))]


async def create_container(context: RequestContext) -> Response:
    features.check_container(context)
    record = await container.create(
        context.store.engine,
        key_of(context),
        metadata=metadata_of(context.request),
        public_access=_public_access(context),
        is_version_level=context.account.settings.version_level_immutability,
    )
    return Response(201, version_headers(record.etag, record.modified_at))


async def get_container_properties(context: RequestContext) -> Response:
    return await _describe(context, _properties)


async def get_container_metadata(context: RequestContext) -> Response:
    return await _describe(context, lambda record, _: metadata_headers(record.metadata))


async def set_container_metadata(context: RequestContext) -> Response:
    """Of the conditions only If-Modified-Since is supported. Others are ignored."""
    since = conditions_of(context.headers).if_modified_since
    record = await container.set_metadata(
        context.store.engine,
        key_of(context),
        metadata_of(context.request),
        Conditions(if_modified_since=since),
        lease_id_of(context.headers),
    )
    return Response(200, version_headers(record.etag, record.modified_at))


async def get_container_acl(context: RequestContext) -> Response:
    found = await container.get_properties(
        context.store.engine, key_of(context), lease_id_of(context.headers)
    )
    record = found.record
    headers = version_headers(record.etag, record.modified_at)
    headers += _public_header(record)
    headers.append(("Content-Type", "application/xml"))
    return Response(200, headers, policies_document(record.policies))


async def set_container_acl(context: RequestContext) -> Response:
    public_access = _public_access(context)
    record = await container.set_acl(
        context.store.engine,
        key_of(context),
        public_access,
        await policies_of(context),
        conditions_of(context.headers),
        lease_id_of(context.headers),
    )
    return Response(200, version_headers(record.etag, record.modified_at))


async def lease_container(context: RequestContext) -> Response:
    request = lease_request_of(context)
    record, outcome = await container.lease(
        context.store.engine, key_of(context), request, conditions_of(context.headers)
    )
    return lease_answer(request, outcome, version_headers(record.etag, record.modified_at))


async def delete_container(context: RequestContext) -> Response:
    await container.delete(
        context.store.engine,
        key_of(context),
        conditions_of(context.headers),
        lease_id_of(context.headers),
    )
    return Response(202)


async def restore_container(context: RequestContext) -> Response:
    deleted_at = deletion_of(context, "container")
    await deleted_containers.restore(context.store.engine, key_of(context), deleted_at)
    return Response(201)


async def rename_container(context: RequestContext) -> Response:
    """The URL has the new name. No document describes this operation; the official clients contain it."""
    name = required(context.headers, _SOURCE_NAME)
    lease_id = lease_id_of(context.headers, "x-ms-source-lease-id")
    names.check_container(name)
    system_containers.check_rename(name, context.container)
    source = await container_of(context, BLOB_SOURCE, name)
    await container.rename(context.store.engine, key_of(source), key_of(context), lease_id)
    return Response(200)


def _describe(
    context: RequestContext, describe: Callable[[ContainerRecord, Instant], list[tuple[str, str]]]
) -> Awaitable[Response]:
    async def answer() -> Response:
        found = await container.get_properties(
            context.store.engine, key_of(context), lease_id_of(context.headers)
        )
        record = found.record
        headers = version_headers(record.etag, record.modified_at)
        return Response(200, headers + describe(record, found.at))

    return answer()


def _properties(record: ContainerRecord, now: Instant) -> list[tuple[str, str]]:
    status, state, duration = leases.properties_of(record.lease, now)
    headers = [("x-ms-lease-status", status), ("x-ms-lease-state", state)]
    if duration:
        headers.append(("x-ms-lease-duration", duration))
    headers += _public_header(record)
    headers += container_headers(record)
    headers += [
        ("x-ms-default-encryption-scope", "$account-encryption-key"),
        ("x-ms-deny-encryption-scope-override", "false"),
    ]
    return headers + metadata_headers(record.metadata)


def _public_header(record: ContainerRecord) -> list[tuple[str, str]]:
    return [("x-ms-blob-public-access", record.public_access)] if record.public_access else []


def _public_access(context: RequestContext) -> str:
    level = one_of(context.headers, "x-ms-blob-public-access", _PUBLIC_LEVELS)
    if level and not context.account.settings.public_access:
        raise Refused(Reason.PUBLIC_ACCESS_NOT_PERMITTED)
    return level
