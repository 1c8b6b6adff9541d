"""Copy Blob, Copy Blob From URL and Abort Copy Blob over REST."""

from urllib.parse import urlsplit

from kyanite.model import copy
from kyanite.model.copy import CopyAsk
from kyanite.model.records import BlobRecord
from kyanite.rules.permissions import may_overwrite
from kyanite.services.blob.blob import blob_key_of, guard_of, version_headers
from kyanite.services.blob.block_blob import TIERS
from kyanite.services.common.blob_paths import readable_key_of
from kyanite.services.common.exchange import Exchange
from kyanite.services.common.headers import conditions_of, metadata_of, one_of, required
from kyanite.services.common.source_kinds import BLOB_SOURCE
from kyanite.services.common.sources import source_of
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header


async def copy_blob(exchange: Exchange) -> Response:
    """The asynchronous copy, which here is done at once: a source in the same account needs no signature."""
    record = await _copy(exchange, with_own_key=True, finite_lease_suffices=False)
    return Response(202, _copy_answer(record))


async def copy_blob_from_url(exchange: Exchange) -> Response:
    record = await _copy(exchange, with_own_key=False, finite_lease_suffices=True)
    return Response(202, _copy_answer(record))


async def abort_copy_blob(exchange: Exchange) -> Response:
    if required(exchange.headers, "x-ms-copy-action").lower() != "abort":
        raise bad_header("x-ms-copy-action", exchange.headers["x-ms-copy-action"])
    copy_id = exchange.parameters.get("copyid")
    if not copy_id:
        raise Malformed("MissingRequiredQueryParameter", QueryParameterName="copyid")
    await copy.abort(exchange.environment.engine, blob_key_of(exchange), copy_id, guard_of(exchange.headers))
    return Response(204)


async def _copy(exchange: Exchange, *, with_own_key: bool, finite_lease_suffices: bool) -> BlobRecord:
    source = await source_of(exchange, BLOB_SOURCE, with_own_key=with_own_key)
    conditions = {
        name.removeprefix("x-ms-source-"): value
        for name, value in exchange.headers.items()
        if name.startswith("x-ms-source-if-")
    }
    ask = CopyAsk(
        source=readable_key_of(source),
        source_url=_told(exchange.headers["x-ms-copy-source"]),
        source_conditions=conditions_of(conditions),
        copy_id=exchange.environment.fresh_guid(),
        metadata=metadata_of(exchange.request),
        tier=one_of(exchange.headers, "x-ms-access-tier", TIERS),
        finite_lease_suffices=finite_lease_suffices,
    )
    return await copy.copy(
        exchange.environment.engine,
        blob_key_of(exchange),
        ask,
        guard_of(exchange.headers),
        may_overwrite=may_overwrite(exchange.grant),
    )


def _copy_answer(record: BlobRecord) -> list[tuple[str, str]]:
    assert record.copy is not None
    return [
        *version_headers(record),
        ("x-ms-copy-id", record.copy.id),
        ("x-ms-copy-status", "success"),
    ]


def _told(url: str) -> str:
    """The source as it is shown later: without the signature, which is a secret."""
    parts = urlsplit(url)
    kept = "&".join(part for part in parts.query.split("&") if part.startswith(("snapshot=", "versionid=")))
    return parts._replace(query=kept).geturl()
