"""Entities in JSON, from the form in which they are stored: with more metadata, with less, or with fewer properties.

With minimal metadata and all properties an entity is sent as it is stored. Other forms are made from that text,
decoding as little as possible; the function for each selection is compiled once and cached.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from kyanite.edm import ANNOTATION
from kyanite.model.records import Value
from kyanite.model.tables.stored_entity import AFTER_ETAG
from kyanite.services.rest.context import RequestContext
from kyanite.services.table.formats import Level
from kyanite.services.table.paths import entity_path
from kyanite.slices import mapped

Render = Callable[[bytes], bytes]

_ETAG: Final = "odata.etag"
_MARK: Final = f'{ANNOTATION}"'.encode()
_TIME: Final = b'"Timestamp":"'
_NULL: Final = Raw(b"null")
_ANNOTATED_TIME: Final = b'"Timestamp@odata.type":"Edm.DateTime","Timestamp":"'

_encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode
_decode_raw: Final[Callable[[bytes], dict[str, Raw]]] = msgspec.json.Decoder(dict[str, Raw]).decode


class _Keys(Value, frozen=True):
    partition_key: str = msgspec.field(name="PartitionKey")
    row_key: str = msgspec.field(name="RowKey")


_decode_keys: Final = msgspec.json.Decoder(_Keys).decode


def entity_body(
    context: RequestContext,
    table_name: str,
    text: bytes,
    level: Level,
    selected: tuple[str, ...] | None = None,
) -> bytes:
    """The body of a response with one entity."""
    if level is not Level.MINIMAL or selected is not None:
        text = rendering(context, table_name, level, selected)(text)
        if level is Level.NONE:
            return text
    return _beginning(_metadata_url(context, table_name, "/@Element")) + text[1:]


@lru_cache(maxsize=256)
def _beginning(metadata_url: str) -> bytes:
    return b'{"odata.metadata":%b,' % _encode(metadata_url)


async def page_body(
    context: RequestContext,
    table_name: str,
    texts: list[bytes],
    level: Level,
    selected: tuple[str, ...] | None,
) -> bytes:
    """The body of a response with a page of entities."""
    if level is not Level.MINIMAL or selected is not None:
        texts = await mapped(texts, rendering(context, table_name, level, selected))
    beginning = b"{" if level is Level.NONE else _beginning(_metadata_url(context, table_name))
    return b'%b"value":[%b]}' % (beginning, b",".join(texts))


def _metadata_url(context: RequestContext, table_name: str, suffix: str = "") -> str:
    selection = context.parameters.get("$select")
    selected = "" if selection is None else f"&$select={selection}"
    return f"{context.endpoint}$metadata#{table_name}{suffix}{selected}"


def rendering(
    context: RequestContext, table_name: str, level: Level, selected: tuple[str, ...] | None
) -> Render:
    """The function that formats the entities of a table."""
    if level is Level.FULL:
        return _full(context, table_name, _project(selected, Level.FULL))
    return _project(selected, level)


def _as_stored(text: bytes) -> bytes:
    return text


def _bare(text: bytes) -> bytes:
    """Without the ETag and the annotations. A text without the mark of annotations has none."""
    if _MARK not in text:
        return b"{" + text[AFTER_ETAG:]
    found = _decode_raw(text)
    return _encode({name: value for name, value in found.items() if "@" not in name and name != _ETAG})


@lru_cache(maxsize=256)
def _project(selected: tuple[str, ...] | None, level: Level) -> Render:
    """The text with the selected properties only, with ETag and annotations as far as the level has them.

    A property that the entity lacks is null, as in Azure: typed clients rely on it.
    """
    if selected is None:
        return _bare if level is Level.NONE else _as_stored
    names = [_ETAG] if level is not Level.NONE else []
    for name in selected:
        names += [name] if level is Level.NONE else [name + ANNOTATION, name]
    decode = msgspec.json.Decoder(_struct(names)).decode
    return lambda text: _encode(decode(text))


def _struct(names: Sequence[str]) -> type[msgspec.Struct]:
    """Annotations that are not in the text stay unset, and unset fields are not written."""
    fields = [
        (f"f{number}", Raw | UnsetType, UNSET if ANNOTATION in name else _NULL)
        for number, name in enumerate(names)
    ]
    rename = {f"f{number}": name for number, name in enumerate(names)}
    return msgspec.defstruct("Selection", fields, rename=rename, gc=False)


def _full(context: RequestContext, table_name: str, project: Render) -> Render:
    account, endpoint = context.account.name, context.endpoint
    type_ = _encode(f"{account}.{table_name}")

    def render(text: bytes) -> bytes:
        keys = _decode_keys(text)
        link = entity_path(table_name, keys.partition_key, keys.row_key)
        rest = project(text)
        # The projected text has the ETag and the comma after it at the same position.
        etag, rest = rest[1 : AFTER_ETAG - 1], rest[AFTER_ETAG - 1 :]
        return b'{"odata.type":%b,"odata.id":%b,%b,"odata.editLink":%b%b' % (
            type_,
            _encode(endpoint + link),
            etag,
            _encode(link),
            rest.replace(_TIME, _ANNOTATED_TIME, 1),
        )

    return render
