"""New GUIDs are version 4, in canonical spelling, and all different."""

import uuid

from kyanite.server.guids import FreshGuids


def test_guids() -> None:
    fresh = FreshGuids()
    made = [fresh() for _ in range(1000)]
    assert len(set(made)) == 1000
    for text in made:
        read = uuid.UUID(text)
        assert str(read) == text
        assert read.version == 4
        assert read.variant == uuid.RFC_4122
