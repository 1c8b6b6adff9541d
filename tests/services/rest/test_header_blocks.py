"""The headers of a record are remembered from the second read on, for that record and for no other."""

from kyanite.services.rest import header_blocks
from kyanite.services.rest.header_blocks import HeaderBlocks

HEADERS = [("ETag", '"1"'), ("x-ms-meta-a", "b")]


class Record:
    """Equal to all of its kind, so that only being the same one counts."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


def test_headers_are_kept_when_a_record_is_read_again() -> None:
    blocks, record = HeaderBlocks(), Record()
    assert blocks.find(record) is None
    blocks.remember(record, HEADERS)
    assert blocks.find(record) is None, "it was read once"
    blocks.remember(record, HEADERS)
    block = blocks.find(record)
    assert block is not None
    assert block.headers == HEADERS
    assert block.lines == 'ETag: "1"\r\nx-ms-meta-a: b\r\n'
    assert blocks.find(Record()) is None


def test_a_response_may_get_more_headers_than_its_block() -> None:
    blocks, record = HeaderBlocks(), Record()
    for _ in range(2):
        blocks.remember(record, HEADERS)
    block = blocks.find(record)
    assert block is not None
    response = block.response(206)
    response.headers.append(("Vary", "Origin"))
    assert response.status == 206
    assert response.block is block
    assert block.headers == HEADERS


def test_what_is_kept_is_bounded() -> None:
    blocks = HeaderBlocks()
    records = [Record() for _ in range(header_blocks.KNOWN_MAX + 1)]
    for record in records[:-1]:
        for _ in range(2):
            blocks.remember(record, HEADERS)
    assert all(blocks.find(record) is not None for record in records[:-1])
    blocks.remember(records[-1], HEADERS)
    assert not any(blocks.find(record) for record in records)
    many = [(f"x-ms-meta-{number}", "") for number in range(header_blocks.HEADERS_MAX + 1)]
    for _ in range(2):
        blocks.remember(records[0], many)
    assert blocks.find(records[0]) is None
