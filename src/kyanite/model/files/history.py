"""What a file was like at snapshots of its share, wherever in the tree it was then.

A row set aside is found by the place it had. A file that was renamed since remembers the places that snapshots show it
at, one for each snapshot at most.
"""

from bisect import bisect_left

from msgspec.structs import replace

from kyanite.engine.api import Snapshot, Transaction
from kyanite.model import keys
from kyanite.model.files.entry import Entry, Former, decode_entry
from kyanite.model.files.share_snapshots import instants
from kyanite.model.files.tree import Location
from kyanite.values import Instant


def leaving(tx: Transaction, location: Location, entry: Entry) -> Entry:
    """A file that leaves this place, with the places that a snapshot may still ask for."""
    latest = location.tree.share.latest_snapshot
    if (entry.placed_at or entry.id) > latest:
        return replace(entry, placed_at=tx.now)
    locations = (*entry.former, Former(latest, *location.row))
    ends = [each.until for each in locations]
    asked_for = {bisect_left(ends, instant) for instant in instants(tx, location.tree.id)}
    kept = tuple(each for number, each in enumerate(locations) if number in asked_for)
    return replace(entry, former=kept, placed_at=tx.now)


def versions(snap: Snapshot, location: Location, entry: Entry, since: Instant) -> list[Entry]:
    """The file as it was at a snapshot, as others after that show it, and as it is; without the first if it was not
    there yet."""
    locations = [(each.directory_id, each.folded_name) for each in entry.former if each.until >= since]
    rows = [
        row
        for directory_id, folded_name in dict.fromkeys((*locations, location.of_name.row, location.row))
        for row in _asides(snap, location.tree.id, directory_id, folded_name, since)
        if row.id == entry.id and row.kind == entry.kind and row.written_at < entry.written_at
    ]
    return [*sorted(rows, key=lambda row: row.written_at), entry]


def _asides(
    snap: Snapshot, share_id: int, directory_id: int, folded_name: str, since: Instant
) -> list[Entry]:
    base = keys.preserved_entries_of(share_id, directory_id, folded_name)
    return [decode_entry(value) for _, value in snap.scan(base + keys.number(since), keys.after(base))]
