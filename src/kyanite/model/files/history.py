"""What a file was like at snapshots of its share, at whichever location it was then.

A preserved row is found by the location that the file had. A file that was renamed remembers the locations at which
snapshots contain it, at most one for each snapshot.
"""

from bisect import bisect_left
from collections.abc import Iterator

from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Steps, Transaction
from kyanite.model import keys
from kyanite.model.files.entry import Entry, Former, decode_entry
from kyanite.model.files.share_snapshots import instants
from kyanite.model.files.tree import Location
from kyanite.values import Instant

_ROWS_PER_STEP = 250


def leave_location(tx: Transaction, location: Location, entry: Entry) -> Entry:
    """The entry of a file that leaves this location, with the locations at which snapshots contain it."""
    latest = location.tree.share.latest_snapshot
    if (entry.named_at or entry.id) > latest:
        return replace(entry, named_at=tx.now)
    locations = (*entry.former, Former(latest, *location.row))
    ends = [each.until for each in locations]
    needed = {bisect_left(ends, instant) for instant in instants(tx, location.tree.id)}
    kept = tuple(each for number, each in enumerate(locations) if number in needed)
    return replace(entry, former=kept, named_at=tx.now)


def versions(snap: Snapshot, location: Location, entry: Entry, since: Instant) -> Steps[list[Entry]]:
    """The file as it was at a snapshot, as later snapshots contain it, and as it is now; without the first if it did
    not exist yet."""
    locations = [(each.directory_id, each.folded_name) for each in entry.former if each.until >= since]
    rows: list[Entry] = []
    rows_read = 0
    for directory_id, folded_name in dict.fromkeys((*locations, location.of_name.row, location.row)):
        for row in _preserved(snap, location.tree.id, directory_id, folded_name, since):
            rows_read += 1
            if row.id == entry.id and row.kind == entry.kind and row.written_at < entry.written_at:
                rows.append(row)
            if rows_read % _ROWS_PER_STEP == 0:
                yield
    return [*sorted(rows, key=lambda row: row.written_at), entry]


def _preserved(
    snap: Snapshot, share_id: int, directory_id: int, folded_name: str, since: Instant
) -> Iterator[Entry]:
    base = keys.preserved_entries_of(share_id, directory_id, folded_name)
    for _, value in snap.scan(base + keys.number(since), keys.after(base)):
        yield decode_entry(value)
