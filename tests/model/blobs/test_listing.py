"""Listings against an oracle: a dictionary of names, whatever the pages, and whatever was deleted or has expired."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kyanite.model.blobs import history, listing
from kyanite.model.blobs.delete import Snapshots
from kyanite.model.blobs.history import INLINE_MAX
from kyanite.model.blobs.listed_rows import BASE_BLOB, ListedParts
from kyanite.model.blobs.listing import BlobItem, BlobListing, BlobPageStart
from kyanite.rules.refusals import Reason
from kyanite.values import Instant
from tests.model.blobs.store import CONTAINER, WEEK, BlobStore, refused, run

NAMES = ["a", "a!", "a/", "a/b", "a/c", "a/c/d", "ab", "b/c", "c", "ä"]
Entry = tuple[str, Instant | None, str]
"""A name, the instant of a snapshot, and what it is: blob, uncommitted or folder."""


def entry_of(item: BlobItem) -> Entry:
    kind = "uncommitted" if item.is_uncommitted else "blob" if item.record is not None else "folder"
    return item.name, item.snapshot, kind


def list_all(store: BlobStore, request: BlobListing) -> list[Entry]:
    """All pages."""
    found: list[Entry] = []
    for _ in range(500):
        page = run(listing.list_blobs(store.engine, CONTAINER, request))
        assert len(page.items) <= request.limit
        found += map(entry_of, page.items)
        if page.next_start is None:
            return found
        request = BlobListing(
            request.prefix,
            request.delimiter,
            page.next_start,
            request.before,
            request.limit,
            request.parts,
        )
    raise AssertionError("The listing does not end.")


@dataclass
class Oracle:
    """What the container holds, in plain values."""

    blobs: set[str] = field(default_factory=set)
    snapshots: dict[str, list[Instant]] = field(default_factory=dict)
    staged_at: dict[str, int] = field(default_factory=dict)

    def entries(self, request: BlobListing, now: int) -> list[Entry]:
        found: list[Entry] = []
        for name in sorted(NAMES, key=str.encode):
            if not name.startswith(request.prefix) or (
                request.before and name.encode() >= request.before.encode()
            ):
                continue
            if request.parts.snapshots:
                found += [(name, at, "blob") for at in self.snapshots.get(name, [])]
            is_alive = name in self.staged_at and now < self.staged_at[name] + WEEK
            if name in self.blobs:
                found.append((name, None, "blob"))
            elif request.parts.uncommitted and is_alive:
                found.append((name, None, "uncommitted"))
        if not request.delimiter:
            return found
        folded: list[Entry] = []
        for entry in found:
            head, cut, _ = entry[0][len(request.prefix) :].partition(request.delimiter)
            item = (request.prefix + head + cut, None, "folder") if cut else entry
            if not cut or item not in folded:
                folded.append(item)
        return folded


ACTIONS = st.tuples(
    st.sampled_from(
        ["put", "put", "snapshot", "snapshot", "stage", "delete", "include", "only", "wait", "maintain"]
    ),
    st.sampled_from(NAMES),
    st.integers(1, 6),
)
REQUESTS = st.builds(
    BlobListing,
    prefix=st.sampled_from(["", "", "a", "a/", "b", "z"]),
    delimiter=st.sampled_from(["", "", "/", "/c"]),
    before=st.sampled_from(["", "", "a/c", "b"]),
    limit=st.integers(1, 7),
    parts=st.builds(ListedParts, snapshots=st.booleans(), uncommitted=st.booleans()),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(ACTIONS, max_size=40), st.lists(REQUESTS, min_size=1, max_size=6), st.sampled_from([5, 20_000])
)
def test_listings_against_an_oracle(
    actions: list[tuple[str, str, int]], requests: list[BlobListing], rows_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(history, "INLINE_MAX", 2)
        patched.setattr(listing, "ROWS_MAX", rows_max)
        store, oracle, seconds = BlobStore(), Oracle(), 0
        for action, name, number in actions:
            if action == "wait":
                store.wait(number * 150_000)
                seconds += number * 150_000
            else:
                _act(store, oracle, action, name, number, seconds)
        for request in requests:
            assert list_all(store, request) == oracle.entries(request, seconds)


def _act(store: BlobStore, oracle: Oracle, action: str, name: str, number: int, seconds: int) -> None:
    is_staged = name in oracle.staged_at and seconds < oracle.staged_at[name] + WEEK
    exists = name in oracle.blobs
    match action:
        case "put":
            store.put(name)
            oracle.blobs.add(name)
            oracle.staged_at.pop(name, None)
        case "snapshot" if exists:
            oracle.snapshots.setdefault(name, []).extend(store.snapshot(name) for _ in range(number))
        case "stage":
            store.wait(
                1
            )  # So that the week of the oracle, in whole seconds, does not end before the block's.
            store.stage(name, b"1")
            store.now = Instant(store.now - 10_000_000)
            oracle.staged_at[name] = seconds + 1
        case "delete" if exists or is_staged:
            if oracle.snapshots.get(name):
                with refused(Reason.SNAPSHOTS_PRESENT):
                    store.delete(name)
                return
            store.delete(name)
            oracle.blobs.discard(name)
            oracle.staged_at.pop(name, None)
        case "include" if exists or is_staged:
            store.delete(name, snapshots=Snapshots.INCLUDE)
            oracle.blobs.discard(name)
            oracle.staged_at.pop(name, None)
            oracle.snapshots.pop(name, None)
        case "only" if exists or is_staged:
            store.delete(name, snapshots=Snapshots.ONLY)
            oracle.snapshots.pop(name, None)
        case "maintain":
            store.maintain()


@pytest.mark.parametrize(("limit", "rows_max"), [(1, 100), (9, 2), (9, 3)])
def test_a_blob_with_staged_blocks_is_listed_once_wherever_a_page_ends(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch, limit: int, rows_max: int
) -> None:
    monkeypatch.setattr(listing, "ROWS_MAX", rows_max)
    for name in ("a", "b"):
        store.put(name)
        store.stage(name, b"1")
    entries = list_all(store, BlobListing(limit=limit, parts=ListedParts(uncommitted=True)))
    assert entries == [("a", None, "blob"), ("b", None, "blob")]


def test_a_start_before_the_prefix_leaves_nothing_out(store: BlobStore) -> None:
    store.put("b")
    at = store.snapshot("b")
    request = BlobListing(prefix="b", first=BlobPageStart("a", BASE_BLOB), parts=ListedParts(snapshots=True))
    assert list_all(store, request) == [("b", at, "blob"), ("b", None, "blob")]


def test_a_page_starts_inside_the_snapshots_of_a_name_without_reading_those_before(store: BlobStore) -> None:
    store.put("b")
    instants = [store.snapshot("b") for _ in range(1000)]
    request = BlobListing(limit=10, parts=ListedParts(snapshots=True))
    assert [at for _, at, _ in list_all(store, request)] == [*instants, None]
    costs = store.engine.costs[-101:]
    assert max(costs) < 40, "a page costs the same wherever it starts"


def test_deleted_snapshots_are_skipped_and_not_read(store: BlobStore) -> None:
    store.put("b")
    for _ in range(1000):
        store.snapshot("b")
    store.delete("b", snapshots=Snapshots.ONLY)
    assert len(store.rows(b"v")) == 1000
    kept = store.snapshot("b")
    assert list_all(store, BlobListing(parts=ListedParts(snapshots=True))) == [
        ("b", kept, "blob"),
        ("b", None, "blob"),
    ]
    assert store.cost < 30


def test_a_mark_that_is_made_between_two_pages_hides_the_rest(store: BlobStore) -> None:
    store.put("b")
    for _ in range(INLINE_MAX + 10):
        store.snapshot("b")
    page = run(
        listing.list_blobs(store.engine, CONTAINER, BlobListing(limit=5, parts=ListedParts(snapshots=True)))
    )
    store.delete("b", snapshots=Snapshots.ONLY)
    assert page.next_start is not None
    rest = list_all(store, BlobListing(first=page.next_start, parts=ListedParts(snapshots=True)))
    assert rest == [("b", None, "blob")]


def test_a_page_ends_early_among_rows_that_are_not_listed(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ROWS_MAX", 50)
    for number in range(300):
        store.stage(f"{number:03}", b"1")
    store.wait(WEEK + 1)
    store.put("x")
    first = len(store.engine.costs)
    assert list_all(store, BlobListing(parts=ListedParts(uncommitted=True))) == [("x", None, "blob")]
    pages = store.engine.costs[first:]
    assert len(pages) > 5
    assert max(pages) < 70


def test_folders_are_skipped_and_not_read(store: BlobStore) -> None:
    for folder in ("a", "b", "c"):
        for number in range(200):
            store.put(f"{folder}/{number}")
            store.stage(f"{folder}/staged-{number}", b"1")
    expected = [("a/", None, "folder"), ("b/", None, "folder"), ("c/", None, "folder")]
    for uncommitted in (False, True):
        assert (
            list_all(store, BlobListing(delimiter="/", parts=ListedParts(uncommitted=uncommitted)))
            == expected
        )
        assert store.cost < 40
