"""What becomes of each kind of row when an account moves to another store.

``MOVED`` has the rows that move, in the order in which they do, and ``NOT_MOVED`` the reason for every other letter of
``keys.py``. A row that moves is found by the account in its key, or by the id of what it belongs to. Ids of containers,
message sets, tables, shares and staging areas become ids of the target, in keys and in records; so do layers, inline
bodies and extents, wherever content refers to them. Ids that only mean something within one of those (of files and
directories, of parts of entities) stay as they are, and so do all instants: ETags, times, versions and snapshots.

A ``Rewriter`` decides what takes the place of an id or of content. The same table serves to find out what a row refers
to, to write it into the target, and to compare both.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from kyanite.model import keys
from kyanite.model.blobs import deleted_containers
from kyanite.model.blobs.records import (
    decode_blob,
    decode_container,
    decode_deleted,
    decode_staging,
)
from kyanite.model.blobs.staged_blocks import decode_block
from kyanite.model.content.content import Content
from kyanite.model.files import deleted_shares
from kyanite.model.files.entry import decode_entry
from kyanite.model.files.share import ShareRecord, decode_share
from kyanite.model.queues.records import decode_message, decode_queue
from kyanite.model.records import encode
from kyanite.model.tables.table import decode_table

_ID = 8


class Owner(Enum):
    """What rows belong to. The value is the letter of moved ids of this kind."""

    ACCOUNT = b""
    CONTAINER = b"n"
    STAGING_AREA = b"j"
    MESSAGE_SET = b"m"
    TABLE = b"w"
    SHARE = b"N"


class Rewriter(Protocol):
    """What takes the place of what a row refers to."""

    def id(self, owner: Owner, number: int) -> int: ...

    def content(self, content: Content) -> Content: ...


class Moved(NamedTuple):
    prefix: bytes
    """What the keys begin with, before the account or the id."""
    owner: Owner
    rewrite: Callable[[bytes, Rewriter], bytes]
    """The value."""
    rewrite_key: Callable[[bytes, Rewriter], bytes] | None = None
    """For keys with an id elsewhere than behind the prefix: such rows do not keep their order."""
    companions: Callable[[bytes, bytes], list[bytes]] = lambda _key, _value: []
    """Keys of empty rows that are there as long as the row is, by its key and its value."""
    is_single: bool = False
    """Whether the key ends with the account."""

    def key(self, key: bytes, rewriter: Rewriter) -> bytes:
        if self.rewrite_key is not None:
            return self.rewrite_key(key, rewriter)
        if self.owner is Owner.ACCOUNT:
            return key
        at = len(self.prefix)
        number = int.from_bytes(key[at : at + _ID], "big")
        return self.prefix + keys.number(rewriter.id(self.owner, number)) + key[at + _ID :]

    def range_of(self, account: str, owner_id: int) -> tuple[bytes, bytes]:
        """The first key of the rows of an owner, and the one behind them."""
        if self.owner is not Owner.ACCOUNT:
            start = self.prefix + keys.number(owner_id)
        elif self.is_single:
            start = self.prefix + account.encode()
            return start, start + b"\0"
        else:
            start = b"%b%b\0" % (self.prefix, account.encode())
        return start, keys.after(start)


# How values are rewritten


def _as_it_is(value: bytes, _rewriter: Rewriter) -> bytes:
    return value


def _with_id(
    decode: Callable[[bytes], Any], owner: Owner, field: str = "id"
) -> Callable[[bytes, Rewriter], bytes]:
    def rewrite(value: bytes, rewriter: Rewriter) -> bytes:
        record = decode(value)
        return encode(replace(record, **{field: rewriter.id(owner, getattr(record, field))}))

    return rewrite


def _with_content(
    decode: Callable[[bytes], Any], field: str = "content"
) -> Callable[[bytes, Rewriter], bytes]:
    def rewrite(value: bytes, rewriter: Rewriter) -> bytes:
        record = decode(value)
        return encode(replace(record, **{field: rewriter.content(getattr(record, field))}))

    return rewrite


def _retired_container(value: bytes, rewriter: Rewriter) -> bytes:
    retired = deleted_containers.decode(value)
    container_id = rewriter.id(Owner.CONTAINER, retired.record.id)
    return encode(replace(retired, record=replace(retired.record, id=container_id)))


def _deleted_blob(value: bytes, rewriter: Rewriter) -> bytes:
    deleted = decode_deleted(value)
    blob = replace(deleted.blob, content=rewriter.content(deleted.blob.content))
    return encode(replace(deleted, blob=blob))


def _of_share(record: ShareRecord, rewriter: Rewriter) -> ShareRecord:
    """Clients watch a share through a process, so none does in the target."""
    return replace(record, id=rewriter.id(Owner.SHARE, record.id), is_watched=False)


def _share(value: bytes, rewriter: Rewriter) -> bytes:
    return encode(_of_share(decode_share(value), rewriter))


def _retired_share(value: bytes, rewriter: Rewriter) -> bytes:
    retired = deleted_shares.decode(value)
    return encode(replace(retired, record=_of_share(retired.record, rewriter)))


# Keys with an id in another place, and rows that others bring along


def _posting_key(key: bytes, rewriter: Rewriter) -> bytes:
    account, tag_key, value, container_id, name = keys.parts_of_posting(key)
    return keys.posting(account, tag_key, value, rewriter.id(Owner.CONTAINER, container_id), name)


def _expiry(key: bytes, value: bytes) -> list[bytes]:
    return [keys.expiry(deleted_containers.decode(value).expires_at, key)]


def _gone_blob(key: bytes, value: bytes) -> list[bytes]:
    return [keys.gone_blob(decode_deleted(value).deletion.gone_at, key)]


MOVED: tuple[Moved, ...] = (
    # Of the account, by name. Rows with the id of an owner come before what belongs to it.
    Moved(b"s", Owner.ACCOUNT, _as_it_is),
    Moved(b"3", Owner.ACCOUNT, _as_it_is, is_single=True),
    Moved(b"4", Owner.ACCOUNT, _as_it_is),
    Moved(b"9", Owner.ACCOUNT, _as_it_is),
    Moved(b"c", Owner.ACCOUNT, _with_id(decode_container, Owner.CONTAINER)),
    Moved(b"5", Owner.ACCOUNT, _retired_container, companions=_expiry),
    Moved(b"q", Owner.ACCOUNT, _with_id(decode_queue, Owner.MESSAGE_SET, "message_set_id")),
    Moved(b"t", Owner.ACCOUNT, _with_id(decode_table, Owner.TABLE)),
    Moved(b"F", Owner.ACCOUNT, _share),
    Moved(b"R", Owner.ACCOUNT, _retired_share),
    Moved(b"i", Owner.CONTAINER, _with_id(decode_staging, Owner.STAGING_AREA)),
    # By the id of what they belong to.
    Moved(b"n", Owner.CONTAINER, _with_content(decode_blob)),
    Moved(b"v", Owner.CONTAINER, _with_content(decode_blob)),
    Moved(b"E", Owner.CONTAINER, _with_content(decode_blob)),
    Moved(b"X", Owner.CONTAINER, _deleted_blob, companions=_gone_blob),
    Moved(b"7", Owner.CONTAINER, _as_it_is),
    Moved(b"p", Owner.CONTAINER, _as_it_is),
    Moved(b"I", Owner.CONTAINER, _as_it_is),
    Moved(b"G\0", Owner.CONTAINER, _as_it_is),
    Moved(b"G", Owner.ACCOUNT, _as_it_is, rewrite_key=_posting_key),
    Moved(b"j", Owner.STAGING_AREA, _with_content(decode_block)),
    Moved(b"m", Owner.MESSAGE_SET, _with_content(decode_message, "long_text")),
    Moved(b"a", Owner.MESSAGE_SET, _as_it_is),
    Moved(b"w", Owner.TABLE, _as_it_is),
    Moved(b"o", Owner.TABLE, _as_it_is),
    Moved(b"S", Owner.SHARE, _share),
    Moved(b"N", Owner.SHARE, _with_content(decode_entry)),
    Moved(b"V", Owner.SHARE, _with_content(decode_entry)),
    Moved(b"P", Owner.SHARE, _as_it_is),
    Moved(b"U", Owner.SHARE, _as_it_is),
    Moved(b"L", Owner.SHARE, _as_it_is),
)

_BY_CONTENT = "written in the target where content refers to it"
_OF_A_PROCESS = "ends with a process, and no process moves"
_TO_BE_PURGED = "waits to be purged"
_OF_A_STORE = "describes one store"

NOT_MOVED: Mapping[bytes, str] = {
    b"b": _BY_CONTENT,
    b"k": _BY_CONTENT,
    b"x": _BY_CONTENT,
    b"l": _BY_CONTENT,
    b"e": _BY_CONTENT,
    b"r": _BY_CONTENT,
    b"6": "a companion of a container that can be restored",
    b"8": "a companion of a deleted blob",
    b"A": "sealed with the key of one store, so the server writes it anew",
    b"h": _OF_A_PROCESS,
    b"1": _OF_A_PROCESS,
    b"H": _OF_A_PROCESS,
    b"O": _OF_A_PROCESS,
    b"Q": _OF_A_PROCESS,
    b"J": _OF_A_PROCESS,
    b"C": _OF_A_PROCESS,
    b"K": _OF_A_PROCESS,
    b"Y": _OF_A_PROCESS,
    b"Z": _OF_A_PROCESS,
    b"M": _OF_A_PROCESS,  # The file stays, as after a crash.
    b"W": _OF_A_PROCESS,
    b"g": _TO_BE_PURGED,
    b"-": _TO_BE_PURGED,
    b"u": _TO_BE_PURGED,
    b"y": _TO_BE_PURGED,
    b"d": _TO_BE_PURGED,
    b"z": _TO_BE_PURGED,
    b"T": _TO_BE_PURGED,
    b"D": _TO_BE_PURGED,
    b"B": _OF_A_PROCESS,
    b"!": _OF_A_PROCESS,
    b"2": _OF_A_STORE,
    b"f": _OF_A_STORE,
    b"0": "of another migration, which has not ended",
}
