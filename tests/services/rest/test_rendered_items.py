"""What was written for a row is used again for the same key, value and form, and for nothing else."""

from kyanite.services.rest.rendered_items import RenderedItems, Row

LASTING, PASSING = b"lasting", b"passing"


class Writer:
    """Writes a number that no item had before, so that a text tells when it was written."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, row: Row) -> tuple[str, bool]:
        self.count += 1
        return f"[{row[0].decode()} {self.count}]", row[1] != PASSING


async def text(items: RenderedItems, writer: Writer, *rows: Row, form: int = 0) -> str:
    return b"".join(await items.written(rows, form, writer)).decode()


async def test_an_item_is_written_again_only_if_something_differs() -> None:
    items, writer = RenderedItems(), Writer()
    assert await text(items, writer, (b"a", LASTING), (b"b", b"other")) == "[a 1][b 2]"
    assert await text(items, writer, (b"a", LASTING), (b"b", b"other")) == "[a 1][b 2]"
    assert await text(items, writer, (b"a", b"changed"), (b"b", b"other")) == "[a 3][b 2]"
    assert await text(items, writer, (b"a", b"changed"), form=1) == "[a 4]"
    assert await text(items, writer, (b"a", b"changed"), form=0) == "[a 5]"
    assert await text(items, writer, (b"c", LASTING)) == "[c 6]", "another key with the same value"
    assert await text(items, writer, (b"c", LASTING), (b"a", LASTING)) == "[c 6][a 7]"


async def test_an_item_that_depends_on_the_time_is_written_each_time() -> None:
    items, writer = RenderedItems(), Writer()
    assert [await text(items, writer, (b"a", PASSING)) for _ in range(2)] == ["[a 1]", "[a 2]"]


async def test_the_memory_is_bounded_and_begins_anew_when_too_much_was_left_out() -> None:
    items, writer = RenderedItems(max_bytes=10 * 400), Writer()
    rows = [(b"%d" % number, b"value %d" % number) for number in range(30)]
    first = await text(items, writer, *rows[:5])
    for _ in range(3):
        await text(items, writer, *rows[5:10])
        assert await text(items, writer, *rows[:5]) == first
    held = items.held_bytes
    assert 0 < held <= 10 * 400
    await text(items, writer, *rows)
    assert items.held_bytes <= 10 * 400
    assert await text(items, writer, *rows[:5]) != first, "it has begun anew"


async def test_replacing_an_item_takes_no_more_memory() -> None:
    items, writer = RenderedItems(), Writer()
    await text(items, writer, (b"a", LASTING))
    held = items.held_bytes
    for form in range(1, 9):
        await text(items, writer, (b"a", LASTING), form=form)
    assert items.held_bytes == held


async def test_many_rows_are_written_in_slices() -> None:
    items, writer = RenderedItems(), Writer()
    rows = [(b"%d" % number, b"value %d" % number) for number in range(1000)]
    assert len(await items.written(rows, 0, writer)) == 9
    assert len(await items.written(rows, 0, writer)) == 2
    assert writer.count == 1000
