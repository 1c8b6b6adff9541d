"""What the tests of contents share."""

import pytest

from kyanite.model.content import content, interval_rows, layers
from kyanite.model.maintenance import compaction


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that a few steps reach them."""
    monkeypatch.setattr(interval_rows, "ROW_MAX", 3)
    monkeypatch.setattr(content, "SHORT_MAX", 2)
    monkeypatch.setattr(content, "_SPLICE_ROWS_MAX", 3)
    monkeypatch.setattr(compaction, "ROWS_PER_STEP", 2)
    for module in (layers, compaction):
        monkeypatch.setattr(module, "DEPTH_MAX", 2)
