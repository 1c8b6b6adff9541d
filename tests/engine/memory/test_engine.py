"""The memory engine keeps the engine's promises."""

from collections.abc import Callable

import pytest

from kyanite.engine.api import Engine
from kyanite.engine.clock import wall_clock
from kyanite.engine.memory.engine import MemoryEngine
from kyanite.values import Instant
from tests.engine.suite import EngineSuite, InlineReads, Opener


@pytest.fixture
def opener() -> Opener:
    def open_engine(clock: Callable[[], Instant] | None = None) -> Engine:
        return MemoryEngine(clock=clock or wall_clock)

    return open_engine


class TestMemoryEngine(EngineSuite, InlineReads):
    pass
