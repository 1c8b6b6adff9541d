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
from kyanite.values import Instant

ROWS_MAX = 4096
"""That one scan reads: what a loop can do at once without others noticing."""
_ROWS_MAX_OF_HARD_PATTERNS = 1024

_BEHIND = "\x01"
"""Behind a name and its preserved rows, and before every longer name."""


class ScannedEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a scan shows of an entry: the first fields of its row, so that the others need not be decoded."""

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


_decode: Callable[[bytes], ScannedEntry] = msgspec.msgpack.Decoder(ScannedEntry).decode


def behind(folded_name: str) -> str:
    """Where a scan continues behind this name."""
    return folded_name + _BEHIND


class DirectoryScan:
    """The entries of a directory that match a pattern, beginning at a name. It may end before the directory does."""

    def __init__(
        self, snap: Snapshot, tree: Tree, directory_id: int, pattern: Pattern, *, first: str = ""
    ) -> None:
        self._snap = snap
        self._tree = tree
        self._directory_id = directory_id
        self._pattern = pattern
        self._first = first
        self._rows_max = ROWS_MAX if pattern.is_simple else _ROWS_MAX_OF_HARD_PATTERNS
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
        snap, matches = self._snap, self._pattern.matches
        base = keys.entries(self._tree.id, self._directory_id)
        within = base + self._pattern.prefix.encode()
        start = max(within, base + (self._first or _BEHIND).encode())
        cut, rows, name = len(base), 0, ""
        for key, value in snap.scan(start, keys.after(within), limit=self._rows_max):
            rows += 1
            name = key[cut:].decode()
            if matches(name):
                entry = _decode(value)
                yield self._follow(value) if entry.kind == NAME else entry
        self.next = None if rows < self._rows_max else behind(name)

    def _follow(self, value: bytes) -> Entry:
        return file_tree.follow(self._snap, self._tree, decode_entry(value))

    def _at_snapshot(self, at: Instant) -> Iterator[Entry]:
        request = DirectoryListing(self._pattern.prefix, self._first, self._rows_max)
        entries, following = listing.entries_at(self._snap, self._tree, self._directory_id, request, at)
        for entry in entries:
            if self._pattern.matches(self._tree.fold(entry.name)):
                yield entry
        self.next = following
