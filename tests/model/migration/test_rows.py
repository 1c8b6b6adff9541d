"""The table of what becomes of each kind of row."""

from kyanite.model.migration.rows import MOVED, NOT_MOVED, Owner
from kyanite.model.verification.rows import KINDS


def test_every_kind_of_row_moves_or_has_a_reason_not_to() -> None:
    moved = {each.prefix[:1] for each in MOVED}
    assert moved | NOT_MOVED.keys() == KINDS.keys()
    assert not moved & NOT_MOVED.keys()


def test_every_owner_is_moved_before_what_belongs_to_it() -> None:
    """The rows whose records have the ids: of containers, queues, tables, shares and staging areas."""
    order = [each.prefix for each in MOVED]
    records = {
        Owner.CONTAINER: (b"c", b"5"),
        Owner.MESSAGE_SET: (b"q",),
        Owner.TABLE: (b"t",),
        Owner.SHARE: (b"F", b"R"),
        Owner.STAGING_AREA: (b"i",),
    }
    for each in MOVED:
        for record in records.get(each.owner, ()):
            assert order.index(record) < order.index(each.prefix)
