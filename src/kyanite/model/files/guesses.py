"""Where paths led last: guesses, by which a body reads all rows of a path at once instead of one after another.

A directory's row says which id the keys of its entries have, so on a remote engine a path of *n* names would be *n*
round trips. A process remembers the ids that it has seen, and a body asks for all rows that a path would lead through.
Then it walks the path by what these rows say, and reads alone each row that was not guessed. So no answer depends on
what is remembered, which another process may have changed: a wrong guess costs a read.

At a snapshot of the share the row of a name is the live one or one that was preserved. Of all rows of a name, one was
the live one at that instant, and it is known by what it says itself: it was written by then and preserved later, if at
all. So it can be guessed too, and needs no scan of the preserved ones to be confirmed.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from kyanite.engine.api import Snapshot
from kyanite.model import keys
from kyanite.model.damage import reports
from kyanite.model.files.share import NFS, ShareRecord, remembered_share
from kyanite.rules.file_names import fold
from kyanite.rules.refusals import Reason, Refused
from kyanite.values import Instant

Rows = Mapping[bytes, bytes | None]
"""Rows that a body has read, by their keys; None for one that is not there."""

NO_ROWS: Rows = {}
ROOT_ID = 0
"""Of the root directory, in every share."""

_SHARES_MAX = 500
_DIRECTORIES_MAX = 4_000

V = TypeVar("V")


class Recent(Generic[V]):
    """What was remembered last: at least ``limit`` values, and at most twice as many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._latest: dict[bytes, V] = {}
        self._earlier: dict[bytes, V] = {}

    def __len__(self) -> int:
        return len(self._latest) + len(self._earlier)

    def get(self, key: bytes) -> V | None:
        found = self._latest.get(key)
        return self._earlier.get(key) if found is None else found

    def remember(self, key: bytes, value: V) -> None:
        latest = self._latest
        latest[key] = value
        if len(latest) >= self._limit:
            self._earlier, self._latest = latest, {}

    def forget_all(self) -> None:
        self._latest, self._earlier = {}, {}


class Guesses:
    """Of one process. Bodies of several threads use it."""

    def __init__(self) -> None:
        self.shares: Recent[ShareRecord] = Recent(_SHARES_MAX)
        """By the keys of their rows, as are the ids of directories."""
        self.directories: Recent[int] = Recent(_DIRECTORIES_MAX)
        """At a snapshot, by the keys under which its rows would be preserved for it."""
        self.preserved: Recent[bytes] = Recent(_DIRECTORIES_MAX)
        """By the same keys, those under which the rows are preserved. Others are the live ones."""
        self.damaged_reads = 0

    def forget_after_damage(self) -> None:
        """A guess may lead to a damaged row that the path does not, and its requests would fail for ever."""
        self.damaged_reads = reports.reads
        self.shares.forget_all()
        self.directories.forget_all()
        self.preserved.forget_all()


known = Guesses()


def open_share(
    snap: Snapshot, share_row: bytes, names: tuple[str, ...], with_root: bool
) -> tuple[ShareRecord, Rows]:
    """The share of this row, and the rows of a path in it, as far as they can be guessed. The root's is one of them if
    the path has one name and the caller needs it."""
    if known.damaged_reads != reports.reads:
        known.forget_after_damage()
    guess = known.shares.get(share_row)
    wanted = [share_row] if guess is None else _path(guess, names, share_row)
    if guess is not None and with_root and len(names) == 1:
        wanted.append(keys.entry(guess.id, ROOT_ID, ""))
    rows = dict(zip(wanted, snap.get_many(wanted), strict=True))
    return _share_in(rows, share_row, guess), rows


def open_snapshot(
    snap: Snapshot, share_row: bytes, names: tuple[str, ...], at: Instant
) -> tuple[ShareRecord, Rows]:
    """The same at a snapshot of the share, of which the record is returned."""
    if known.damaged_reads != reports.reads:
        known.forget_after_damage()
    guess = known.shares.get(share_row)
    wanted = [share_row]
    if guess is not None:
        wanted = _path_at(guess, names, at, share_row, keys.share_snapshot(guess.id, at))
    rows = dict(zip(wanted, snap.get_many(wanted), strict=True))
    share = _share_in(rows, share_row, guess)
    snapshot_row = keys.share_snapshot(share.id, at)
    if snapshot_row not in rows:
        wanted = _path_at(share, names, at, snapshot_row)
        rows.update(zip(wanted, snap.get_many(wanted), strict=True))
    stored = rows[snapshot_row]
    if stored is None:
        raise Refused(Reason.SHARE_SNAPSHOT_NOT_FOUND)
    return remembered_share(stored), rows


def read_path(snap: Snapshot, share: ShareRecord, names: tuple[str, ...], at: Instant | None) -> Rows:
    """The rows of a path in a share that was read before."""
    if known.damaged_reads != reports.reads:
        known.forget_after_damage()
    wanted = _path(share, names) if at is None else _path_at(share, names, at)
    return dict(zip(wanted, snap.get_many(wanted), strict=True))


def _share_in(rows: Rows, share_row: bytes, guess: ShareRecord | None) -> ShareRecord:
    stored = rows[share_row]
    if stored is None:
        raise Refused(Reason.SHARE_NOT_FOUND)
    record = remembered_share(stored)
    if record is not guess:
        known.shares.remember(share_row, record)
    return record


def _path(share: ShareRecord, names: tuple[str, ...], *before: bytes) -> list[bytes]:
    """The keys of the rows that a path leads through, up to the first directory of which the id is not known."""
    found, directory_id, last = [*before], ROOT_ID, len(names) - 1
    folds = share.settings.protocol != NFS
    for index, name in enumerate(names or ("",)):
        key = keys.entry(share.id, directory_id, fold(name) if folds else name)
        found.append(key)
        known_id = known.directories.get(key) if index < last else None
        if known_id is None:
            break
        directory_id = known_id
    return found


def _path_at(share: ShareRecord, names: tuple[str, ...], at: Instant, *before: bytes) -> list[bytes]:
    """The same at a snapshot. A directory that is not known there is taken for the one that has the name now."""
    found, directory_id = [*before], ROOT_ID
    folds = share.settings.protocol != NFS
    for name in names or ("",):
        folded = fold(name) if folds else name
        live = keys.entry(share.id, directory_id, folded)
        as_of = keys.preserved_entry(share.id, directory_id, folded, at)
        found.append(known.preserved.get(as_of) or live)
        known_id = known.directories.get(as_of)
        if known_id is None:
            known_id = known.directories.get(live)
        if known_id is None:
            break
        directory_id = known_id
    return found
