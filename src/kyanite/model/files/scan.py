"""Scanning a directory for an SMB client: the entries that match a pattern, behind the last one that was returned.

Unlike the pages of REST (``listing.py``), a scan ends where the client's buffer is full, and it shows entries that are
marked for deletion. Its position is a folded name, so entries that are made or removed between two requests disturb
nothing, and no entry appears twice.
"""

from collections.abc import Callable, Iterator

import msgspec

from kyanite.engine.api import Snapshot
from kyanite.model import keys
from kyanite.model.files import listing
from kyanite.model.files import tree as file_tree
from kyanite.model.files.entry import NAME, Entry, decode_entry
from kyanite.model.files.listing import DirectoryListing
from kyanite.model.files.tree import Location, Tree
from kyanite.rules.wildcards import Pattern
from kyanite.slices import ITEMS_PER_SLICE
from kyanite.values import Instant

ROWS_MAX = ITEMS_PER_SLICE
"""That one scan reads, since a buffer is packed in one slice."""
_HARD_ROWS_MAX = 64
_HARD_CHARACTERS_MAX = 2000
"""What takes as long with a pattern that is not simple: rows of a snapshot, or characters of names."""

_BEHIND = "\x01"
"""Behind a name and its preserved rows, and before every longer name."""


_NOTHING = msgspec.Raw()


class ScannedEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An entry of which only what a scan shows is decoded."""

    name: str
    id: int
    kind: int
    written_at: Instant
    modified_at: Instant
    created_at: Instant
    last_write_at: Instant
    changed_at: Instant
    attributes: int
    permission: bytes
    metadata: msgspec.Raw
    length: int = 0
    content: msgspec.Raw = _NOTHING
    http: msgspec.Raw = _NOTHING
    lease: msgspec.Raw = _NOTHING
    copy: msgspec.Raw = _NOTHING
    posix: msgspec.Raw = _NOTHING
    target: msgspec.Raw = _NOTHING
    for_files: msgspec.Raw = _NOTHING
    for_directories: msgspec.Raw = _NOTHING
    links: int = 1
    former: msgspec.Raw = _NOTHING
    named_at: Instant = Instant(0)
    set_last_access_at: Instant = Instant(0)

    @property
    def last_access_at(self) -> Instant:
        return self.set_last_access_at or self.last_write_at


_decode: Callable[[bytes], ScannedEntry] = msgspec.msgpack.Decoder(ScannedEntry).decode


def behind(folded_name: str) -> str:
    """Where a scan continues behind this name."""
    return folded_name + _BEHIND


class DirectoryScan:
    """The entries of a directory that match a pattern, beginning at a name. It may end before the directory does."""

    def __init__(
        self,
        snap: Snapshot,
        tree: Tree,
        directory_id: int,
        pattern: Pattern,
        *,
        first: str = "",
        limit: int = ROWS_MAX,
    ) -> None:
        """``limit`` says how many entries the caller can use."""
        self._snap = snap
        self._tree = tree
        self._directory_id = directory_id
        self._pattern = pattern
        self._first = first
        self._rows_max = ROWS_MAX
        if not pattern.is_simple and tree.at is not None:
            self._rows_max = _HARD_ROWS_MAX
        if pattern.matches_all:
            self._rows_max = min(self._rows_max, limit)
        self.next: str | None = first
        """When all was read: the folded name at which the next scan begins, or None at the end of the directory."""

    def __iter__(self) -> Iterator[ScannedEntry | Entry]:
        if self._pattern.is_exact:
            return self._exact()
        return self._live() if self._tree.at is None else self._at_snapshot(self._tree.at)

    def _exact(self) -> Iterator[Entry]:
        self.next = None
        name = self._pattern.prefix
        if name and self._first <= name:
            _, entry = file_tree.look_up(self._snap, Location(self._tree, self._directory_id, name))
            if entry is not None:
                yield entry

    def _live(self) -> Iterator[ScannedEntry | Entry]:
        matches = None if self._pattern.matches_all else self._pattern.matches
        base = keys.entries(self._tree.id, self._directory_id)
        within = base + self._pattern.prefix.encode()
        start = max(within, base + (self._first or _BEHIND).encode())
        cut, rows, key = len(base), 0, base
        left = _HARD_CHARACTERS_MAX
        cost = 0 if self._pattern.is_simple else 1
        for key, value in self._snap.scan(start, keys.after(within), limit=self._rows_max):
            rows += 1
            if matches is None or matches(key[cut:].decode()):
                entry = _decode(value)
                yield self._follow(value) if entry.kind == NAME else entry
            left -= cost * (len(key) - cut)
            if left <= 0:
                break
        self.next = None if rows < self._rows_max and left > 0 else behind(key[cut:].decode())

    def _follow(self, value: bytes) -> Entry:
        return file_tree.follow(self._snap, self._tree, decode_entry(value))

    def _at_snapshot(self, at: Instant) -> Iterator[Entry]:
        request = DirectoryListing(self._pattern.prefix, self._first, self._rows_max)
        entries, following = listing.entries_at(self._snap, self._tree, self._directory_id, request, at)
        for entry in entries:
            if self._pattern.matches(self._tree.fold(entry.name)):
                yield entry
        self.next = following
