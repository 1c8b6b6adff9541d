"""The stored form of an entity: the text of its JSON with minimal metadata.

    {"odata.etag":"W/\\"datetime'2024-05-01T12%3A34%3A56.1234567Z'\\"","PartitionKey":"p","RowKey":"r",
     "Timestamp":"2024-05-01T12:34:56.1234567Z","Age":39,"Big@odata.type":"Edm.Int64","Big":"39"}

So a page of a query, the most frequent operation, joins texts without decoding them. The ETag is a slice. The type of a
value follows from the value and its annotation (``wire/edm.py`` says how). Filters and merges decode what they need.

A long text is divided: its row begins with another byte and has the text up to the time only, and further rows have the
rest (``docs/decisions/0021-tables.md``). So what does not need the properties does not read them. Earlier versions
divided only texts that were too long for one row, and put as much as possible into the first.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from kyanite.engine.api import MAX_VALUE_BYTES, Snapshot, Transaction
from kyanite.model import keys
from kyanite.rules.entities import Properties
from kyanite.values import Instant, iso_text

_BEGINNING: Final = b'{"odata.etag":"W/\\"'
_ETAG_CHARACTERS: Final = len("datetime'2024-05-01T12%3A34%3A56.1234567Z'")
_ETAG_END: Final = len(_BEGINNING) + _ETAG_CHARACTERS
AFTER_ETAG: Final = _ETAG_END + len('\\"",')
"""Where the keys begin, after the ETag and its comma."""
_OWN: Final = ("odata.etag", "PartitionKey", "RowKey", "Timestamp")
"""The names that every text has, before the properties."""

_BRACE: Final = b"{"[0]
_DIVIDED: Final = 1
_DIVIDED_HEAD_BYTES: Final = 11
"""In a divided row: the mark, the id of its parts (8), 0, and the number of parts in further rows."""
_LONG_BYTES: Final = 16 * 1024

_encode_json: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode
_decode_json: Final[Callable[[bytes], dict[str, Any]]] = msgspec.json.Decoder(dict[str, Any]).decode


class Stamp:
    """The time of a transaction, in the forms in which the texts of its entities contain it."""

    __slots__ = ("etag", "time")

    def __init__(self, now: Instant) -> None:
        text = iso_text(now)
        self.time = text.encode()
        self.etag = b"datetime'%b'" % text.replace(":", "%3A").encode()


def keys_text(partition_key: str, row_key: str) -> bytes:
    """The part of a text between the ETag and the time. It can be made before the transaction."""
    return b'\\"","PartitionKey":%b,"RowKey":%b,"Timestamp":"' % (
        _encode_json(partition_key),
        _encode_json(row_key),
    )


def properties_text(properties: Properties) -> bytes:
    """The part of a text after the time."""
    return b'",' + _encode_json(properties)[1:] if properties else b'"}'


def head_of(stamp: Stamp, keys: bytes) -> bytes:
    """The part of a text before ``properties_text``."""
    return b"".join((_BEGINNING, stamp.etag, keys, stamp.time))


def properties_of(text: bytes) -> dict[str, Any]:
    """The properties and their annotations."""
    found = _decode_json(text)
    for name in _OWN:
        del found[name]
    return found


def etag_of(row: bytes) -> str:
    """The ETag without its weak mark and its quotes."""
    if row[0] == _BRACE:
        return row[len(_BEGINNING) : _ETAG_END].decode("ascii")
    return row[_DIVIDED_HEAD_BYTES + len(_BEGINNING) : _DIVIDED_HEAD_BYTES + _ETAG_END].decode("ascii")


def is_long(row: bytes) -> bool:
    """Whether the row has a part of the text only."""
    return row[0] != _BRACE


# Rows


def save(tx: Transaction, table_id: int, key: bytes, head: bytes, properties: bytes) -> None:
    """Write the entity in as many rows as it takes."""
    if len(head) + len(properties) <= _LONG_BYTES:
        tx.put(key, head + properties)
        return
    parts = [properties[at : at + MAX_VALUE_BYTES] for at in range(0, len(properties), MAX_VALUE_BYTES)]
    divided_id = tx.new_id()
    tx.put(key, b"%c%b\0%c%b" % (_DIVIDED, divided_id.to_bytes(8, "big"), len(parts), head))
    for number, part in enumerate(parts):
        tx.put(keys.entity_part(table_id, divided_id, 0, number), part)


def whole(snap: Snapshot, table_id: int, row: bytes) -> bytes:
    """The whole text of an entity, given its row."""
    if row[0] == _BRACE:
        return row
    text = [row[_DIVIDED_HEAD_BYTES:]]
    for part in snap.get_many(part_keys(table_id, row)):
        assert part is not None, "A part of a large entity is not there."
        text.append(part)
    return b"".join(text)


def drop(tx: Transaction, table_id: int, row: bytes) -> None:
    """Delete the further rows of an entity whose row is about to be replaced or deleted."""
    if row[0] != _BRACE:
        for key in part_keys(table_id, row):
            tx.delete(key)


def part_keys(table_id: int, row: bytes) -> list[bytes]:
    """Format 1 named the parts by an instant, which is far below any id, and the number of the entity in its group."""
    divided_id, entity_number, count = int.from_bytes(row[1:9], "big"), row[9], row[10]
    return [keys.entity_part(table_id, divided_id, entity_number, number) for number in range(count)]
