"""What clients call a row: blobs, snapshots, versions, staged blocks, messages, entities, files, and what they are in.

Keys have ids of containers, queues, tables, shares and directories. Their names are in rows of their own, so these are
read once for as many keys as are named together. What no client can reach any more has no name: rows of a deleted
container, for instance, which wait to be purged.
"""

import base64
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

from kyanite.edm import text_of_ordinal
from kyanite.engine.api import Engine
from kyanite.model import keys
from kyanite.model.blobs import deleted_containers, history
from kyanite.model.blobs.records import decode_container, decode_staging
from kyanite.model.blobs.rows import NAME_AT
from kyanite.model.files import deleted_shares
from kyanite.model.files.share import decode_share
from kyanite.model.queues.records import decode_message, decode_queue
from kyanite.model.tables.table import decode_table
from kyanite.model.verification.hurt import ROW_COST_BYTES, Spend
from kyanite.model.verification.pages import Row, Unreadable, pages, read_if_possible, take
from kyanite.model.verification.paths import FileName, file_names
from kyanite.values import Instant, iso_text

_INSTANT_BYTES = 8


async def names_of(engine: Engine, rows: Collection[bytes], spend: Spend) -> dict[bytes, list[str]]:
    """The names of these rows, by their keys. Only a file with several names has more than one."""
    namer = _Namer(engine, spend)
    await namer.find_parents(rows)
    return {key: await namer.names(key) for key in rows}


class _Kind(NamedTuple):
    """Rows that contain others, by their ids."""

    word: str
    id_of: Callable[[bytes], int]
    """Decodes a row."""
    deleted: Callable[[int], bytes]
    """The mark of a deleted one."""


_PARENTS: Mapping[bytes, _Kind] = {
    b"c": _Kind("container", lambda value: decode_container(value).id, keys.deleted_container),
    b"q": _Kind("queue", lambda value: decode_queue(value).message_set_id, keys.discarded_messages),
    b"t": _Kind("table", lambda value: decode_table(value).id, keys.deleted_table),
    b"F": _Kind("share", lambda value: decode_share(value).id, keys.deleted_share),
    b"R": _Kind("deleted share", lambda value: deleted_shares.decode(value).record.id, keys.deleted_share),
    b"5": _Kind(
        "deleted container",
        lambda value: deleted_containers.decode(value).record.id,
        keys.deleted_container,
    ),
    b"i": _Kind("staging area", lambda value: decode_staging(value).id, keys.abandoned_staging),
}

_PARENT_OF = {
    b"n": b"c",
    b"v": b"c",
    b"E": b"c",
    b"X": b"c",
    b"i": b"c",
    b"j": b"i",
    b"m": b"q",
    b"w": b"t",
    b"N": b"F",
    b"V": b"F",
    b"S": b"F",
    b"P": b"F",
}
"""By the letter of a row, that of the row which the id in its key is of."""

_RESTORABLE = {b"c": b"5", b"F": b"R"}
"""By the letter of a parent, that of one which was deleted and can be restored."""


class _Namer:
    def __init__(self, engine: Engine, spend: Spend) -> None:
        self._engine = engine
        self._spend = spend
        self._parents: dict[tuple[bytes, int], bytes] = {}
        """The keys of parents, by their letters and ids."""
        self._files: dict[bytes, list[FileName]] = {}

    async def find_parents(self, rows: Collection[bytes]) -> None:
        """Find the rows that the ids in these keys are of."""
        wanted: defaultdict[bytes, set[int]] = defaultdict(set)
        for key in rows:
            if (letter := _PARENT_OF.get(key[:1])) is not None:
                wanted[letter].add(keys.id_of(key))
        await self._find(b"i", wanted.pop(b"i", set()))
        wanted[b"c"].update(map(keys.id_of, self._parents.values()))
        for letter, ids in list(wanted.items()):
            await self._find(letter, ids)
        for live, deleted in _RESTORABLE.items():
            await self._find(deleted, {each for each in wanted[live] if (live, each) not in self._parents})
        files = [key for key in rows if key[:1] in (b"N", b"V")]
        self._files = await file_names(self._engine, files, self._spend)

    async def _find(self, letter: bytes, ids: set[int]) -> None:
        if not ids:
            return
        async for page in pages(self._engine, take, letter, keys.after(letter)):
            if isinstance(page, Unreadable):
                continue
            for row in page.rows:
                parent_id = _id_of(letter, row)
                if parent_id in ids:
                    self._parents[letter, parent_id] = row.key
            await self._spend(len(page.rows) * ROW_COST_BYTES)

    async def names(self, key: bytes) -> list[str]:
        letter = key[:1]
        if letter in (b"c", b"q", b"t", b"F"):
            return [f"{_PARENTS[letter].word} {_account_and_name(key)}"]
        if letter in _RESTORABLE.values():
            return [f"{_PARENTS[letter].word} {_account_and_name(key[: -_INSTANT_BYTES - 1])}"]
        if letter == b"s":
            return [f"service properties {_account_and_name(key)}"]
        if letter == b"3":
            return [f"secret of the user delegation keys of {key[1:].decode()}"]
        if letter == b"4":
            return [f"user delegation key of {_account_and_name(key)}"]
        if letter not in _PARENT_OF:
            return []
        parent = await self._parent(_PARENT_OF[letter], keys.id_of(key))
        if parent is None:
            return []
        return await self._within(parent, key)

    async def _parent(self, letter: bytes, parent_id: int) -> str | None:
        """The account and name of a parent; None if it was deleted."""
        if letter == b"i":
            area = self._parents.get((letter, parent_id))
            return None if area is None else await self._blob_of(area)
        if (key := self._parents.get((letter, parent_id))) is not None:
            return _account_and_name(key)
        if (key := self._parents.get((_RESTORABLE.get(letter, b""), parent_id))) is not None:
            return _account_and_name(key[: -_INSTANT_BYTES - 1]) + " (deleted)"
        kind = _PARENTS[letter]
        is_deleted = await self._read(kind.deleted(parent_id)) is not None
        return None if is_deleted else f"({kind.word} {parent_id}, whose name cannot be read)"

    async def _blob_of(self, area: bytes) -> str | None:
        container = await self._parent(b"c", keys.id_of(area))
        return None if container is None else f"{container}/{_text(area[NAME_AT:])}"

    async def _within(self, parent: str, key: bytes) -> list[str]:
        """The names of a row, given that of what it is in."""
        letter, rest = key[:1], key[NAME_AT:]
        if letter in (b"N", b"V"):
            return [f"{each.kind} {parent}/{each.path}" for each in self._files[key]]
        if letter == b"n":
            return [f"blob {parent}/{_text(rest)}"]
        if letter in (b"v", b"E", b"X"):
            return await self._of_history(parent, key)
        if letter == b"i":
            return [f"staged blocks of blob {parent}/{_text(rest)}"]
        if letter == b"j":
            return [f"staged block {base64.b64encode(rest).decode()} of blob {parent}"]
        if letter == b"m":
            return [f"message {parent}/{await self._message_id(key)}"]
        if letter == b"w":
            partition_key, _, row_key = rest.partition(b"\0")
            return [f"entity {parent}({_ordinal(partition_key)!r}, {_ordinal(row_key)!r})"]
        if letter == b"S":
            return [f"share {parent}, snapshot {_instant(rest)}"]
        return [f"security descriptor {rest.hex()} of share {parent}"]

    async def _of_history(self, container: str, key: bytes) -> list[str]:
        """A snapshot, a version or what is deleted; nothing for one that is gone."""
        active_key = keys.restored_from(key) if key[:1] == keys.DELETED_BLOBS else key
        is_base = active_key[:1] == b"n"
        blob_key = active_key if is_base else b"n" + active_key[1 : -_INSTANT_BYTES - 1]
        value = await self._read(key)
        changes = await self._read(keys.history_changes_of(blob_key))
        is_deleted = key[:1] == keys.DELETED_BLOBS
        try:
            if value is not None:
                deletion = history.state_of(key, value, history.changes_in(changes)).deletion
                if deletion is not None and deletion.is_gone(await self._now()):
                    return []
                is_deleted = deletion is not None
        except msgspec.DecodeError:
            pass
        name = f"blob {container}/{_text(blob_key[NAME_AT:])}"
        if not is_base:
            word = "snapshot" if active_key[:1] == b"v" else "version"
            name += f", {word} {_instant(active_key[-_INSTANT_BYTES:])}"
        return [f"deleted {name}" if is_deleted else name]

    async def _now(self) -> Instant:
        return await self._engine.read(lambda snap: snap.now)

    async def _message_id(self, key: bytes) -> str:
        value = await self._read(key)
        try:
            return decode_message(value or b"").id
        except msgspec.DecodeError:
            return f"(put at {_instant(key[-_INSTANT_BYTES:])})"

    async def _read(self, key: bytes) -> bytes | None:
        return await read_if_possible(self._engine, lambda snap: snap.get(key))


def _id_of(letter: bytes, row: Row) -> int:
    try:
        return _PARENTS[letter].id_of(row.value)
    except msgspec.DecodeError:
        return -1


def _account_and_name(key: bytes) -> str:
    return _text(key[1:].replace(b"\0", b"/", 1))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _ordinal(name: bytes) -> str:
    try:
        return text_of_ordinal(name)
    except UnicodeError:
        return _text(name)


def _instant(key_part: bytes) -> str:
    return iso_text(Instant(int.from_bytes(key_part, "big")))
