"""Find Blobs by Tags below HTTP: what is found, in pages of any size, and how many rows it takes."""

import random
from collections.abc import Iterator
from functools import partial

import pytest

from kyanite.engine.api import Transaction
from kyanite.model import keys
from kyanite.model.blobs import container, put, tag_index, tag_search, tags
from kyanite.model.blobs.blob import UNCONDITIONAL
from kyanite.model.blobs.container import ContainerKey
from kyanite.model.blobs.put import NewBlob
from kyanite.model.blobs.records import BLOCK_BLOB, BlobRecord
from kyanite.model.blobs.rows import BlobKey
from kyanite.model.blobs.tag_search import BEGINNING, FoundBlob, SearchPosition, TagSearch
from kyanite.model.content.content import NO_CONTENT
from kyanite.model.records import encode
from kyanite.rules.preconditions import NONE
from kyanite.rules.refusals import Reason
from kyanite.rules.tag_expressions import decode_search
from kyanite.rules.tags import Tags
from kyanite.values import Instant
from tests import profiles
from tests.model.blobs.store import CONTAINER, HTTP, BlobStore, blob, refused, run
from tests.model.counted import unlimited

Found = list[tuple[str, str]]


def put_tagged(store: BlobStore, key: BlobKey, /, **given: str) -> None:
    new = NewBlob(b"", 0, HTTP, {}, tags=tuple(sorted(given.items())))
    run(put.put(store.engine, key, new, UNCONDITIONAL, may_overwrite=True))


def create(store: BlobStore, name: str, account: str = "acme") -> ContainerKey:
    key = ContainerKey(account, name)
    run(container.create(store.engine, key, metadata={}, public_access=""))
    return key


def pages(
    store: BlobStore,
    where: str,
    limit: int = 5000,
    *,
    account: str = "acme",
    box: str = "",
    first: SearchPosition | None = BEGINNING,
) -> Iterator[list[FoundBlob]]:
    search = decode_search(where, names_container=not box)
    while first is not None:
        request = TagSearch(account, search, box, first, limit)
        page = run(tag_search.find_blobs(store.engine, request))
        assert len(page.blobs) <= limit
        yield page.blobs
        first = page.next_start
        if first is not None:
            assert 0 <= first.way < tag_search.ways_to(search)
            assert max(map(len, (first.at, first.after, first.tried_at))) <= tag_search.POSITION_MAX_BYTES


def find(store: BlobStore, where: str, limit: int = 5000, *, account: str = "acme", box: str = "") -> Found:
    found = [each for page in pages(store, where, limit, account=account, box=box) for each in page]
    return [(each.container, each.name) for each in found]


def cost(store: BlobStore, where: str, limit: int = 5000, *, box: str = "") -> tuple[int, int]:
    """How many blobs are found in all pages, and how many rows that takes, in steps of a bounded size."""
    before = len(store.engine.costs)
    count = len(find(store, where, limit, box=box))
    steps = store.engine.costs[before:]
    assert max(steps) <= 2_000
    return count, sum(steps)


# What is found


def test_blobs_of_an_account_and_of_a_container(store: BlobStore) -> None:
    other = create(store, "other")
    foreign = create(store, "box", "rival")
    put_tagged(store, blob("a"), colour="red", size="1")
    put_tagged(store, blob("b"), colour="blue", size="2")
    put_tagged(store, BlobKey(other, "a"), colour="red", size="2")
    put_tagged(store, BlobKey(foreign, "x"), colour="red")
    assert find(store, "colour = 'red'") == [("box", "a"), ("other", "a")]
    assert find(store, "colour = 'red' AND size = '2'") == [("other", "a")]
    assert find(store, "colour = 'red'", box="box") == [("box", "a")]
    assert find(store, "@container = 'other' AND colour = 'red'") == [("other", "a")]
    assert find(store, "@container = 'none' AND colour = 'red'") == []
    assert find(store, "colour = 'red'", account="rival") == [("box", "x")]
    assert find(store, "colour = 'red'", account="acm") == []
    assert find(store, "colou = 'red'") == find(store, "colour = 're'") == []
    with refused(Reason.CONTAINER_NOT_FOUND):
        find(store, "colour = 'red'", box="none")


def test_only_the_tags_that_the_search_names_are_returned(store: BlobStore) -> None:
    put_tagged(store, blob("a"), colour="red", size="1", other="x")
    ((found,),) = pages(store, "size > '0' AND colour = 'red'")
    assert found == FoundBlob("box", "a", (("colour", "red"), ("size", "1")))


def test_a_range_is_in_the_order_of_the_values(store: BlobStore) -> None:
    other = create(store, "other")
    for number in range(12):
        put_tagged(store, blob(f"b{number:02}"), size=f"{11 - number:02}")
        put_tagged(store, BlobKey(other, f"o{number:02}"), size=f"{11 - number:02}")
    assert find(store, "size >= '03' AND size < '05'") == [
        ("box", "b08"),
        ("other", "o08"),
        ("box", "b07"),
        ("other", "o07"),
    ]
    assert find(store, "size > '09'", box="other") == [("other", "o01"), ("other", "o00")]
    assert find(store, "size <= '00'") == [("box", "b11"), ("other", "o11")]
    assert find(store, "size > '05' AND size < '05'") == find(store, "size > '5' AND size < '0'") == []
    assert len(find(store, "size >= ''")) == 24


def test_what_is_gone_is_not_found(store: BlobStore) -> None:
    put_tagged(store, blob("a"), colour="red")
    at = store.snapshot("a")
    run(tags.set_tags(store.engine, blob("a", at), (("colour", "blue"),), UNCONDITIONAL))
    assert find(store, "colour > ''") == [("box", "a")]
    run(tags.set_tags(store.engine, blob("a"), (("colour", "green"),), UNCONDITIONAL))
    assert find(store, "colour = 'red'") == []
    assert find(store, "colour = 'green'") == [("box", "a")]
    store.put("a")
    assert find(store, "colour > ''") == []


def test_a_deleted_container_is_not_found_and_costs_a_seek(store: BlobStore) -> None:
    other = create(store, "other")
    for number in range(300):
        put_tagged(store, blob(f"b{number}"), colour="red", size=str(number % 2))
    put_tagged(store, BlobKey(other, "kept"), colour="red", size="1")
    run(container.delete(store.engine, CONTAINER, NONE, None))
    create(store, "box")
    for where in ("colour = 'red'", "colour > 'blue'", "colour = 'red' AND size > '0'"):
        assert find(store, where) == [("other", "kept")]
    assert cost(store, "colour = 'red'")[1] < 40
    put_tagged(store, blob("new"), colour="red")
    assert sorted(find(store, "colour = 'red'")) == [("box", "new"), ("other", "kept")]
    store.maintain()
    assert sorted(find(store, "colour = 'red'")) == [("box", "new"), ("other", "kept")]


def test_a_renamed_container_is_found_by_its_new_name(store: BlobStore) -> None:
    put_tagged(store, blob("a"), colour="red")
    new = ContainerKey("acme", "renamed")

    run(container.rename(store.engine, CONTAINER, new, None))
    assert find(store, "colour = 'red'") == find(store, "colour = 'red'", box="renamed") == [("renamed", "a")]
    put_tagged(store, BlobKey(new, "b"), colour="red")
    assert find(store, "colour = 'red'") == [("renamed", "a"), ("renamed", "b")]


def test_a_page_begins_with_the_first_blob_that_the_one_before_had_no_room_for(store: BlobStore) -> None:
    for number in range(10):
        put_tagged(store, blob(f"b{number}"), colour="red")
    reading = pages(store, "colour = 'red'", 4)
    first = [each.name for each in next(reading)]
    put_tagged(store, blob("b0"), colour="blue")
    put_tagged(store, blob("b4"), colour="blue")
    put_tagged(store, blob("b35"), colour="red")
    put_tagged(store, blob("b55"), colour="red")
    rest = [each.name for page in reading for each in page]
    assert first == ["b0", "b1", "b2", "b3"]
    assert rest == ["b5", "b55", "b6", "b7", "b8", "b9"]


def test_another_way_takes_over_with_the_blob_at_which_the_first_was(store: BlobStore) -> None:
    for name in "abc":
        put_tagged(store, blob(name), k="1", l="1")
    search = decode_search("k = '1' AND l > '0'", names_container=False)
    page = run(tag_search.find_blobs(store.engine, TagSearch("acme", search, limit=1)))
    assert page.next_start is not None
    ended = page.next_start._replace(tried=1, tried_at=b"\xff")
    rest = run(tag_search.find_blobs(store.engine, TagSearch("acme", search, first=ended)))
    assert [each.name for each in page.blobs + rest.blobs] == ["a", "b", "c"]
    assert rest.next_start is None


NAMES = ["a", "a\x01", "a/b", "aa", "b", "\u00e9", "\U0001f600", "z" * 300]
VALUES = ["", "0", "1", "10", "2", "A", "a", "zz"]
KEYS = ["k", "key", "k k"]


@pytest.mark.parametrize("seed", range(3))
def test_random_searches_in_pages_of_any_size(
    store: BlobStore, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a comparison of all blobs one by one; also where pages end early and ways are tried with few rows."""
    chance = random.Random(seed)
    boxes = [CONTAINER, create(store, "second"), create(store, "third")]
    stored: dict[tuple[str, str], Tags] = {}
    for _ in range(150):
        box, name = chance.choice(boxes), chance.choice(NAMES)
        given = {key: chance.choice(VALUES) for key in chance.sample(KEYS, chance.randrange(4))}
        put_tagged(store, BlobKey(box, name), **given)
        stored[box.name, name] = tuple(sorted(given.items()))
    for _ in range(profiles.examples(150)):
        monkeypatch.setattr(tag_search, "ROWS_MAX", chance.choice((1, 5, 20, 20_000)))
        parts = []
        for key in chance.sample(KEYS, chance.randint(1, 3)):
            if chance.random() < 0.5:
                parts.append(f"\"{key}\" = '{chance.choice(VALUES)}'")
                continue
            parts += [
                f"\"{key}\" {chance.choice(bound)} '{chance.choice(VALUES)}'"
                for bound in chance.sample((("<", "<="), (">", ">=")), chance.randint(1, 2))
            ]
        where = " AND ".join(parts)
        scope = chance.choice(("", "second"))
        search = decode_search(where, names_container=True)
        expected = {each for each, given in stored.items() if search.is_met(given) and scope in ("", each[0])}
        first = BEGINNING._replace(limit=chance.choice((1, 3, 64)))
        in_pages = pages(store, where, chance.choice((1, 2, 7, 5000)), box=scope, first=first)
        found = [(each.container, each.name) for page in in_pages for each in page]
        assert len(found) == len(set(found)), where
        assert set(found) == expected, where


# What it costs

BLOBS = 50_000
"""A million in the long profile."""
RARE = 50


@pytest.fixture(scope="module")
def large() -> BlobStore:
    """All blobs have two tags in common; fifty have a rare one, every tenth another; each day has a thousandth."""
    store = BlobStore()
    other = create(store, "other")
    count = profiles.examples(BLOBS)
    boxes = [
        (each, record.id)
        for each in (CONTAINER, other)
        if (record := run(container.find(store.engine, each))) is not None
    ]
    for first in range(0, count, 10_000):
        with unlimited():
            run(store.engine.run(partial(_fill, boxes=boxes, first=first, count=count)))
    return store


def _fill(tx: Transaction, boxes: list[tuple[ContainerKey, int]], first: int, count: int) -> None:
    for number in range(first, min(first + 10_000, count)):
        given = {"state": "done", "region": "eu", "day": f"{number * 1000 // count:03}"}
        if number % (count // RARE) == 0:
            given["case"] = "closed"
        if number % 10 == 0:
            given["tenth"] = "yes"
        tags_of_blob = tuple(sorted(given.items()))
        box, box_id = boxes[number % 2]
        name = f"blob{number:07}"
        record = BlobRecord(
            Instant(tx.now), Instant(tx.now), BLOCK_BLOB, 0, NO_CONTENT, HTTP, {}, tags=tags_of_blob
        )
        tx.put(keys.blob(box_id, name), encode(record))
        tag_index.update(tx, box, box_id, name, (), tags_of_blob)


@pytest.mark.parametrize(
    ("where", "days", "rare", "rows_each"),
    [
        # One comparison: a row of the index and a record for each blob.
        ("\"case\" = 'closed'", 0, RARE, 3),
        ("state = 'open'", 0, 0, 0),
        ("state > 'done'", 0, 0, 0),
        ("state < 'done'", 0, 0, 0),
        # A rare value and common ones, in any order of the comparisons.
        ("\"case\" = 'closed' AND state = 'done'", 0, RARE, 10),
        ("state = 'done' AND region = 'eu' AND \"case\" = 'closed'", 0, RARE, 20),
        ("state = 'done' AND missing = 'x'", 0, 0, 0),
        # A short range of values and common ones; common ranges and a rare value.
        ("state = 'done' AND day = '500'", 1, 0, 10),
        ("state = 'done' AND day > '500' AND day <= '502'", 2, 0, 25),
        ("day >= '000' AND \"case\" = 'closed' AND state = 'done'", 0, RARE, 40),
        ("state > 'a' AND region > 'a' AND day > '997'", 2, 0, 25),
        ("state = 'done' AND day < '020'", 20, 0, 25),
        ("region > 'a' AND day < '020'", 20, 0, 25),
        # In one container, in which half of the blobs are, but none with the rare value.
        ("@container = 'other' AND state = 'done' AND \"case\" > 'a'", 0, 0, 0),
        ("@container = 'other' AND day = '500'", 0.5, 0, 4),
    ],
)
def test_a_search_costs_what_its_most_selective_comparison_finds(
    large: BlobStore, where: str, days: float, rare: int, rows_each: int
) -> None:
    """A day has a thousandth of all blobs."""
    found, rows = cost(large, where)
    print(f"{where}: {found} blobs, {rows} rows")
    assert found == profiles.examples(BLOBS) * days // 1000 + rare
    assert rows <= 200 + found * rows_each


def test_the_pages_of_a_search_cost_together_what_one_would(large: BlobStore) -> None:
    """The way is chosen once."""
    where = "state = 'done' AND day > '500' AND day <= '502'"
    count, in_one = cost(large, where)
    again, in_ten = cost(large, where, count // 10)
    assert again == count
    assert in_ten < 2 * in_one


def test_a_page_ends_early_where_much_is_read_and_little_found(large: BlobStore) -> None:
    """Two common values that no blob has together: every page is bounded, and says where the next one begins."""
    where = "tenth = 'yes' AND \"case\" < 'a'"
    assert find(large, where) == []
    where = "tenth >= 'yes' AND state > 'e'"
    assert cost(large, where, 1)[0] == 0
    half = "state = 'done' AND region >= 'eu' AND day < '500'"
    before = len(large.engine.costs)
    first = next(pages(large, half, 5000))
    assert 1000 < len(first) < 5000
    assert sum(large.engine.costs[before:]) <= tag_search.ROWS_MAX + 2_000
