"""Containers over REST."""

from collections.abc import Awaitable, Callable

from kyanite.model.blobs import container
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.records import ContainerRecord
from kyanite.rules import leases
from kyanite.rules.preconditions import Conditions
from kyanite.services.blob import features
from kyanite.services.rest.context import Exchange
from kyanite.services.rest.headers import conditions_of, lease_id_of, metadata_headers, metadata_of, one_of
from kyanite.services.rest.leases import lease_answer, lease_ask_of
from kyanite.services.rest.policies import policies_document, policies_of
from kyanite.values import ETag, Instant
from kyanite.wire import http_date
from kyanite.wire.http import Response

_PUBLIC_LEVELS = ("container", "blob")


def key_of(exchange: Exchange) -> ContainerKey:
    return ContainerKey(exchange.account.name, exchange.container)


def version_headers(etag: ETag, modified_at: Instant) -> list[tuple[str, str]]:
    """ETag and Last-Modified, which every answer about one resource carries."""
    return [("ETag", f'"{etag}"'), ("Last-Modified", http_date.encode(modified_at))]


async def create_container(exchange: Exchange) -> Response:
    features.check_container(exchange)
    record = await container.create(
        exchange.environment.engine,
        key_of(exchange),
        metadata=metadata_of(exchange.request),
        public_access=_public_access(exchange),
    )
    return Response(201, version_headers(record.etag, record.modified_at))


async def get_container_properties(exchange: Exchange) -> Response:
    return await _describe(exchange, _properties)


async def get_container_metadata(exchange: Exchange) -> Response:
    return await _describe(exchange, lambda record, _: metadata_headers(record.metadata))


async def set_container_metadata(exchange: Exchange) -> Response:
    """Of the conditions it takes If-Modified-Since only; others are not looked at."""
    since = conditions_of(exchange.headers).if_modified_since
    record = await container.set_metadata(
        exchange.environment.engine,
        key_of(exchange),
        metadata_of(exchange.request),
        Conditions(if_modified_since=since),
        lease_id_of(exchange.headers),
    )
    return Response(200, version_headers(record.etag, record.modified_at))


async def get_container_acl(exchange: Exchange) -> Response:
    seen = await container.see(exchange.environment.engine, key_of(exchange), lease_id_of(exchange.headers))
    record = seen.record
    headers = version_headers(record.etag, record.modified_at)
    headers += _public_header(record)
    headers.append(("Content-Type", "application/xml"))
    return Response(200, headers, policies_document(record.policies))


async def set_container_acl(exchange: Exchange) -> Response:
    public_access = _public_access(exchange)
    record = await container.set_acl(
        exchange.environment.engine,
        key_of(exchange),
        public_access,
        await policies_of(exchange),
        conditions_of(exchange.headers),
        lease_id_of(exchange.headers),
    )
    return Response(200, version_headers(record.etag, record.modified_at))


async def lease_container(exchange: Exchange) -> Response:
    ask = lease_ask_of(exchange)
    record, outcome = await container.lease(
        exchange.environment.engine, key_of(exchange), ask, conditions_of(exchange.headers)
    )
    return lease_answer(ask, outcome, version_headers(record.etag, record.modified_at))


async def delete_container(exchange: Exchange) -> Response:
    await container.delete(
        exchange.environment.engine,
        key_of(exchange),
        conditions_of(exchange.headers),
        lease_id_of(exchange.headers),
    )
    return Response(202)


def _describe(
    exchange: Exchange, describe: Callable[[ContainerRecord, Instant], list[tuple[str, str]]]
) -> Awaitable[Response]:
    async def answer() -> Response:
        seen = await container.see(
            exchange.environment.engine, key_of(exchange), lease_id_of(exchange.headers)
        )
        record = seen.record
        headers = version_headers(record.etag, record.modified_at)
        return Response(200, headers + describe(record, seen.at))

    return answer()


def _properties(record: ContainerRecord, now: Instant) -> list[tuple[str, str]]:
    status, state, duration = leases.shown(record.lease, now)
    headers = [("x-ms-lease-status", status), ("x-ms-lease-state", state)]
    if duration:
        headers.append(("x-ms-lease-duration", duration))
    headers += _public_header(record)
    headers += [
        ("x-ms-has-immutability-policy", "false"),
        ("x-ms-has-legal-hold", "false"),
        ("x-ms-immutable-storage-with-versioning-enabled", "false"),
        ("x-ms-default-encryption-scope", "$account-encryption-key"),
        ("x-ms-deny-encryption-scope-override", "false"),
    ]
    return headers + metadata_headers(record.metadata)


def _public_header(record: ContainerRecord) -> list[tuple[str, str]]:
    return [("x-ms-blob-public-access", record.public_access)] if record.public_access else []


def _public_access(exchange: Exchange) -> str:
    return one_of(exchange.headers, "x-ms-blob-public-access", _PUBLIC_LEVELS)
