"""Markers between the rows of one name: what a page gives out, the next one understands, also from earlier versions."""

import pytest

from kyanite.model.blobs.listed_rows import BASE_BLOB, STAGING_AREA
from kyanite.model.blobs.listing import BlobPageStart
from kyanite.services.blob.lists import _name_of, _start_of
from kyanite.wire.malformed import Malformed

INSTANT = 639_238_179_990_000_000


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (0, "name"),
        (2 * INSTANT, f"name\0{INSTANT}"),
        (2 * INSTANT + 1, f"name\0v{INSTANT}"),
        (BASE_BLOB, f"name\0{BASE_BLOB}"),
        (STAGING_AREA, f"name\0{STAGING_AREA}"),
    ],
)
def test_a_marker_is_understood(order: int, text: str) -> None:
    start = BlobPageStart("name", order)
    assert _name_of(start) == text
    assert _start_of(text, {"marker": "x"}) == start


@pytest.mark.parametrize(
    "behind", ["v", "vv1", "-1", "v-1", "x", f"{STAGING_AREA + 1}", "9" * 40, f"v{'9' * 40}"]
)
def test_what_is_no_marker(behind: str) -> None:
    with pytest.raises(Malformed):
        _start_of(f"name\0{behind}", {"marker": "x"})
