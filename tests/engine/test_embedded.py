"""The embedded engine keeps the engine's promises, and those that only it makes."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from kyanite.engine.api import Engine
from kyanite.engine.clock import wall_clock
from kyanite.engine.embedded import EmbeddedEngine
from kyanite.values import Instant

from .suite import EngineSuite, Opener


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    numbers = count()

    def open_engine(clock: Callable[[], Instant] | None = None) -> Engine:
        return EmbeddedEngine.open(tmp_path / f"store-{next(numbers)}", clock=clock or wall_clock)

    return open_engine


class TestEmbeddedEngine(EngineSuite):
    pass
