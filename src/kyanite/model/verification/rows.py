"""Checking what is stored: every row decodes, what it refers to exists, and every count is right.

``KINDS`` has a row for every letter that a key begins with. ``check_page`` checks some rows in one snapshot. What no
snapshot of a bounded size can show, whether counts agree with what is counted over all rows, it returns as two tallies
of the same *subjects*: what rows state, and what rows that refer to the subject add up to. The caller adds up the
tallies of all pages; where the two sums of a subject differ, ``describe_difference`` says what is wrong.

    subject           stated by                              counted by
    x, extent         the extent row                         intervals of records and of interval rows, migrations
    b, body           the body, and its row of k             records, and intervals of both kinds
    l, layer          the layer head: records                records, pinned reads and migrations
    e, layer          the layer head: uppers                 heads of the layers on it
    e, layer, layer   the edge                               the head of the upper layer
    o, part           the part                               the entity, or the mark of its deleted table
    H, file           the open file                          its handles
    W, share          the feed of the share                  handles that watch a directory
    G, blob, tag      the posting                            the record of the blob

Freed extents, deleted containers, abandoned staging areas and other work that is still to be done are no findings:
their rows count like any others until maintenance removes them.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kyanite.engine.api import Snapshot
from kyanite.extents.api import SEGMENT_BYTES
from kyanite.membership.api import OWNER_BYTES
from kyanite.model import keys, members
from kyanite.model.account_rows import decode_account
from kyanite.model.blobs import history, protected_containers, protected_snapshots
from kyanite.model.blobs.deleted_containers import RetiredContainer
from kyanite.model.blobs.records import (
    BLOCK_BLOB,
    BlobRecord,
    ContainerRecord,
    DeletedBlob,
    Staging,
    decode_blob,
    decode_container,
    decode_deleted,
)
from kyanite.model.blobs.staged_blocks import StagedBlock
from kyanite.model.blobs.tag_index import decode_container_key
from kyanite.model.content.intervals import Interval
from kyanite.model.content.layers import Head, PendingCompaction
from kyanite.model.content.reading import KeptExtent
from kyanite.model.content.references import ExtentRow
from kyanite.model.delegation import DelegationSecret, Delegator
from kyanite.model.files.deleted_shares import RetiredShare
from kyanite.model.files.entry import Entry
from kyanite.model.files.opens.records import KEY_BYTES as GRANT_KEY_BYTES
from kyanite.model.files.opens.records import (
    BreakMessage,
    LeasedFile,
    NamedHandle,
    decode_handle,
    decode_open_file,
)
from kyanite.model.files.opens.sessions import SessionRecord
from kyanite.model.files.opens.watches import decode_change, decode_feed
from kyanite.model.files.security_descriptors import KEY_BYTES
from kyanite.model.files.share import ShareRecord
from kyanite.model.migration import records as migration
from kyanite.model.queues.records import MessageRecord, QueueRecord
from kyanite.model.records import NamedKey
from kyanite.model.requests import questions, tail
from kyanite.model.scrub_state import ScrubState
from kyanite.model.store_format import StoreFormat
from kyanite.model.tables import stored_entity
from kyanite.model.tables.table import TableRecord
from kyanite.model.verification.check import Check, Finding, Needed
from kyanite.model.verification.pages import BEHIND_ALL, Row, Rows, Unreadable, take
from kyanite.service_properties import ServiceProperties

PAGE_ROWS = 1000
_ID = 8


class Page(NamedTuple):
    """What some rows showed."""

    rows: int
    findings: list[str]
    damaged: list[bytes]
    """Keys of rows that cannot be decoded, or are not there while others need them."""
    stated: Counter[bytes]
    counted: Counter[bytes]
    extents: list[tuple[bytes, ExtentRow]]
    """The extents among the rows, whose bytes are still to be read."""
    next_key: bytes | None
    """Where the next page begins; None at the end of the range."""
    is_cut: bool
    """Whether the page ends because the next row cannot be read."""


def check_page(snap: Snapshot, start: bytes, end: bytes = BEHIND_ALL) -> Page:
    """Check the rows from one key to another, up to a bounded number of rows and bytes."""
    check = Check(snap)
    found = take(snap, start, end, rows_max=PAGE_ROWS)
    for count, row in enumerate(found.rows, 1):
        _check_row(check, *row)
        check.previous = row
        if len(check.needed) >= PAGE_ROWS and count < len(found.rows):
            found = Rows(found.rows[:count], row.key + b"\0")
            break
    check.check_needed()
    return Page(
        len(found.rows),
        [_sentence(finding) for finding in check.findings],
        check.damaged,
        check.stated,
        check.counted,
        check.extents,
        found.next_key,
        found.is_cut,
    )


def _check_row(check: Check, key: bytes, value: bytes) -> None:
    kind = KINDS.get(key[:1])
    if kind is None:
        check.refuse(key, "no record has keys of this letter.")
    elif len(key) < kind.key_bytes or (kind.is_fixed and len(key) > kind.key_bytes):
        check.refuse(key, "the key does not have the right length.")
    else:
        try:
            kind.check(check, key, value)
        except Exception as error:  # Whatever a damaged row leads to.
            check.damaged.append(key)
            check.refuse(key, f"it cannot be decoded: {error or type(error).__name__}.")


def describe_difference(subject: bytes, stated: int, counted: int) -> str:
    """A finding, for a subject of which the rows state another number than was counted."""
    name = name_of(subject)
    if subject[:1] == b"G":
        return (
            f"{name}: the index has it, but the blob does not."
            if stated
            else f"{name}: it is not in the index."
        )
    if len(subject) == len(keys.edge(0, 0)) and subject[:1] == b"e":
        return f"{name}: {stated} edges, but {counted} layers say so."
    if not stated:
        return f"{name}: {counted} references, but it is not there."
    if subject[:1] == b"e":
        return f"{name}: {stated} layers on it by its own count, but {counted} in fact."
    return f"{name}: {stated} references by its own count, but {counted} in fact."


def describe_unreadable(unreadable: Unreadable) -> str:
    """A finding, for rows that cannot be read."""
    if unreadable.key is not None:
        return f"{name_of(unreadable.key)}: it cannot be read."
    return f"Rows from {name_of(unreadable.start)} on, below {_printable(unreadable.end)}, cannot be read."


# What each kind of row must be


def _record(record_type: Any, visit: Callable[[Check, bytes, Any], None] | None = None) -> "RowCheck":
    """A row that is a record. ``visit`` looks at what the record refers to."""
    decode = msgspec.msgpack.Decoder(record_type).decode

    def check_row(check: Check, key: bytes, value: bytes) -> None:
        record = decode(value)
        if visit is not None:
            visit(check, key, record)

    return check_row


def _empty(check: Check, key: bytes, value: bytes) -> None:
    if value:
        check.refuse(key, "it should be empty.")


def _anything(_check: Check, _key: bytes, _value: bytes) -> None:
    pass


def _number(check: Check, key: bytes, value: bytes) -> None:
    if len(value) != _ID:
        check.refuse(key, "it is not a number of eight bytes.")


def _blob(check: Check, key: bytes, record: BlobRecord) -> None:
    check.content(key, record.content, record.length, exactly=record.kind == BLOCK_BLOB)


def _version(check: Check, key: bytes, record: BlobRecord) -> None:
    _blob(check, key, record)
    if record.version_at != history.instant_in(key) or not record.is_previous:
        check.refuse(key, "its version id is not that of its key.")


def _deleted_blob(check: Check, key: bytes, deleted: DeletedBlob) -> None:
    _blob(check, key, deleted.blob)
    check.need(key, keys.gone_blob(deleted.deletion.gone_at, key))
    if check.snap.get(keys.restored_from(key)) is not None:
        check.refuse(key, "{} is there as well.", keys.restored_from(key))


def _gone_blob(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    check.need(key, keys.parts_of_gone_blob(key)[1])


def _history_changes(check: Check, key: bytes, value: bytes) -> None:
    changes = history.changes_in(value)
    instants = [change.at for change in changes]
    if not changes or instants != sorted(set(instants)):
        check.refuse(key, "its changes are not in their order.")


def _base_blob(check: Check, key: bytes, record: BlobRecord) -> None:
    _blob(check, key, record)
    for tag_key, value in record.tags:
        check.counted[_tag(key, tag_key, value)] += 1


def _posting(check: Check, key: bytes, value: bytes) -> None:
    if key == keys.tagged_container(_id_at(key, 2)):
        decode_container_key(value)
        return
    _empty(check, key, value)
    account, tag_key, tag_value, container_id, name = keys.parts_of_posting(key)
    check.stated[_tag(keys.blob(container_id, name), tag_key, tag_value)] += 1

    def is_of_account(value: bytes) -> str | None:
        return None if decode_container_key(value).account == account else "is of another account"

    check.needed.append(Needed(key, keys.tagged_container(container_id), is_of_account))


def _tag(blob_key: bytes, tag_key: str, value: str) -> bytes:
    """The subject for one tag of a base blob."""
    return b"G%b\0%b\0%b" % (blob_key[1:], tag_key.encode(), value.encode())


def _retired_container(check: Check, key: bytes, retired: RetiredContainer) -> None:
    check.need(key, keys.expiry(retired.expires_at, key))


def _expiry(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    check.need(key, keys.expiring_row(key))


def _snapshot(check: Check, key: bytes, record: BlobRecord) -> None:
    _blob(check, key, record)
    if record.protection is not None:
        check.need(key, keys.protected_snapshot(key, protected_snapshots.end_of(record.protection)))


def _container(check: Check, key: bytes, record: ContainerRecord) -> None:
    row = protected_containers.row_of(_named(key), record.protection)
    if row is not None:
        check.need(key, row)


def _protected_container(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    container = keys.container_protected_by(key)
    stored = check.snap.get(container)
    if stored is None:
        check.refuse(key, "{} is not there.", container)
    elif protected_containers.row_of(_named(container), decode_container(stored).protection) != key:
        check.refuse(key, "{} is protected otherwise.", container)


def _named(key: bytes) -> NamedKey:
    account, _, name = key[1:].partition(b"\0")
    return NamedKey(account.decode(), name.decode())


def _protected_snapshot(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    snapshot = keys.snapshot_protected_by(key)
    stored, deleted = check.snap.get_many((snapshot, keys.deleted_from(snapshot)))
    if stored is not None:
        protection = decode_blob(stored).protection
    elif deleted is not None:  # A change that is not applied yet has restored it.
        protection = decode_deleted(deleted).blob.protection
    else:
        check.refuse(key, "{} is not there.", snapshot)
        return
    if protection is None or keys.protected_snapshot(snapshot, protected_snapshots.end_of(protection)) != key:
        check.refuse(key, "{} is protected otherwise.", snapshot)


def _staged_block(check: Check, key: bytes, record: StagedBlock) -> None:
    check.content(key, record.content, record.length, exactly=True)


def _message(check: Check, key: bytes, record: MessageRecord) -> None:
    check.content(key, record.long_text, None)


def _entry(check: Check, key: bytes, record: Entry) -> None:
    check.content(key, record.content, record.length)


def _body(check: Check, key: bytes, _value: bytes) -> None:
    check.stated[key] += 1


def _body_references(check: Check, key: bytes, count: int) -> None:
    body_key = keys.body(_id_at(key, 1))
    check.stated[body_key] += count - 1
    check.need(key, body_key)
    if count < 2:
        check.refuse(key, f"it counts {count} references, and only two or more are counted.")


def _extent(check: Check, key: bytes, row: ExtentRow) -> None:
    check.stated[key] += row.references
    check.extents.append((key, row))
    if row.references < 1:
        check.refuse(key, "it has no references, so it should be a freed extent.")


def _freed_extent(check: Check, key: bytes, _length: int) -> None:
    extent_key = keys.EXTENTS + key[1 + _ID :]
    if check.snap.get(extent_key) is not None:
        check.refuse(key, "{} is still referred to.", extent_key)


def _unneeded_segment(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    extents = keys.extents_of(key[1 + _ID :])
    for extent_key, _ in check.snap.scan(extents, keys.after(extents), limit=1):
        check.refuse(key, "{} is still referred to.", extent_key)


def _layer(check: Check, key: bytes, head: Head) -> None:
    layer_id = _id_at(key, 1)
    check.stated[key] += head.records
    check.stated[keys.edges(layer_id)] += head.uppers
    if head.below:
        check.counted[keys.edges(head.below)] += 1
        check.counted[keys.edge(head.below, layer_id)] += 1
        check.need(key, keys.layer(head.below))
    if not head.records and not head.uppers:
        check.need(key, keys.pending_compaction(layer_id))


def _edge(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    check.stated[key] += 1


def _interval_row(check: Check, key: bytes, intervals: list[Interval]) -> None:
    check.intervals(key, intervals)
    if not intervals or intervals[0].offset != _id_at(key, 1 + _ID):
        check.refuse(key, "it does not begin where its key says.")
        return
    layer = key[: 1 + _ID]
    before = check.previous if check.previous.key.startswith(layer) else _row_before(check.snap, layer, key)
    if before is not None and _decode_intervals(before.value)[-1].end > intervals[0].offset:
        check.refuse(key, "it begins before the end of the interval row before it.")
    check.need(key, keys.layer(_id_at(key, 1)))


_decode_intervals: Callable[[bytes], list[Interval]] = msgspec.msgpack.Decoder(list[Interval]).decode


def _row_before(snap: Snapshot, prefix: bytes, key: bytes) -> Row | None:
    for row in snap.scan(prefix, key, reverse=True, limit=1):
        return Row(*row)
    return None


def _handle(check: Check, key: bytes, value: bytes) -> None:
    share_id, file_id = _id_at(key, 1), _id_at(key, 1 + _ID)
    if key == keys.handles(share_id, file_id):
        opened = decode_open_file(value)
        check.stated[key] += opened.handle_count
        for directory_id in opened.above:
            check.need(key, keys.open_entry(share_id, directory_id, opened.first_handle_id, file_id))
        if opened.is_delete_pending:
            check.need(key, keys.pending_delete(share_id, opened.directory_id, opened.folded_name))
        for each in opened.grants:
            if each.version:
                check.need(key, keys.lease_key(each.key))
        return
    handle = decode_handle(value)
    check.counted[keys.handles(share_id, file_id)] += 1
    check.need(key, keys.handle_of_owner(handle.owner, share_id, file_id, handle.id))
    if handle.is_watching:
        check.counted[keys.change_feed(share_id)] += 1


def _change_feed(check: Check, key: bytes, value: bytes) -> None:
    if key == keys.change_feed(_id_at(key, 1)):
        check.stated[key] += decode_feed(value).watch_count
    else:
        decode_change(value)


def _open_entry(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    check.need(key, keys.handles(_id_at(key, 1), _id_at(key, 1 + 3 * _ID)))


def _handle_of_owner(check: Check, key: bytes, value: bytes) -> None:
    _empty(check, key, value)
    check.need(key, keys.handle(*keys.parts_of_handle_of_owner(key)))


def _named_handle(check: Check, key: bytes, named: NamedHandle) -> None:
    check.need(key, keys.handle(*named))


def _leased_file(check: Check, key: bytes, leased: LeasedFile) -> None:
    check.need(key, keys.handles(leased.share_id, leased.file_id))


def _pending_compaction(check: Check, key: bytes, _pending: PendingCompaction) -> None:
    check.need(key, keys.layer(_id_at(key, 1)))


def _pinned_read(check: Check, _key: bytes, layer_id: int) -> None:
    check.counted[keys.layer(layer_id)] += 1


def _entity(check: Check, key: bytes, value: bytes) -> None:
    table_id = _id_at(key, 1)
    if not value.startswith(b"{") and not _is_deleted_table(check, key):
        check.counted.update(stored_entity.part_keys(table_id, value))
    text = msgspec.json.decode(stored_entity.whole(check.snap, table_id, value))
    if keys.entities(table_id) + keys.entity(text["PartitionKey"], text["RowKey"]) != key:
        check.refuse(key, "its keys are not those of its row.")
    stored_entity.etag_of(value)


def _entity_part(check: Check, key: bytes, _value: bytes) -> None:
    check.stated[key] += 1
    if _is_deleted_table(check, key):
        check.counted[key] += 1  # Its entity may have been purged already.


def _is_deleted_table(check: Check, key: bytes) -> bool:
    return check.snap.get(keys.deleted_table(_id_at(key, 1))) is not None


def _security_descriptor(check: Check, key: bytes, value: bytes) -> None:
    if hashlib.sha256(value).digest()[:KEY_BYTES] != key[1 + _ID :]:
        check.refuse(key, "its text is not that of its key.")


def _account(check: Check, key: bytes, value: bytes) -> None:
    if key == keys.ACCOUNTS:
        _number(check, key, value)
    elif key.startswith(keys.REMOVED_ACCOUNTS):
        _empty(check, key, value)
        name = keys.account_of_removal(key)
        check.need(key, keys.account(name))
    else:
        decode_account(value)


def _moved(check: Check, key: bytes, value: bytes) -> None:
    """Until the migration has ended, it refers to what it has moved."""
    _, letter, _ = keys.parts_of_moved(key)
    if not letter:
        migration.decode_migration(value)
    elif letter == b"x":
        extent = migration.decode_extent(value)
        check.intervals(key, [Interval(0, extent.length, 0, extent)])
    elif letter == b"l":
        check.counted[keys.layer(migration.decode_layer(value).id)] += 1
    else:
        _number(check, key, value)


def _member(check: Check, key: bytes, value: bytes) -> None:
    owner = keys.owner_of_member(key)
    match key[:2]:
        case keys.LIVING_MEMBERS:
            members.decode_member(value)
            check.need(key, keys.heartbeat(owner))
        case keys.HEARTBEATS:
            members.decode_heartbeat(value)
            check.need(key, keys.living_member(owner))
        case keys.DEAD_MEMBERS:
            _empty(check, key, value)
        case keys.CONFIRMATIONS:
            _number(check, key, value)
        case keys.MAINTAINER | keys.SHARED_SECRET:
            owner = bytes(OWNER_BYTES)
        case _:
            check.refuse(key, "no process has rows of this kind.")
    if len(owner) != OWNER_BYTES:
        check.refuse(key, "the key does not have the right length.")


def _of_requests(check: Check, key: bytes, value: bytes) -> None:
    match key[:2]:
        case keys.QUESTIONS | keys.ANSWERS:
            is_right = questions.check_row(key, value)
        case keys.WATCHES | keys.COMPLETED_REQUESTS:
            is_right = tail.check_row(key, value)
        case _:
            is_right = False
    if not is_right:
        check.refuse(key, "no process has rows of this kind.")


RowCheck = Callable[[Check, bytes, bytes], None]


class Kind(NamedTuple):
    name: str
    key_bytes: int
    """The length of its keys, the letter included; the least length if they vary."""
    check: RowCheck
    is_fixed: bool = False


def _fixed(name: str, *parts: int, check: RowCheck) -> Kind:
    """A kind whose keys are parts of a fixed length."""
    return Kind(name, 1 + sum(parts), check, is_fixed=True)


KINDS: Mapping[bytes, Kind] = {
    b"s": Kind("service properties", 3, _record(ServiceProperties)),
    b"c": Kind("container", 3, _record(ContainerRecord, _container)),
    b"n": Kind("blob", 1 + _ID, _record(BlobRecord, _base_blob)),
    b"7": Kind("time of last access", 1 + _ID, _number),
    b"v": Kind("blob snapshot", 1 + _ID + 1 + _ID, _record(BlobRecord, _snapshot)),
    b"i": Kind("staging area", 1 + _ID, _record(Staging)),
    b"j": Kind("staged block", 1 + _ID, _record(StagedBlock, _staged_block)),
    b"y": _fixed("abandoned staging area", _ID, check=_empty),
    b"d": _fixed("deleted container", _ID, check=_empty),
    b"E": Kind("previous version of a blob", 1 + _ID + 1 + _ID, _record(BlobRecord, _version)),
    b"X": Kind("deleted blob", 1 + _ID + 1, _record(DeletedBlob, _deleted_blob)),
    b"8": Kind("when a deleted blob is gone", 1 + _ID + _ID + 1, _gone_blob),
    b"p": Kind("changes of the history of a blob", 1 + _ID, _history_changes),
    b"5": Kind("container that can be restored", 4 + _ID, _record(RetiredContainer, _retired_container)),
    b"6": Kind("expiry", 1 + _ID + 1, _expiry),
    b"G": Kind("tag of a blob", 2 + _ID, _posting),
    b"9": Kind("protected container", 5, _protected_container),
    b"I": Kind("protected snapshot", 1 + _ID + 1 + 2 * _ID, _protected_snapshot),
    b"b": _fixed("inline body", _ID, check=_body),
    b"k": _fixed("references to an inline body", _ID, check=_record(int, _body_references)),
    b"x": _fixed("extent", SEGMENT_BYTES, _ID, check=_record(ExtentRow, _extent)),
    b"g": _fixed("freed extent", _ID, SEGMENT_BYTES, _ID, check=_record(int, _freed_extent)),
    b"-": _fixed("unneeded segment", _ID, SEGMENT_BYTES, check=_unneeded_segment),
    b"l": _fixed("layer", _ID, check=_record(Head, _layer)),
    b"e": _fixed("edge", _ID, _ID, check=_edge),
    b"r": _fixed("interval row", _ID, _ID, check=_record(list[Interval], _interval_row)),
    b"u": _fixed("pending compaction", _ID, check=_record(PendingCompaction, _pending_compaction)),
    b"h": _fixed("pinned read", OWNER_BYTES, _ID, check=_record(int, _pinned_read)),
    b"1": _fixed("slow read", OWNER_BYTES, _ID, check=_record(list[KeptExtent])),
    b"q": Kind("queue", 3, _record(QueueRecord)),
    b"m": _fixed("message", _ID, _ID, _ID, check=_record(MessageRecord, _message)),
    b"a": _fixed("count of messages", _ID, 1, check=_number),
    b"z": _fixed("discarded messages", _ID, check=_empty),
    b"t": Kind("table", 3, _record(TableRecord)),
    b"w": Kind("entity", 1 + _ID + 1, _entity),
    b"o": _fixed("part of an entity", _ID, _ID, 1, 1, check=_entity_part),
    b"T": _fixed("deleted table", _ID, check=_empty),
    b"F": Kind("share", 3, _record(ShareRecord)),
    b"S": _fixed("share snapshot", _ID, _ID, check=_record(ShareRecord)),
    b"N": Kind("file or directory", 1 + _ID + _ID, _record(Entry, _entry)),
    b"V": Kind("file or directory of a snapshot", 1 + _ID + _ID + 1 + _ID, _record(Entry, _entry)),
    b"P": _fixed("security descriptor", _ID, KEY_BYTES, check=_security_descriptor),
    b"U": _fixed("usage of a share", _ID, 1, check=_number),
    b"H": Kind("open file or handle", 1 + _ID + _ID, _handle),
    b"O": _fixed("open file below a directory", _ID, _ID, _ID, _ID, check=_open_entry),
    b"Q": _fixed("open handle of a process", OWNER_BYTES, _ID, _ID, _ID, check=_handle_of_owner),
    b"J": _fixed("lease key", GRANT_KEY_BYTES, check=_record(LeasedFile, _leased_file)),
    b"C": _fixed("create guid", 16, 16, check=_record(NamedHandle, _named_handle)),
    b"K": _fixed("break to be sent", OWNER_BYTES, _ID, check=_record(BreakMessage)),
    b"Y": _fixed("SMB session", _ID, check=_record(SessionRecord)),
    b"Z": _fixed("SMB session of a process", OWNER_BYTES, 1, _ID, check=_empty),
    b"M": Kind("pending delete", 1 + _ID + _ID, _empty),
    b"W": Kind("feed or change of a watched share", 1 + _ID, _change_feed),
    b"D": _fixed("deleted share", _ID, check=_empty),
    b"R": Kind("share that can be restored", 4 + _ID, _record(RetiredShare)),
    b"L": _fixed("unneeded entries of snapshots", _ID, check=_anything),
    b"3": Kind("secret of user delegation keys", 4, _record(DelegationSecret)),
    b"4": Kind("user delegation key", 6, _record(Delegator)),
    b"2": _fixed("state of the scrub", check=_record(ScrubState)),
    b"f": _fixed("format of the store", check=_record(StoreFormat)),
    b"A": Kind("account", 1, _account),
    b"0": Kind("moved by a migration", 3, _moved),
    b"B": Kind("process of a node", 2, _member),
    b"!": Kind("question or watch", 2 + _ID, _of_requests),
}
"""What the keys of each letter are. A new letter of ``keys.py`` is a row here."""


def _id_at(key: bytes, at: int) -> int:
    return int.from_bytes(key[at : at + _ID], "big")


def name_of(key: bytes) -> str:
    """What a finding calls a row or a subject."""
    letter, rest = key[:1], key[1:]
    if letter == b"x":
        return f"extent {rest[:SEGMENT_BYTES].hex()}+{_id_at(rest, SEGMENT_BYTES)}"
    if letter in (b"b", b"l"):
        return f"{KINDS[letter].name} {_id_at(rest, 0)}"
    if letter == b"e" and len(rest) == _ID:
        return f"layer {_id_at(rest, 0)}"
    if letter == b"e":
        return f"edge between layers {_id_at(rest, 0)} and {_id_at(rest, _ID)}"
    name = KINDS[letter].name if letter in KINDS else "unknown row"
    return f"{name} {_printable(key)}"


def _sentence(finding: Finding) -> str:
    about = name_of(finding.about) if finding.about else ""
    return f"{name_of(finding.key)}: {finding.text.replace('{}', about)}"


def _printable(key: bytes) -> str:
    return repr(key)[2:-1]
