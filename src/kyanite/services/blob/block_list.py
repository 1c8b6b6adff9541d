"""Put Block, Put Block From URL, Put Block List and Get Block List over REST."""

import base64
import binascii
from collections.abc import Awaitable, Sequence
from functools import partial

from kyanite.model.blobs import block_list, long_block_list, staged_blocks
from kyanite.model.blobs.block_list import From, ListedBlock, NewBlockList
from kyanite.model.blobs.long_block_list import Pin
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.blobs.staged_blocks import NewBlock
from kyanite.rules.authorization import may_overwrite, may_read_uncommitted
from kyanite.rules.refusals import Reason, Refused
from kyanite.services.blob.blob import (
    access_conditions_of,
    blob_key_of,
    found_key_of,
    version_headers,
    version_id_header,
)
from kyanite.services.blob.block_blob import MIB, http_headers_of
from kyanite.services.blob.immutability import protection_of
from kyanite.services.blob.source import source_hash_headers, store_range
from kyanite.services.blob.tag_headers import tags_of
from kyanite.services.blob.tiering import tier_of
from kyanite.services.rest.context import RequestContext
from kyanite.services.rest.headers import base64_text, lease_id_of, metadata_of, stored_md5_of
from kyanite.services.rest.streams import pin_numbers
from kyanite.services.rest.structured import data_length_of, structured_headers
from kyanite.services.rest.uploads import ReceivedBody, check_body_length, check_hashes, hash_headers, store
from kyanite.slices import Sliced, emptied, emptying, encoded, in_slices
from kyanite.values import LeaseId
from kyanite.wire import crc64, xml
from kyanite.wire.http import Response
from kyanite.wire.malformed import Malformed, bad_header, bad_parameter

MAX_BLOCKS = 50_000
_BLOCK_MAX_BYTES = (("2019-12-12", 4000 * MIB), ("2016-05-31", 100 * MIB), ("", 4 * MIB))
_LIST_MAX_BYTES = 16 * MIB
_CREATING_SUFFICES_SINCE = "2026-06-06"
_BLOCK_ID_MAX_BYTES = 64
_IDS_PER_SLICE = 500
_SOURCES = {source.value: source for source in From}


async def put_block(context: RequestContext) -> Response:
    _check_may_write(context)
    block_id = _block_id_of(context)
    length = data_length_of(context)
    if length == 0:
        raise bad_header("Content-Length", "0")
    check_body_length(context.version, length, _BLOCK_MAX_BYTES)
    key, lease_id = blob_key_of(context), lease_id_of(context.headers)
    received, _ = await store(context, length, partial(_stage, context, key, block_id, lease_id))
    answer = hash_headers(context.headers, received) + structured_headers(context)
    return Response(201, [*answer, ("x-ms-request-server-encrypted", "true")])


async def put_block_from_url(context: RequestContext) -> Response:
    _check_may_write(context)
    block_id = _block_id_of(context)
    key, lease_id = blob_key_of(context), lease_id_of(context.headers)
    received, _ = await store_range(
        context, _BLOCK_MAX_BYTES, partial(_stage, context, key, block_id, lease_id)
    )
    hashes = source_hash_headers(context.headers, received)
    return Response(201, [*hashes, ("x-ms-request-server-encrypted", "true")])


def _check_may_write(context: RequestContext) -> None:
    """Blocks need the permission to write. Newer versions accept the permission to create too."""
    if context.version < _CREATING_SUFFICES_SINCE and not may_overwrite(context.principal):
        raise Refused(Reason.PERMISSION_MISMATCH)


def _stage(
    context: RequestContext, key: BlobKey, block_id: bytes, lease_id: LeaseId | None, received: ReceivedBody
) -> Awaitable[None]:
    new_block = NewBlock(block_id, received.payload, received.length)
    return staged_blocks.put_block(context.store.engine, key, new_block, lease_id)


async def put_block_list(context: RequestContext) -> Response:
    _check_may_write(context)
    headers = context.headers
    key, access_conditions, metadata = (
        blob_key_of(context, may_protect=True),
        access_conditions_of(headers),
        metadata_of(context.request),
    )
    tags = tags_of(headers)
    protection = protection_of(context)
    document = await context.request.body.read_all(_LIST_MAX_BYTES)
    if document is None:
        raise Malformed("RequestBodyTooLarge", MaxLimit=str(_LIST_MAX_BYTES))
    checksum = await check_hashes(headers, document)
    new_list = NewBlockList(
        entries=await in_slices(_entries(document)),
        http=http_headers_of(headers, stored_md5_of(headers) or b"", own_only=True),
        metadata=metadata,
        tier=tier_of(headers),
        tags=tags,
        protection=protection,
    )
    record = await long_block_list.put_block_list(
        context.store.engine,
        key,
        new_list,
        access_conditions,
        may_overwrite=may_overwrite(context.principal),
        pin=Pin(context.store.membership.id, next(pin_numbers)),
    )
    if len(new_list.entries) > _IDS_PER_SLICE:
        await emptied(new_list.entries)
    answer = version_headers(record)
    if record.version_at is not None:
        answer.append(version_id_header(record.version_at))
    answer += [("x-ms-content-crc64", crc64.encode(checksum)), ("x-ms-request-server-encrypted", "true")]
    return Response(201, answer)


async def get_block_list(context: RequestContext) -> Response:
    wanted = context.parameters.get("blocklisttype", "committed").lower()
    if wanted not in {"committed", "uncommitted", "all"}:
        raise bad_parameter("blocklisttype", context.parameters["blocklisttype"])
    may_read_all = may_read_uncommitted(context.principal)
    lists = await block_list.get_block_list(
        context.store.engine,
        found_key_of(context),
        access_conditions_of(context.headers),
        committed=wanted != "uncommitted",
        uncommitted=wanted != "committed" and may_read_all,
    )
    if lists.record is None and not may_read_all:
        raise Refused(Reason.BLOB_NOT_FOUND)
    pieces: list[bytes] = []
    if wanted != "uncommitted":
        pieces += await _list_pieces("CommittedBlocks", lists.committed)
    if wanted != "committed":
        pieces += await _list_pieces("UncommittedBlocks", lists.uncommitted)
    await emptied(lists.committed)
    await emptied(lists.uncommitted.rows)
    headers = [("Content-Type", "application/xml")]
    if lists.record is not None:
        headers += version_headers(lists.record)
    headers.append(("x-ms-blob-content-length", str(lists.record.length if lists.record else 0)))
    return Response(200, headers, xml.document_of(b"<BlockList>", *pieces, b"</BlockList>"))


def _entries(document: bytes) -> Sliced[list[tuple[From, bytes]]]:
    elements = yield from xml.decode_list(document, "BlockList", limit=MAX_BLOCKS + 1)
    if len(elements) > MAX_BLOCKS:
        raise Malformed("BlockListTooLong")
    entries = []
    for count, (name, text) in enumerate(elements, 1):
        source = _SOURCES.get(name)
        if source is None:
            raise xml.unsupported_node(name)
        entries.append((source, _decode_id(text.strip()) or _refuse_id(text)))
        if count % _IDS_PER_SLICE == 0:
            yield
    if len(elements) > _IDS_PER_SLICE:
        yield from emptying(elements)
    return entries


def _refuse_id(text: str) -> bytes:
    raise xml.bad_node("Latest", text)


def _block_id_of(context: RequestContext) -> bytes:
    text = context.parameters.get("blockid")
    if text is None:
        raise Malformed("MissingRequiredQueryParameter", QueryParameterName="blockid")
    block_id = _decode_id(text)
    if block_id is None:
        raise bad_parameter("blockid", text, "Not a valid base64 string.")
    if len(block_id) > _BLOCK_ID_MAX_BYTES:
        raise Malformed("OutOfRangeInput", QueryParameterName="blockid", QueryParameterValue=text)
    return block_id


def _decode_id(text: str) -> bytes | None:
    """The bytes of a block id; None when it is not base64 or is empty."""
    try:
        return base64.b64decode(text, validate=True) or None
    except (binascii.Error, ValueError):
        return None


async def _list_pieces(name: str, blocks: Sequence[ListedBlock]) -> list[bytes]:
    if not blocks:
        return [f"<{name} />".encode()]
    return [f"<{name}>".encode(), *await encoded(blocks, _block_text), f"</{name}>".encode()]


def _block_text(block: ListedBlock) -> str:
    return f"<Block><Name>{base64_text(block.id)}</Name><Size>{block.length}</Size></Block>"
