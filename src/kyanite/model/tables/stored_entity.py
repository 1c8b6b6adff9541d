"""The stored form of an entity: the text of its JSON with minimal metadata.

    {"odata.etag":"W/\\"datetime'2024-05-01T12%3A34%3A56.1234567Z'\\"","PartitionKey":"p","RowKey":"r",
     "Timestamp":"2024-05-01T12:34:56.1234567Z","Age":39,"Big@odata.type":"Edm.Int64","Big":"39"}

A page of a query is then a join, which is most of what tables are asked for; the ETag is a slice; and the type of a
value is told by the value and its annotation (``wire/edm.py`` says how). Filters and merges decode what they need.

JSON may be larger than what it says, and an entity of the largest size may not fit a row. Then the row begins with
another byte and holds the beginning, and the rest is in further rows (``docs/decisions/0021-tables.md``).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from kyanite.engine.api import MAX_VALUE_BYTES, Snapshot, Transaction
from kyanite.model import keys
from kyanite.rules.entities import Properties
from kyanite.values import Instant, iso_text

_BEGINNING = b'{"odata.etag":"W/\\"'
_ETAG_CHARACTERS = len("datetime'2024-05-01T12%3A34%3A56.1234567Z'")
_ETAG_END = len(_BEGINNING) + _ETAG_CHARACTERS
BEHIND_ETAG = _ETAG_END + len('\\"",')
"""Where the keys begin, behind the ETag and its comma."""
_OWN = ("odata.etag", "PartitionKey", "RowKey", "Timestamp")
"""What is in every text, before the properties."""

_BRACE = b"{"[0]
_DIVIDED = 1
_DIVIDED_HEAD_BYTES = 11
"""In a divided row: the mark, the instant it was written (8), its number in that transaction, the number of pieces."""
_PIECE_BYTES = MAX_VALUE_BYTES - _DIVIDED_HEAD_BYTES

_encode_json: Callable[[Any], bytes] = msgspec.json.Encoder().encode
_decode_json: Callable[[bytes], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


class Stamp:
    """The time of a transaction, as the texts of all entities it writes have it."""

    __slots__ = ("etag", "time")

    def __init__(self, now: Instant) -> None:
        text = iso_text(now)
        self.time = text.encode()
        self.etag = b"datetime'%b'" % text.replace(":", "%3A").encode()


def keys_text(partition_key: str, row_key: str) -> bytes:
    """The part of a text that is known before its time is: what is between the ETag and the time."""
    return b'\\"","PartitionKey":%b,"RowKey":%b,"Timestamp":"' % (
        _encode_json(partition_key),
        _encode_json(row_key),
    )


def properties_text(properties: Properties) -> bytes:
    """The part of a text behind the time."""
    return b'",' + _encode_json(properties)[1:] if properties else b'"}'


def text_of(stamp: Stamp, keys: bytes, properties: bytes) -> bytes:
    return b"".join((_BEGINNING, stamp.etag, keys, stamp.time, properties))


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


# Rows


def save(tx: Transaction, table_id: int, key: bytes, text: bytes) -> None:
    """Write the entity in as many rows as it takes."""
    if len(text) <= MAX_VALUE_BYTES:
        tx.put(key, text)
        return
    pieces = [text[at : at + _PIECE_BYTES] for at in range(0, len(text), _PIECE_BYTES)]
    divided_id = tx.new_id()
    head = b"%c%b\0%c" % (_DIVIDED, divided_id.to_bytes(8, "big"), len(pieces) - 1)
    tx.put(key, head + pieces[0])
    for number, piece in enumerate(pieces[1:]):
        tx.put(keys.entity_piece(table_id, divided_id, 0, number), piece)


def whole(snap: Snapshot, table_id: int, row: bytes) -> bytes:
    """The text of an entity whose row was read."""
    if row[0] == _BRACE:
        return row
    pieces = snap.get_many(piece_keys(table_id, row))
    return b"".join((row[_DIVIDED_HEAD_BYTES:], *[piece or b"" for piece in pieces]))


def drop(tx: Transaction, table_id: int, row: bytes) -> None:
    """Delete what a row, which is about to go, has left in others."""
    if row[0] != _BRACE:
        for key in piece_keys(table_id, row):
            tx.delete(key)


def piece_keys(table_id: int, row: bytes) -> list[bytes]:
    """Format 1 named the pieces by an instant, far below any id, and by which entity of its group it was."""
    divided_id, entity_number, count = int.from_bytes(row[1:9], "big"), row[9], row[10]
    return [keys.entity_piece(table_id, divided_id, entity_number, number) for number in range(count)]
